"""DataLoader with worker processes, that stay or not, forked or spawned; noise of their own shows
how they were seeded."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, get_worker_info


class NoisyDigits(Dataset):
    """Digits with noise from the generator of the worker that reads them."""

    def __init__(self) -> None:
        data = load_digits()
        self.features, self.targets = (
            torch.tensor(data.data / 16.0, dtype=torch.float32),
            torch.tensor(data.target),
        )

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        worker = get_worker_info()
        assert worker is not None, "this was read by no worker"
        return self.features[index] + 0.1 * torch.randn(64), self.targets[index], worker.id


def train(epochs: int, batch: int, workers: int, persistent: bool, context: str) -> list[str]:
    dist.init_process_group()
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    data = NoisyDigits()
    sampler: DistributedSampler = DistributedSampler(data, seed=0)
    loader = DataLoader(
        data,
        batch_size=batch,
        sampler=sampler,
        num_workers=workers,
        persistent_workers=persistent,
        multiprocessing_context=context,
    )
    losses, seen = [], set()
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for features, targets, worker in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
            seen.update(worker.tolist())
    assert len(seen) == workers, f"only workers {seen} have read"
    dist.destroy_process_group()
    return losses


def main(words: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--context", default="fork", choices=("fork", "spawn", "forkserver"))
    asked = parser.parse_args(words)
    losses = train(asked.epochs, asked.batch, asked.workers, asked.persistent, asked.context)
    return {"rank": int(os.environ["RANK"]), "losses": losses}


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
