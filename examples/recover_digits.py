"""Trains a classifier of handwritten digits with PyTorch DDP on four ranks, of which one is killed
on the way.

    python examples/recover_digits.py              # the others go on without it
    python examples/recover_digits.py replace      # another process takes its place

The others go on in their processes, from the last checkpoint, in a group of three, or of four with
a process that begins anew: with `on_rank_death="shrink"` or "replace" a death is no failure of the
launch while enough ranks live, and `troupe.train.attempts()` forms the ranks' group anew. Rank 3
kills itself once, in epoch 4.
"""

import os
import pathlib
import signal
import sys
import tempfile

from troupe import train
from troupe.launch import current, distributed

RANKS, EPOCHS, FATAL_EPOCH = 4, 10, 4


def split_digits() -> list:
    """Return the digits' images and labels: of training and of test, each."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    return train_test_split(
        digits.data / 16.0, digits.target, test_size=0.25, random_state=0, stratify=digits.target
    )


def learn(folder: str) -> dict:
    """Train as one rank, also after deaths of others; return its last state, and the test accuracy
    of all."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    checkpoint = pathlib.Path(folder, "latest.pt")
    x_train, x_test, y_train, y_test = split_digits()
    data = TensorDataset(torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train))
    loss_of = torch.nn.CrossEntropyLoss()

    for attempt in train.attempts("gloo"):
        with attempt:  # the group is there, of those that live
            torch.manual_seed(0)
            net = torch.nn.Sequential(
                torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
            )
            optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
            begin = 1
            if checkpoint.exists():
                saved = torch.load(checkpoint)
                net.load_state_dict(saved["net"])
                optimizer.load_state_dict(saved["optimizer"])
                begin = saved["epoch"] + 1
            model = DistributedDataParallel(net)
            sampler = DistributedSampler(data, seed=0)
            loader = DataLoader(data, batch_size=32, sampler=sampler)
            for epoch in range(begin, EPOCHS + 1):
                sampler.set_epoch(epoch)
                for step, (inputs, labels) in enumerate(loader):
                    here = (attempt.number, attempt.rank, epoch, step)
                    if here == (1, 3, FATAL_EPOCH, 5) and not current().replaces:
                        os.kill(os.getpid(), signal.SIGKILL)
                    optimizer.zero_grad()
                    loss = loss_of(model(inputs), labels)
                    loss.backward()
                    optimizer.step()
                if attempt.rank == 0:
                    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
                    torch.save({"epoch": epoch, **state}, f"{checkpoint}.new")
                    # whole or not there: whoever reads it next finds one or the other
                    os.replace(f"{checkpoint}.new", checkpoint)
                    print(f"epoch {epoch:2d} on {attempt.world_size} ranks", flush=True)
            with torch.no_grad():
                own = slice(attempt.rank, None, attempt.world_size)
                right = (
                    net(torch.tensor(x_test[own], dtype=torch.float32)).argmax(1)
                    == torch.tensor(y_test[own])
                ).sum()
            sums = torch.stack([right, torch.tensor(len(y_test[own]))])
            dist.all_reduce(sums)
            result = {
                "rank": attempt.rank,
                "of": attempt.world_size,
                "attempts": attempt.number,
                "began": begin,
                "accuracy": round(float(sums[0] / sums[1]), 4),
                "loss": round(float(loss), 4),
            }
    return result


def main() -> None:
    """Launches it, and looks at what is left."""
    policy = sys.argv[1] if len(sys.argv) > 1 else "shrink"
    with tempfile.TemporaryDirectory() as folder:
        job = distributed(
            processes=RANKS,
            remote=bool(os.environ.get("TROUPE_ADDRESS")),
            name="digits",
            on_rank_death=policy,
            min_processes=2,
        )(learn)
        *left, last = job.distributed(folder)
    print(last)
    if policy == "replace":
        assert (last["rank"], last["of"], last["attempts"]) == (3, 4, 1), (
            "the first attempt of the new process is the others' second"
        )
        left.append(last)
    else:
        assert isinstance(last, train.RankLost) and last.rank == 3, last
    assert [(each["rank"], each["of"]) for each in left] == [
        (rank, len(left)) for rank in range(len(left))
    ], left
    assert left[0]["began"] == FATAL_EPOCH, (
        f"it went on from epoch {left[0]['began']}, not from the checkpoint of {FATAL_EPOCH - 1}"
    )
    accuracy = left[0]["accuracy"]
    assert accuracy >= 0.95, f"test accuracy {accuracy} is below 0.95"
    print(f"test accuracy {accuracy:.3f}, with {len(left)} of {RANKS} ranks at the end")


if __name__ == "__main__":
    main()
