"""A sweep whose trials are gangs: four trials, each trained by two ranks with PyTorch DDP.

    python examples/gang_sweep.py

Each trial's ranks form a process group as those of a `@distributed` function do; rank 0's reports
are the trial's, and where all ranks report a stop reaches all of them.
"""

import os
import tempfile

from troupe import tune

RANKS = 2


def train(lr: float, epochs: int) -> None:
    """Train as one rank of one trial."""
    import torch
    import torch.distributed as dist
    from sklearn.datasets import load_digits
    from torch.nn.parallel import DistributedDataParallel

    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.data / 16.0, dtype=torch.float32, device=device)[rank::world]
    y = torch.tensor(digits.target, device=device)[rank::world]
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).to(
        device
    )
    model = DistributedDataParallel(net, device_ids=[device.index] if on_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(epochs):
        for rows in range(0, len(x) - len(x) % 32, 32):  # as many steps on each rank
            loss = torch.nn.functional.cross_entropy(
                model(x[rows : rows + 32]), y[rows : rows + 32]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            sums = torch.tensor(
                [float((net(x).argmax(1) == y).sum()), float(len(y))], device=device
            )
        dist.all_reduce(sums)
        tune.report({"accuracy": float(sums[0] / sums[1]), "samples": int(sums[1]), "ranks": world})


def main() -> None:
    """Runs the four trials; ends with an error where a rank was missing or nothing was learned."""
    with tempfile.TemporaryDirectory() as storage:
        swept = tune.sweep(
            train,
            metric="accuracy",
            mode="max",
            ranks=RANKS,
            cpus=0.5,
            storage=storage,
            name="gangs",
            space={"lr": tune.grid_search([0.001, 0.01, 0.1, 0.3])},
            remote=bool(os.environ.get("TROUPE_ADDRESS")),
        )
        grid = swept.sweep(epochs=6)
    for result in grid:
        print(
            f"lr {result.config['lr']:<6} accuracy {result.metrics['accuracy']:.3f} on "
            f"{result.metrics['ranks']} ranks, {result.metrics['samples']} samples"
        )
    assert not grid.errors, grid.errors[0]
    assert all(
        result.metrics["ranks"] == RANKS and result.metrics["samples"] == 1797 for result in grid
    )
    assert grid.get_best_result().metrics["accuracy"] >= 0.9, "nothing was learned"


if __name__ == "__main__":
    main()
