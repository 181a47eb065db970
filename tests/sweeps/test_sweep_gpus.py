"""Trials that hold a part of a GPU: each sees one, and together they hold no more than there is
(G9).

Method: logical GPUs, which no device stands for: what a trial is told it has.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home

import troupe
from troupe import tune

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_g9_trials_share_gpus_by_fractions(home: Home, tmp_path: Path) -> None:
    """Each waits until as many run as there is room for, and says which GPU it has."""

    def train(config: dict) -> None:
        import os

        own = (
            Path(config["path"]) / f"{tune.get_context().get_trial_id()}-{troupe.get_gpu_ids()[0]}"
        )
        own.touch()
        while len(list(Path(config["path"]).iterdir())) < config["room"]:
            os.sched_yield()
        tune.report({"gpus": list(troupe.get_gpu_ids())})

    troupe.init(num_cpus=2, num_gpus=2)
    room = int(troupe.cluster_resources()["GPU"]) * 2
    marks = tmp_path / "marks"
    marks.mkdir()
    grid = tune.Tuner(
        tune.with_resources(train, {"cpu": 0.1, "gpu": 0.5}),
        param_space={"path": str(marks), "room": room},
        tune_config=tune.TuneConfig(num_samples=room),
        run_config=tune.RunConfig(name="sweep", storage_path=tmp_path),
    ).fit()
    assert not grid.errors
    held = [each.metrics["gpus"] for each in grid]
    assert all(len(each) == 1 for each in held) and sorted(sum(held, [])) == sorted(
        list(range(room // 2)) * 2
    )


def test_g9_torch_keeps_to_the_trials_part_of_the_gpus_memory(home: Home, tmp_path: Path) -> None:
    """The limit waits in torch until a GPU is used, tested with a fake card of 80 GiB."""

    def train(config: dict) -> None:
        import types

        import torch

        from troupe.tune import _gpu_share

        set_to = []
        torch.cuda.device_count = lambda: 1
        torch.cuda.get_device_properties = lambda device: types.SimpleNamespace(
            total_memory=80 << 30
        )
        torch.cuda.set_per_process_memory_fraction = lambda fraction, device: set_to.append(
            (device, fraction)
        )
        for call, _ in torch.cuda._queued_calls:
            if call.__module__ == _gpu_share.__name__:
                call()
        tune.report({"set": set_to, "is_initialized": torch.cuda.is_initialized()})

    troupe.init(num_cpus=2, num_gpus=1)
    for capped in (True, False):
        grid = tune.Tuner(
            tune.with_resources(train, {"cpu": 0.1, "gpu": 0.5}, gpu_memory_fraction=capped),
            tune_config=tune.TuneConfig(num_samples=2),
            run_config=tune.RunConfig(name=f"sweep-{capped}", storage_path=tmp_path),
        ).fit()
        assert not grid.errors, grid.errors
        assert [each.metrics["set"] for each in grid] == [
            [[0, 0.5 - 640 / (80 << 10)]] if capped else []
        ] * 2
        assert not any(each.metrics["is_initialized"] for each in grid)


def test_g9_ranks_of_a_gang_keep_to_their_parts_too(home: Home, tmp_path: Path) -> None:
    @tune.sweep(
        ranks=2,
        cpus=0.1,
        gpus=0.5,
        gpu_memory_fraction=True,
        storage=tmp_path,
        name="gang",
        quiet=True,
    )
    def train(folder: str) -> None:
        import torch
        import torch.distributed as dist

        from troupe.tune import _gpu_share

        dist.init_process_group("gloo")
        mine = sum(call.__module__ == _gpu_share.__name__ for call, _ in torch.cuda._queued_calls)
        total = torch.tensor([mine])
        dist.all_reduce(total)
        tune.report({"capped": total.item()})

    troupe.init(num_cpus=2, num_gpus=1)
    grid = train.sweep(folder=str(tmp_path))
    assert not grid.errors and grid[0].metrics["capped"] == 2, grid.errors


def test_a_part_of_memory_goes_with_a_part_of_a_gpu() -> None:
    with pytest.raises(
        ValueError,
        match=r"with_resources\(gpu_memory_fraction=True\) caps torch's memory at the part of a GPU .* and it holds 1",
    ):
        tune.with_resources(print, {"gpu": 1}, gpu_memory_fraction=True)
    with pytest.raises(ValueError, match="@sweep.* and it holds 0"):
        tune.sweep(gpu_memory_fraction=True)
    with pytest.raises(TypeError, match="gpu_memory_fraction=0.5.: True or False"):
        tune.with_resources(print, {"gpu": 0.5}, gpu_memory_fraction=0.5)  # type: ignore[arg-type]
