"""`@tune.sweep` on a cluster: sweeps, constants and shared values, options of the trials'
processes.

Method: sweeps of a real cluster through the decorator; what a trial sees it reports.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home

from troupe import tune

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_a_swept_function_is_called_by_name_with_what_is_searched_and_what_the_call_gives(
    idle: Home, tmp_path: Path
) -> None:
    @tune.sweep(
        trials=2,
        metric="x",
        mode="max",
        space={"a": tune.grid_search([1, 2])},
        storage=tmp_path,
        name="sweep",
        remote=True,
        runtime_env={"env_vars": {"OF_THE_SWEEP": "set"}},
        stop_early="asha",
        max_t=2,
        grace_period=2,
    )
    def train(a: int, b: float, steps: int = 5, data: Any = None) -> None:
        for step in range(steps):
            tune.report(
                {
                    "x": a * 10 + step,
                    "b": b,
                    "data": len(data),
                    "env": os.environ.get("OF_THE_SWEEP"),
                }
            )

    grid = train.sweep(b=tune.uniform(2, 3), data=[object()] * 7)
    assert (
        len(grid) == 4 and not grid.errors and [each.config["a"] for each in grid] == [1, 2, 1, 2]
    )
    best = grid.get_best_result()
    assert (
        best.config["a"] == 2
        and 2 <= best.config["b"] == best.metrics["b"] < 3
        and "data" not in best.config
    )
    assert (best.metrics["training_iteration"], best.metrics["data"], best.metrics["env"]) == (
        2,
        7,
        "set",
    )
    assert grid.experiment_path == str(tmp_path / "sweep")


def test_without_remote_a_sweep_does_not_run_on_the_cluster_that_the_program_is_connected_to(
    idle: Home,
) -> None:
    @tune.sweep
    def train(a: int) -> None: ...

    with pytest.raises(
        RuntimeError,
        match=r"connected to the cluster at .*: @tune.sweep\(remote=True\) runs its trials there",
    ):
        train.sweep(a=1)


@pytest.mark.parametrize("asked", [None, False, "variable"], ids=["own", "asked", "variable"])
def test_each_trial_has_a_working_directory_of_its_own(
    idle: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Any
) -> None:
    """Relative files of two trials are two files, a checkpoint's too; who asks for it keeps the
    directory that there was."""

    def train(config: dict) -> None:
        here, before = os.getcwd(), os.environ.get("TROUPE_ORIG_WORKING_DIR")
        if config["a"] and before is not None:
            Path("out").mkdir()
            Path("out/text").write_text(str(config["a"]))
            tune.report(
                {
                    "x": 1,
                    "here": here,
                    "before": before,
                    "rays": os.environ["TUNE_ORIG_WORKING_DIR"],
                },
                checkpoint=tune.Checkpoint.from_directory("out"),
            )
        tune.report({"x": 2, "here": here, "before": before})

    if asked == "variable":
        monkeypatch.setenv("RAY_CHDIR_TO_TRIAL_DIR", "0")
    grid = tune.Tuner(
        train,
        param_space={"a": tune.grid_search([0, 1, 2])},
        run_config=tune.RunConfig(name="sweep", storage_path=tmp_path, verbose=0),
        tune_config=tune.TuneConfig(
            metric="x", mode="max", chdir_to_trial_dir=False if asked is False else None
        ),
    ).fit()
    assert not grid.errors
    assert all(
        (each.metrics["here"] == each.path) == (asked is None)
        and (each.metrics["before"] is None) == (asked is not None)
        for each in grid
    )
    if asked is None:
        assert [each.metrics_history[0]["rays"] for each in list(grid)[1:]] == [
            each.metrics["before"] for each in grid
        ][1:]
        assert [Path(each.path).exists() for each in grid] == [False, True, True]
        for each in list(grid)[1:]:
            assert (
                Path(each.path, "out/text").read_text()
                == Path(each.checkpoint.path, "text").read_text()
                == str(each.config["a"])
            )
