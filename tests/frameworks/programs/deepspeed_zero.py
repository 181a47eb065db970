"""DeepSpeed's ZeRO, stages 1 to 3, on CPUs: a multilayer perceptron on scikit-learn's digits."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

import deepspeed
import torch
from sklearn.datasets import load_digits
from torch import nn


def train(stage: int, steps: int, batch: int) -> list[str]:
    deepspeed.init_distributed(dist_backend="gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    config = {
        "train_micro_batch_size_per_gpu": batch,
        "gradient_clipping": 1.0,
        "zero_optimization": {"stage": stage},
        "optimizer": {"type": "AdamW", "params": {"lr": 5e-3, "torch_adam": True}},
    }
    with deepspeed.zero.Init(config_dict_or_path=config, enabled=stage == 3):
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    engine, _, _, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config
    )
    data = load_digits()
    features, targets = (
        torch.tensor(data.data / 16.0, dtype=torch.float32)[rank::world],
        torch.tensor(data.target)[rank::world],
    )
    losses = []
    for step in range(steps):
        chosen = slice(step * batch, (step + 1) * batch)
        loss = nn.functional.cross_entropy(engine(features[chosen]), targets[chosen])
        engine.backward(loss)
        engine.step()
        losses.append(loss.item().hex())
    engine.destroy()
    torch.distributed.destroy_process_group()
    return losses


def main(words: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", type=int, default=1, choices=(1, 2, 3))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    asked = parser.parse_args(words)
    return {"rank": int(os.environ["RANK"]), "losses": train(asked.stage, asked.steps, asked.batch)}


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
