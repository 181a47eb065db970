"""FSDP2: a transformer over the rows of scikit-learn's digits, each block and the whole by
`fully_shard`, in mixed precision or not."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


class Rows(nn.Module):
    """A digit as eight tokens, its rows."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.enter = nn.Linear(8, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
            for _ in range(blocks)
        )
        self.leave = nn.Linear(width, 10)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.enter(rows)
        for block in self.blocks:
            hidden = block(hidden)
        return self.leave(hidden.mean(1))


def train(steps: int, batch: int, bfloat16: bool) -> list[str]:
    dist.init_process_group()
    torch.manual_seed(0)
    model = Rows(32, 2)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    policy = (
        MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        if bfloat16
        else MixedPrecisionPolicy()
    )
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = load_digits()
    images, targets = (
        torch.tensor(data.images / 16.0, dtype=torch.float32),
        torch.tensor(data.target),
    )
    order = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(steps):
        chosen = torch.randint(len(images), (batch,), generator=order)
        loss = nn.functional.cross_entropy(model(images[chosen]).float(), targets[chosen])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item().hex())
    dist.destroy_process_group()
    return losses


def main(words: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--bfloat16", action="store_true")
    asked = parser.parse_args(words)
    losses = train(asked.steps, asked.batch, asked.bfloat16)
    return {"rank": int(os.environ["RANK"]), "losses": losses}


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
