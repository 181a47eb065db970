"""DistributedDataParallel: a multilayer perceptron on scikit-learn's digits, each rank with its
part of each epoch."""

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
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def digits() -> TensorDataset:
    data = load_digits()
    return TensorDataset(
        torch.tensor(data.data / 16.0, dtype=torch.float32), torch.tensor(data.target)
    )


def train(epochs: int, batch: int) -> list[str]:
    """This rank's losses, each as float.hex: all of its digits."""
    dist.init_process_group()
    torch.manual_seed(0)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    data = digits()
    sampler: DistributedSampler = DistributedSampler(data, seed=0)
    losses = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for features, targets in DataLoader(data, batch_size=batch, sampler=sampler):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
    dist.destroy_process_group()
    return losses


def main(words: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    asked = parser.parse_args(words)
    return {"rank": int(os.environ["RANK"]), "losses": train(asked.epochs, asked.batch)}


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
