"""Trains a classifier of handwritten digits with PyTorch DDP on four ranks.

    python examples/digits_ddp.py  # on an embedded cluster of this machine
    TROUPE_ADDRESS=10.0.0.1:6400 python examples/digits_ddp.py   # on a cluster

Every rank loads the data that scikit-learn ships inside the function, trains on its own share, and
evaluates on its share of the held-out digits; the accuracy is that of all of them.
"""

import os

import troupe
from troupe.launch import distributed

RANKS = 4


def train(epochs: int, batch: int = 32) -> dict:
    """Train as one rank; return its rank, how many samples it trained on, and the test accuracy of
    all."""
    import torch
    import torch.distributed as dist
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    torch.manual_seed(0)

    digits = load_digits()
    x_train, x_test, y_train, y_test = train_test_split(
        digits.data / 16.0, digits.target, test_size=0.25, random_state=0, stratify=digits.target
    )
    own = TensorDataset(torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train))
    sampler = DistributedSampler(own, num_replicas=world, rank=rank, seed=0)
    loader = DataLoader(own, batch_size=batch, sampler=sampler)
    net = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    ).to(device)
    model = DistributedDataParallel(net, device_ids=[device.index] if on_gpu else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    loss_of = torch.nn.CrossEntropyLoss()

    accuracy = 0.0
    for epoch in range(1, epochs + 1):
        sampler.set_epoch(epoch)
        total = 0.0
        for inputs, labels in loader:
            loss = loss_of(model(inputs.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            inputs = torch.tensor(x_test[rank::world], dtype=torch.float32, device=device)
            right = (net(inputs).argmax(1).cpu() == torch.tensor(y_test[rank::world])).sum()
        sums = torch.tensor([total / len(loader), float(right), float(len(inputs))], device=device)
        dist.all_reduce(sums)
        accuracy = float(sums[1] / sums[2])
        if rank == 0:
            print(
                f"epoch {epoch:2d}  loss {sums[0].item() / world:.3f}  accuracy {accuracy:.3f}",
                flush=True,
            )
    return {"rank": rank, "samples": len(sampler), "accuracy": round(accuracy, 4)}


def main() -> None:
    """Launches on the cluster there is, on its GPUs if it has four."""
    remote = bool(os.environ.get("TROUPE_ADDRESS"))
    gpus = 0.0
    if remote:
        with troupe.init(log_to_driver=False):
            gpus = troupe.cluster_resources().get("GPU", 0)
    size = {"gpus": RANKS} if gpus >= RANKS else {"processes": RANKS}
    results = distributed(train, remote=remote, name="digits", **size).distributed(epochs=10)
    print(results)
    accuracy = results[0]["accuracy"]
    assert [result["rank"] for result in results] == list(range(RANKS))
    assert accuracy >= 0.95, f"test accuracy {accuracy} is below 0.95"
    print(f"test accuracy {accuracy:.3f} on {RANKS} ranks")


if __name__ == "__main__":
    main()
