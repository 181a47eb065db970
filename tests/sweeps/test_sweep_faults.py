"""Trials that do what they should not: each row of docs/reference/sweeps_faults.md that is a
trial's, with what its sweep says, and that the others go on.

Method: sweeps of a real cluster, of which one trial hangs, forks, prints without end, leaves, loses
its checkpoint, or never says what is compared.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home, eventually, running

from troupe import tune
from troupe.tune import FailureConfig, ResultGrid, RunConfig, TuneConfig, Tuner

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def sweep(
    function: Any,
    folder: Path,
    space: dict[str, Any] | None = None,
    *,
    max_failures: int = 0,
    stop: Any = None,
    **tuned: Any,
) -> ResultGrid:
    return Tuner(
        function,
        param_space=space,
        tune_config=TuneConfig(**{"metric": "x", "mode": "max", **tuned}),
        run_config=RunConfig(
            name="sweep",
            storage_path=folder,
            failure_config=FailureConfig(max_failures=max_failures),
            stop=stop,
        ),
    ).fit()


def leave_by_exit(config: dict) -> None:
    sys.exit(0)


@pytest.mark.parametrize(
    "function", [lambda config: None, leave_by_exit], ids=["returns", "exits 0"]
)
def test_a_trial_without_a_report_is_a_failure_and_all_alike_end_the_sweep(
    idle: Home, tmp_path: Path, function: Callable
) -> None:
    with pytest.raises(
        tune.TuneError, match="has ended without a report, and 'x' is the metric of this sweep"
    ):
        sweep(function, tmp_path, num_samples=20)
    seen = tune.Tuner.restore(tmp_path / "sweep", function)
    assert seen is not None


def test_one_trial_without_a_report_is_one_failure(idle: Home, tmp_path: Path) -> None:
    grid = sweep(
        lambda config: {"x": 1} if config["a"] else None,
        tmp_path,
        {"a": tune.grid_search([0, 1, 2, 3, 4, 5, 6])},
    )
    assert (
        len(grid) == 7 and grid.num_errors == 1 and "ended without a report" in str(grid[0].error)
    )
    without = Tuner(
        lambda config: None, run_config=RunConfig(name="without", storage_path=tmp_path)
    ).fit()
    assert not without.errors  # nothing is compared there


def test_a_checkpoint_that_vanishes_is_named_and_no_other_trial_suffers(
    idle: Home, tmp_path: Path
) -> None:
    """Another hand removes it while the trial runs, which then fails and is to go on from it."""

    def train(config: dict) -> None:
        own = Path(config["path"], f"own-{config['a']}")
        own.mkdir(exist_ok=True)
        tune.report({"x": config["a"]}, checkpoint=tune.Checkpoint(own))
        if config["a"] == 0:
            shutil.rmtree(tune.get_checkpoint().path)
            raise ValueError("once")

    grid = sweep(
        train, tmp_path, {"a": tune.grid_search([0, 1]), "path": str(tmp_path)}, max_failures=3
    )
    assert grid.num_errors == 1 and grid[1].metrics["x"] == 1
    assert re.search(
        r"the checkpoint \S+/checkpoint_000000, from which trial \S+ is to go on, is not there on ",
        str(grid[0].error),
    ), grid[0].error


def test_g5_what_an_attempt_had_not_reported_is_in_no_later_ones_way(
    idle: Home, tmp_path: Path
) -> None:
    """A folder of the next number, as a process of an earlier attempt leaves it that has not ended
    yet; and a named one, whose process is killed between its rename and its report."""

    def train(config: dict) -> None:
        from troupe.tune._run import host

        folder, own = Path(tune.get_context().get_trial_dir()), Path(config["path"], "own")
        own.mkdir(exist_ok=True)
        (own / "state").write_text("own")
        (folder / "checkpoint_000000").mkdir(parents=True, exist_ok=True)
        (folder / "checkpoint_000000" / "state").write_text("of another process")
        if not tune.get_checkpoint():
            tune.report({"x": 1}, checkpoint=tune.Checkpoint(own))
            assert Path(tune.get_checkpoint().path, "state").read_text() == "own"
            renamed = host._run_folder.synced
            host._run_folder.synced = lambda path: (
                renamed(path),
                os.path.exists(folder / "named") and os.kill(os.getpid(), 9),
            )
        (own / "state").write_text("named")
        tune.report({"x": 2}, checkpoint=tune.Checkpoint(own), checkpoint_dir_name="named")

    grid = sweep(train, tmp_path, {"path": str(tmp_path)}, max_failures=1)
    assert not grid.errors and [each["x"] for each in grid[0].metrics_history] == [1, 2]
    assert (
        Path(grid[0].checkpoint.path).name == "named"
        and Path(grid[0].checkpoint.path, "state").read_text() == "named"
    )
    assert not list(Path(grid[0].path).glob(".*"))


def test_a_checkpoint_of_a_folder_that_is_not_there_is_an_error_in_report(
    idle: Home, tmp_path: Path
) -> None:
    def train(config: dict) -> None:
        tune.report(
            {"x": 1}, checkpoint=tune.Checkpoint.from_directory(Path(config["path"], "nowhere"))
        )

    grid = sweep(train, tmp_path, {"path": str(tmp_path)})
    assert isinstance(grid[0].error, FileNotFoundError) and "nowhere" in str(grid[0].error)


class Once(tune.Stopper):
    """Ends the sweep after so many reports of each trial, by its number."""

    def __init__(self, *counts: int) -> None:
        self.left = dict(enumerate(counts))

    def __call__(self, trial_id: str, result: dict) -> bool:
        number = int(trial_id.rpartition("_")[2])
        self.left[number] = self.left.get(number, 0) - 1
        return False

    def stop_all(self) -> bool:
        return all(count <= 0 for count in self.left.values())


def test_a_trial_that_prints_without_end_keeps_nobody_waiting(idle: Home, tmp_path: Path) -> None:
    """The trial prints while the other reports, and does not come to another report, in which it
    could be stopped."""

    def train(config: dict) -> None:
        if config["a"]:
            tune.report({"x": 1})
            while True:
                print("again and again" * 10)
        for step in range(20):
            tune.report({"x": step})

    grid = sweep(train, tmp_path, {"a": tune.grid_search([0, 1])}, stop=Once(20, 1))
    assert (
        not grid.errors
        and grid[0].metrics["x"] == 19
        and grid[1].stopped == "the stop condition of the sweep holds"
    )


@pytest.mark.parametrize("reuse", [False, True])
def test_what_a_trial_forks_ends_with_it(idle: Home, tmp_path: Path, reuse: bool) -> None:
    """A process that it has left behind, and a copy of itself that reports: only the trial's own
    reports count."""

    def train(config: dict) -> None:
        import signal

        tune.report({"x": 1})
        child = os.fork()
        if not child:
            try:
                tune.report({"x": 100})
            except RuntimeError as refused:
                Path(config["path"], "refused").write_text(str(refused))
            signal.pause()
        Path(config["path"], "child").write_text(str(child))
        while not Path(config["path"], "refused").exists():
            os.sched_yield()
        tune.report({"x": 2})

    grid = sweep(train, tmp_path, {"path": str(tmp_path)}, reuse_actors=reuse)
    assert not grid.errors and [each["x"] for each in grid[0].metrics_history] == [1, 2]
    assert "has forked" in (tmp_path / "refused").read_text()
    child = (tmp_path / "child").read_text()
    eventually(lambda: not running(child), what="the end of the trial's child")


def test_a_grid_of_a_million_points_begins_at_once_and_is_never_made(
    idle: Home, tmp_path: Path
) -> None:
    space = {"a": tune.grid_search(list(range(1000))), "b": tune.grid_search(list(range(1000)))}
    grid = sweep(lambda config: {"x": config["b"]}, tmp_path, space, stop=Once(1, 1, 1, 1, 1))
    assert 5 <= len(grid) <= 20 and {(each.config["a"], each.config["b"]) for each in grid} == {
        (number, 0) for number in range(len(grid))
    }


def test_a_configuration_that_cannot_be_kept_fails_before_a_trial_runs(
    idle: Home, tmp_path: Path
) -> None:
    import threading

    from troupe import exceptions

    with pytest.raises(exceptions.LaunchError, match="cannot be pickled"):
        sweep(
            lambda config: {"x": 1},
            tmp_path,
            {"a": tune.sample_from(lambda spec: threading.Lock())},
        )
