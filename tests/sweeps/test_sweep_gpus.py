"""Trials that hold a part of a GPU: each sees one, and together they hold no more than there is (G9).

Method: logical GPUs, which no device stands for: what a trial is told it has.
"""
from __future__ import annotations

import sys
from pathlib import Path

import cloudpickle
from e2e_conftest import Home

import troupe
from troupe import tune

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_g9_trials_share_gpus_by_fractions(home: Home, tmp_path: Path) -> None:
    """Each waits until as many run as there is room for, and says which GPU it has."""
    def train(config: dict) -> None:
        import os

        own = Path(config["path"]) / f"{tune.get_context().get_trial_id()}-{troupe.get_gpu_ids()[0]}"
        own.touch()
        while len(list(Path(config["path"]).iterdir())) < config["room"]:
            os.sched_yield()
        tune.report({"gpus": list(troupe.get_gpu_ids())})

    troupe.init(num_cpus=2, num_gpus=2)
    room = int(troupe.cluster_resources()["GPU"]) * 2
    marks = tmp_path / "marks"
    marks.mkdir()
    grid = tune.Tuner(tune.with_resources(train, {"cpu": 0.1, "gpu": 0.5}), param_space={"path": str(marks), "room": room},
                      tune_config=tune.TuneConfig(num_samples=room), run_config=tune.RunConfig(name="sweep", storage_path=tmp_path)).fit()
    assert not grid.errors
    held = [each.metrics["gpus"] for each in grid]
    assert all(len(each) == 1 for each in held) and sorted(sum(held, [])) == sorted(list(range(room // 2)) * 2)
