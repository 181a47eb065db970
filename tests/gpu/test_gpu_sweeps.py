"""Trials that share the card: torch in each keeps to its half, and both halves fit (G9).

Method: two trials that hold all that they may at the same time, and then ask for more.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home

from troupe import tune

cloudpickle.register_pickle_by_value(sys.modules[__name__])
pytestmark = pytest.mark.gpu


def test_g9_two_trials_fill_their_halves_at_once_and_get_no_more(
    node: Home, tmp_path: Path
) -> None:
    def train(config: dict) -> None:
        import os

        import torch

        total = torch.cuda.get_device_properties(0).total_memory
        fraction = torch.cuda.get_per_process_memory_fraction(0)
        held = torch.empty(int(total * fraction) - (256 << 20), dtype=torch.uint8, device="cuda")
        Path(config["path"], tune.get_context().get_trial_id()).touch()
        while len(list(Path(config["path"]).iterdir())) < 2:
            os.sched_yield()
        try:
            torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
            refused = False
        except torch.OutOfMemoryError:
            refused = True
        tune.report({"refused": refused, "fraction": fraction, "held": held.numel()})

    marks = tmp_path / "marks"
    marks.mkdir()
    grid = tune.Tuner(
        tune.with_resources(train, {"cpu": 1, "gpu": 0.5}, gpu_memory_fraction=True),
        param_space={"path": str(marks)},
        tune_config=tune.TuneConfig(num_samples=2),
        run_config=tune.RunConfig(name="halves", storage_path=tmp_path, verbose=0),
    ).fit()
    assert not grid.errors, grid.errors
    assert all(each.metrics["refused"] and 0.4 < each.metrics["fraction"] < 0.5 for each in grid)
