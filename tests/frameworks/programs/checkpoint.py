"""torch.distributed.checkpoint of an FSDP2 model and its optimizer: saved by so many ranks, loaded
by as many or another number."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def train(steps: int, batch: int, load: str, save: str, in_background: bool) -> list[str]:
    """Use the same batch on all ranks, so that a step is one whatever their number."""
    dist.init_process_group()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 127), nn.ReLU(), nn.Linear(127, 10))
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    data = load_digits()
    features, targets = (
        torch.tensor(data.data / 16.0, dtype=torch.float32),
        torch.tensor(data.target),
    )
    first = 0
    if load:
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments, "step": 0}
        dcp.load(state, checkpoint_id=load)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        first = state["step"]
        assert first > 0, "the step was not read"
    losses = []
    for step in range(first, first + steps):
        chosen = slice(step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features[chosen]), targets[chosen])
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    if save:
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments, "step": first + steps}
        if in_background:
            dcp.async_save(state, checkpoint_id=save).result()
        else:
            dcp.save(state, checkpoint_id=save)
    dist.destroy_process_group()
    return losses


def main(words: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--load", default="", help="a checkpoint's folder")
    parser.add_argument("--save", default="", help="a folder for the checkpoint at the end")
    parser.add_argument("--in-background", action="store_true", help="saved by async_save")
    asked = parser.parse_args(words)
    losses = train(asked.steps, asked.batch, asked.load, asked.save, asked.in_background)
    return {"rank": int(os.environ["RANK"]), "losses": losses}


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
