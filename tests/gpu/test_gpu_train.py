"""troupe.train on a real GPU: NCCL, the worker's device, its model and batches there, and a restart
that computes.

Method: one worker, the card being one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home

from troupe import train
from troupe.train import FailureConfig, RunConfig, ScalingConfig
from troupe.train.torch import TorchTrainer

pytestmark = pytest.mark.gpu
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_a_worker_trains_on_its_gpu(idle: Home, tmp_path: Path) -> None:
    """Killed once in the middle; the next attempt finds the card free."""

    def loop(config: dict) -> str:
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader, TensorDataset

        from troupe.train import _digest
        from troupe.train.torch import get_device, get_devices, prepare_data_loader, prepare_model

        assert dist.get_backend() == "nccl" and get_devices() == [get_device()] == [
            torch.device("cuda", 0)
        ]
        model = prepare_model(torch.nn.Linear(4, 1))
        loader = prepare_data_loader(DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=4))
        assert len(loader) == 2
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for (batch,) in loader:
            assert batch.device == get_device() and next(model.parameters()).device == get_device()
            optimizer.zero_grad()
            loss = model(batch).pow(2).mean()
            loss.backward()
            optimizer.step()
        train.check_equal(model)  # over NCCL
        on_card = torch.arange(10_000_001, dtype=torch.float16, device=get_device())
        assert int(_digest.of(on_card)) == int(_digest.of(on_card.cpu())), (
            "the same bytes have the same digest on either side"
        )
        flat = on_card[1:].view(torch.uint8)
        assert int(_digest.of_cuda(flat, 3)) == int(_digest.by_torch(flat, 3)), (
            "by the kernel as by torch's operations"
        )
        total = torch.ones(1, device=get_device())
        dist.all_reduce(total)
        marker = Path(config["path"]) / "happened"
        if not marker.exists():
            marker.write_text("")
            os.kill(os.getpid(), 9)
        train.report({"loss": loss, "total": total})
        return str(get_device())

    result = TorchTrainer(
        loop,
        train_loop_config={"path": str(tmp_path)},
        scaling_config=ScalingConfig(num_workers=1, use_gpu=True),
        run_config=RunConfig(storage_path=tmp_path, failure_config=FailureConfig(max_failures=1)),
    ).fit()
    assert (
        result.return_value == "cuda:0"
        and result.metrics is not None
        and result.metrics["total"] == 1.0
        and isinstance(result.metrics["loss"], float)
    )
