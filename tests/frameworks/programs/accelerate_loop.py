"""Accelerate: `prepare` of model, optimizer, loader and schedule, gradients accumulated over two
batches, on scikit-learn's digits."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(epochs: int, batch: int) -> dict:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(0)
    data = load_digits()
    digits = TensorDataset(
        torch.tensor(data.data / 16.0, dtype=torch.float32), torch.tensor(data.target)
    )
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=100)
    model, optimizer, loader, schedule = accelerator.prepare(
        model, optimizer, DataLoader(digits, batch_size=batch, shuffle=True), schedule
    )
    losses = []
    for _ in range(epochs):
        for features, targets in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(features), targets)
                accelerator.backward(loss)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(loss.item().hex())
    everywhere = accelerator.gather(loss.detach().reshape(1))
    said = {
        "rank": accelerator.process_index,
        "losses": losses + [each.hex() for each in everywhere.tolist()],
    }
    accelerator.end_training()
    return said


def main(words: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    asked = parser.parse_args(words)
    return train(asked.epochs, asked.batch)


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
