"""Training: by an actor that the driver of a launch makes, and by the program of examples/."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import Home

import troupe
from troupe.launch import distributed, ray_launch

pytestmark = pytest.mark.gpu
LIMIT_S = 90.0


class Trainer:
    """Fits a small network on the GPU."""

    def __init__(self, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        self.device = torch.device("cuda")
        self.model = torch.nn.Sequential(
            torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
        ).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.x = torch.randn(1024, 8, device=self.device)
        self.y = self.x.square().sum(1, keepdim=True)

    def train(self, steps: int) -> float:
        """The loss after so many more steps."""
        for _ in range(steps):
            loss = (self.model(self.x) - self.y).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def weights(self) -> dict:
        return {name: value.cpu() for name, value in self.model.state_dict().items()}

    def where(self) -> tuple[str, str]:
        return os.environ["CUDA_VISIBLE_DEVICES"], str(next(self.model.parameters()).device)


def test_the_driver_of_a_launch_trains_by_an_actor(idle: Home) -> None:
    @ray_launch(gpus=1, remote=True, timeout=LIMIT_S)
    def drive() -> dict:
        from troupe.launch import current

        actor = troupe.remote(num_gpus=1)(Trainer).remote(0)
        first = troupe.get(actor.train.remote(1))
        last = troupe.get(actor.train.remote(400))
        where, weights = troupe.get(actor.where.remote()), troupe.get(actor.weights.remote())
        free = troupe.available_resources().get("GPU", 0)
        troupe.kill(actor)

        def part() -> tuple[str, float]:
            import torch
            import torch.distributed as dist

            value = torch.ones(1, device="cuda")
            dist.all_reduce(value)
            return dist.get_backend_config(), value.item()

        [of_rank] = current().run(part)
        again = troupe.remote(num_gpus=1)(Trainer).remote(1)
        try:
            troupe.get(
                again.where.remote(), timeout=1
            )  # rank 0, this process, has the share back: the actor gets it
            freed = True
        except troupe.exceptions.GetTimeoutError:
            freed = False
        return {
            "first": first,
            "last": last,
            "where": where,
            "weights": sum(each.numel() for each in weights.values()),
            "free": free,
            "rank": of_rank,
            "freed": freed,
        }

    [found] = drive.distributed()
    assert found["first"] > 10 > 1 > found["last"], found
    assert (
        found["where"] == ("0", "cuda:0")
        and found["weights"] == 8 * 64 + 64 + 64 + 1
        and found["free"] == 0
    )
    assert found["rank"] == ("cuda:nccl", 1.0), found


def test_the_digits_are_learned_on_a_gpu(idle: Home) -> None:
    """The program of examples/, as it is."""
    pytest.importorskip("sklearn")
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    try:
        import digits_ddp

        function = getattr(digits_ddp.train, "__wrapped__", digits_ddp.train)
        [result] = distributed(gpus=1, remote=True, timeout=LIMIT_S)(function).distributed(epochs=6)
    finally:
        sys.path.pop(0)
    assert result["accuracy"] > 0.9, result
