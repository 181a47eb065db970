"""torch.compile by Inductor, around DistributedDataParallel, on scikit-learn's digits."""

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


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.norm, self.leave = (
            nn.Linear(64, 128),
            nn.LayerNorm(128),
            nn.Linear(128, 10),
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.leave(self.norm(nn.functional.gelu(self.enter(features))))


def train(steps: int, batch: int) -> list[str]:
    dist.init_process_group()
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(Perceptron())
    forward = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    data = load_digits()
    features, targets = (
        torch.tensor(data.data / 16.0, dtype=torch.float32)[rank::world],
        torch.tensor(data.target)[rank::world],
    )
    losses = []
    for step in range(steps):
        chosen = slice(step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(features[chosen]), targets[chosen])
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0, "nothing was compiled"
    dist.destroy_process_group()
    return losses


def main(words: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    asked = parser.parse_args(words)
    return {"rank": int(os.environ["RANK"]), "losses": train(asked.steps, asked.batch)}


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
