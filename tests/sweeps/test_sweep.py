"""troupe.tune: trials that report and are answered, stops, failures, checkpoints that are kept, and
what a sweep gives.

Method: sweeps of a real cluster; what trials see they report or write down. What the core decides:
tests/bindings/tune.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually, running

import troupe
from troupe import exceptions, tune
from troupe.tune import CheckpointConfig, FailureConfig, ResultGrid, RunConfig, TuneConfig, Tuner

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def sweep(
    function: Any,
    folder: Path,
    space: dict[str, Any] | None = None,
    *,
    name: str = "sweep",
    failures: FailureConfig | None = None,
    keep: CheckpointConfig | None = None,
    stop: Any = None,
    **tuned: Any,
) -> ResultGrid:
    return Tuner(
        function,
        param_space=space,
        tune_config=TuneConfig(**{"metric": "x", "mode": "max", **tuned}),
        run_config=RunConfig(
            name=name,
            storage_path=folder,
            failure_config=failures,
            checkpoint_config=keep,
            stop=stop,
        ),
    ).fit()


def saved(folder: Path, text: str) -> tune.Checkpoint:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state").write_text(text)
    return tune.Checkpoint.from_directory(folder)


def test_trials_report_and_the_best_is_found(idle: Home, tmp_path: Path) -> None:
    def train(config: dict) -> None:
        context = tune.get_context()
        for step in range(1, 4):
            tune.report(
                {
                    "x": config["a"] * step if step < 3 else config["a"],
                    "inner": {"y": step},
                    "id": context.get_trial_id(),
                }
            )

    grid = sweep(
        train,
        tmp_path,
        {"a": tune.grid_search([1, 2, 3]), "const": (4, 5), "object": len},
        num_samples=2,
    )
    assert len(grid) == 6 and grid.num_errors == 0 and grid.num_terminated == 6 and not grid.errors
    assert [each.config["a"] for each in grid] == [1, 2, 3, 1, 2, 3]
    best = grid.get_best_result()
    assert (
        best.config == {"a": 3, "const": (4, 5), "object": len}
        and best.metrics["x"] == 3
        and best.metrics["id"] == best.trial_id
    )
    assert grid.get_best_result(scope="all", mode="min").config["a"] == 1 and grid.get_best_result(
        "inner/y"
    ).metrics["inner"] == {"y": 3}
    first = grid[0]
    assert {
        name: first.metrics[name]
        for name in ("training_iteration", "done", "config", "iterations_since_restore", "trial_id")
    } == {
        "training_iteration": 3,
        "done": True,
        "config": first.config,
        "iterations_since_restore": 3,
        "trial_id": first.trial_id,
    }
    assert (
        first.metrics["pid"] != os.getpid()
        and first.metrics["time_total_s"] > 0
        and first.metrics["date"].startswith("20")
    )
    assert [each["x"] for each in first.metrics_history] == [1, 2, 1] and len(
        {each.metrics["pid"] for each in grid}
    ) == 6
    assert [
        each.name for each in Path(grid.experiment_path).iterdir() if each.is_dir()
    ] == []  # nobody had anything to write there
    with pytest.raises(
        RuntimeError, match="no trial of 6 has a number under 'z'; reported were: .*inner/y.*x"
    ):
        grid.get_best_result("z", "max")


@pytest.mark.parametrize(
    "function, x",
    [(lambda config: {"x": config["a"] + 1}, 2), (lambda: tune.report({"x": 7}), 7)],
    ids=["returned", "no-argument"],
)
def test_a_function_returns_its_last_result_or_takes_nothing(
    idle: Home, tmp_path: Path, function: Callable, x: int
) -> None:
    assert sweep(function, tmp_path, {"a": 1})[0].metrics["x"] == x


def test_g7_a_stop_is_raised_inside_report_and_finally_runs(idle: Home, tmp_path: Path) -> None:
    """No `except Exception` takes it; the trial writes down what it saw of its end."""

    def train(config: dict) -> None:
        seen = []
        try:
            for step in range(1000):
                try:
                    tune.report({"x": config["a"] - step})
                except Exception:
                    seen.append("exception")
        except BaseException as stopped:
            seen.append(type(stopped).__name__)
            raise
        finally:
            Path(config["path"], f"end-{config['a']}").write_text(" ".join(seen))

    grid = sweep(
        train,
        tmp_path,
        {"a": tune.grid_search([0, 1]), "path": str(tmp_path)},
        stop={"training_iteration": 4},
    )
    assert [each.metrics["training_iteration"] for each in grid] == [4, 4] and not grid.errors
    assert {(tmp_path / f"end-{number}").read_text() for number in (0, 1)} == {"TrialStopped"}


def test_stop_by_function_and_by_time_of_a_trial_that_does_not_report(
    idle: Home, tmp_path: Path
) -> None:
    def train(config: dict) -> None:
        tune.report({"x": 1})
        Path(config["path"], f"pid-{config['a']}").write_text(str(os.getpid()))
        if config["a"]:
            time.sleep(1000)  # lint-ok: this trial hangs

    grid = sweep(
        train, tmp_path, {"a": tune.grid_search([0, 1]), "path": str(tmp_path)}, time_budget_s=15
    )
    assert [each.stopped for each in grid] == ["", "time_budget_s=15 is over"]
    pid = int((tmp_path / "pid-1").read_text())
    eventually(lambda: not running(pid), what=f"the end of process {pid}")
    named = sweep(
        train,
        tmp_path,
        {"a": 0, "path": str(tmp_path)},
        name="by-function",
        stop=lambda trial, result: result["trial_id"] == trial and result["x"] == 1,
    )
    assert named[0].metrics["training_iteration"] == 1


def test_a_failure_is_in_its_result_and_a_retry_goes_on_from_the_checkpoint(
    idle: Home, tmp_path: Path
) -> None:
    """Reports beyond the checkpoint do not count; iterations go on."""

    def train(config: dict) -> None:
        start = 0
        if checkpoint := tune.get_checkpoint():
            with checkpoint.as_directory() as folder:
                start = int(Path(folder, "state").read_text()) + 1
        for step in range(start, 6):
            own = Path(config["path"]) / f"{config['a']}-{step}"
            tune.report(
                {"x": step, "started": start},
                checkpoint=saved(own, str(step)) if step % 2 == 0 else None,
            )
            if step == 3 and start == 0:
                raise KeyError(f"trial {config['a']}")

    space = {"a": tune.grid_search([0, 1]), "path": str(tmp_path)}
    once = sweep(train, tmp_path, space, name="once")
    assert (
        once.num_errors == 2
        and isinstance(once[0].error, KeyError)
        and "trial 0" in str(once[0].error)
        and once[0].metrics["x"] == 3
    )
    again = sweep(
        train,
        tmp_path,
        space,
        name="again",
        failures=FailureConfig(max_failures=1),
        keep=CheckpointConfig(num_to_keep=1),
    )
    assert not again.errors
    for result in again:
        assert [
            (each["x"], each["started"], each["training_iteration"])
            for each in result.metrics_history
        ] == [(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 3, 4), (4, 3, 5), (5, 3, 6)]
        assert result.metrics["iterations_since_restore"] == 3
        assert (
            result.checkpoint is not None
            and Path(result.checkpoint.path, "state").read_text() == "4"
        )
        assert [each.name for each in Path(result.path).iterdir()] == [
            Path(result.checkpoint.path).name
        ]


def test_checkpoints_stay_by_score_and_the_latest(idle: Home, tmp_path: Path) -> None:
    def train(config: dict) -> None:
        for step, x in enumerate([1, 5, 3, 2]):
            own = saved(Path(config["path"], str(step)), str(x))
            tune.report({"x": x}, checkpoint=own)
            assert tune.get_checkpoint().path != own.path  # inside the sweep's folder

    keep = CheckpointConfig(num_to_keep=1, checkpoint_score_attribute="x")
    (result,) = sweep(train, tmp_path, {"path": str(tmp_path)}, keep=keep)
    assert sorted(metrics["x"] for _, metrics in result.best_checkpoints) == [2, 5]
    best = result.get_best_checkpoint("x", "max")
    assert (
        best is not None
        and Path(best.path, "state").read_text() == "5"
        and Path(result.checkpoint.path, "state").read_text() == "2"
    )
    eventually(
        lambda: len(list(Path(result.path).iterdir())) == 2, what="the removal of the others"
    )


@pytest.mark.parametrize("how", ["killed", "left"])
def test_a_process_that_ends_is_a_failure_that_says_how(
    idle: Home, tmp_path: Path, how: str
) -> None:
    def train(config: dict) -> None:
        tune.report({"x": 1})
        if config["how"] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)

    (result,) = sweep(train, tmp_path, {"how": how})
    assert isinstance(result.error, exceptions.ActorDiedError) and (
        "SIGKILL" if how == "killed" else "exit 0"
    ) in str(result.error)
    assert result.metrics["x"] == 1


def test_fail_fast(idle: Home, tmp_path: Path) -> None:
    def train(config: dict) -> None:
        if config["a"] == 1:
            raise ZeroDivisionError("this one")
        tune.report({"x": 1})

    space = {"a": tune.grid_search(list(range(20)))}
    with pytest.raises(ZeroDivisionError, match="this one"):
        sweep(
            train,
            tmp_path,
            space,
            name="raises",
            failures=FailureConfig(fail_fast="raise"),
            max_concurrent_trials=1,
        )
    grid = sweep(
        train,
        tmp_path,
        space,
        name="ends",
        failures=FailureConfig(fail_fast=True),
        max_concurrent_trials=1,
    )
    assert 2 <= len(grid) < 20 and grid.num_errors == 1
    went_on = Tuner.restore(tmp_path / "ends", train).fit()  # can be resumed all the same
    assert len(went_on) == 20 and went_on.num_errors == 1


def test_a_metric_that_is_never_reported_ends_the_sweep_and_names_the_nearest(
    idle: Home, tmp_path: Path
) -> None:
    def train(config: dict) -> None:
        tune.report({"acc": 1, "loss": 2})

    with pytest.raises(
        tune.TuneError,
        match="no 'accc', the metric of this sweep .*: it has 'acc', 'loss'; did you mean 'acc'\\?",
    ):
        sweep(train, tmp_path, {"a": tune.grid_search(list(range(50)))}, metric="accc")
    one = sweep(train, tmp_path, name="one", metric="accc")
    assert one.num_errors == 1 and "did you mean 'acc'?" in str(one.errors[0])


def test_resources_hold_or_are_refused_at_once(idle: Home, tmp_path: Path) -> None:
    def train(config: dict) -> None:
        tune.report(
            {
                "x": troupe.available_resources().get("CPU", 0.0),
                "held": tune.get_context().get_trial_resources(),
            }
        )

    with pytest.raises(exceptions.PlacementError, match="a trial can never be placed"):
        sweep(tune.with_resources(train, {"cpu": 100}), tmp_path, name="never")
    (result,) = sweep(tune.with_resources(train, {"cpu": 3}), tmp_path, max_concurrent_trials=1)
    assert result.metrics["x"] == 5 and result.metrics["held"] == {"CPU": 3}
    both = sweep(
        tune.with_resources(train, lambda config: {"cpu": config["n"]}),
        tmp_path,
        {"n": tune.grid_search([2, 4])},
        name="by-config",
        max_concurrent_trials=1,
    )
    assert [each.metrics["held"]["CPU"] for each in both] == [2, 4]


def test_a_group_of_bundles_for_each_trial(idle: Home, tmp_path: Path) -> None:
    """The first is the trial's own; what it makes is in the others."""

    def train(config: dict) -> None:
        @troupe.remote(num_cpus=2)
        class Grouped:
            def group(self) -> str:
                return troupe.get_runtime_context().get_placement_group_id()

        helpers = [Grouped.remote() for _ in range(2)]
        groups = troupe.get([each.group.remote() for each in helpers])
        tune.report(
            {"x": 1, "one": len({*groups, troupe.get_runtime_context().get_placement_group_id()})}
        )

    sized = tune.with_resources(
        train, tune.PlacementGroupFactory([{"CPU": 1}, {"CPU": 2}, {"CPU": 2}])
    )
    assert [
        (each.error, each.metrics.get("one")) for each in sweep(sized, tmp_path, num_samples=2)
    ] == [(None, 1)] * 2
    with pytest.raises(exceptions.PlacementError, match="can never be placed"):
        sweep(
            tune.with_resources(train, tune.PlacementGroupFactory([{"CPU": 1}, {"CPU": 100}])),
            tmp_path,
            name="never",
        )


class Counts(tune.Trainable):
    def setup(self, config: dict, first: int = 0) -> None:
        self.value, self.setups = first, 1

    def step(self) -> dict:
        self.value += self.config["by"]
        return {
            "x": self.value,
            "setups": self.setups,
            "done": self.iteration == 4,
            "id": self.trial_id,
        }

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        Path(checkpoint_dir, "value").write_text(str(self.value))

    def load_checkpoint(self, checkpoint: str) -> None:
        self.value = int(Path(checkpoint, "value").read_text())


class CountsAgain(Counts):
    def reset_config(self, new_config: dict) -> bool:
        self.value, self.setups = 0, self.setups + 1
        return True

    def save_checkpoint(self, checkpoint_dir: str) -> dict:  # type: ignore[override]
        return {"value": self.value}

    def load_checkpoint(self, checkpoint: dict) -> None:  # type: ignore[override]
        self.value = checkpoint["value"]


def test_a_trainable_class_steps_saves_and_goes_on(idle: Home, tmp_path: Path) -> None:
    class Fails(Counts):
        def step(self) -> dict:
            if self.iteration == 3 and not Path(self.config["path"], "failed").exists():
                Path(self.config["path"], "failed").touch()
                raise ValueError("once")
            return super().step()

    by = {"by": tune.grid_search([1, 10])}
    grid = sweep(
        tune.with_parameters(Counts, first=100),
        tmp_path,
        by,
        keep=CheckpointConfig(checkpoint_at_end=True),
    )
    assert [each.metrics["x"] for each in grid] == [105, 150] and all(
        each.checkpoint is not None for each in grid
    )
    (result,) = sweep(
        Fails,
        tmp_path,
        {"by": 1, "path": str(tmp_path)},
        name="fails",
        failures=FailureConfig(max_failures=1),
        keep=CheckpointConfig(checkpoint_frequency=2),
    )
    assert [(each["x"], each["training_iteration"]) for each in result.metrics_history] == [
        (x, x) for x in range(1, 6)
    ] and result.error is None
    again = sweep(
        CountsAgain,
        tmp_path,
        by,
        name="again",
        reuse_actors=True,
        max_concurrent_trials=1,
        keep=CheckpointConfig(checkpoint_frequency=1),
    )
    assert [
        (each.metrics["x"], each.metrics["setups"], len({one.metrics["pid"] for one in again}))
        for each in again
    ] == [(5, 1, 1), (50, 2, 1)]
    with pytest.raises(TypeError, match="no tune.Trainable"):
        Tuner(dict)
    without = sweep(tune.Trainable, tmp_path, name="without")
    assert "has no step()" in str(without.errors[0])


def test_parameters_travel_once_beside_the_configuration(idle: Home, tmp_path: Path) -> None:
    def train(config: dict, data: bytes, factor: int = 1) -> None:
        tune.report({"x": len(data) * factor * config["a"]})

    with pytest.raises(
        TypeError, match="takes data beside its configuration: tune.with_parameters"
    ):
        Tuner(train)
    with pytest.raises(TypeError, match="does not take them"):
        tune.with_parameters(train, dta=b"")
    grid = sweep(
        tune.with_parameters(train, data=bytes(3_000_000), factor=2),
        tmp_path,
        {"a": tune.grid_search([1, 2])},
    )
    assert [each.metrics["x"] for each in grid] == [6_000_000, 12_000_000]


def test_what_cannot_travel_is_named(idle: Home, tmp_path: Path) -> None:
    import threading

    lock = threading.Lock()
    with pytest.raises(exceptions.LaunchError, match="`lock`"):
        sweep(lambda config: lock.acquire(), tmp_path, name="function")
    with pytest.raises(exceptions.LaunchError, match="cannot be pickled"):
        sweep(lambda config: None, tmp_path, {"a": lock}, name="configuration")


def test_a_name_that_is_taken_and_places_that_are_none(idle: Home, tmp_path: Path) -> None:
    def train(config: dict) -> None:
        tune.report({"x": 1})

    sweep(train, tmp_path)
    with pytest.raises(FileExistsError, match="Tuner.restore"):
        sweep(train, tmp_path)
    assert Tuner.can_restore(tmp_path / "sweep") and not Tuner.can_restore(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no sweep in"):
        Tuner.restore(tmp_path, train)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="the sweep's folder cannot be written"):
        sweep(train, tmp_path / "file")


def test_failed_trials_are_tried_again_when_a_sweep_is_restored(idle: Home, tmp_path: Path) -> None:
    def train(config: dict) -> None:
        start = (
            int(Path(tune.get_checkpoint().path, "state").read_text())
            if tune.get_checkpoint()
            else 0
        )
        tune.report({"x": start + 1}, checkpoint=saved(Path(config["path"], "own"), str(start + 1)))
        if not Path(config["path"], "mended").exists():
            raise ValueError("not yet")

    assert sweep(train, tmp_path, {"path": str(tmp_path)}, num_samples=2).num_errors == 2
    (tmp_path / "mended").touch()
    unchanged = Tuner.restore(tmp_path / "sweep", train).fit()
    assert unchanged.num_errors == 2 and isinstance(unchanged[0].error, ValueError)
    resumed = Tuner.restore(tmp_path / "sweep", train, resume_errored=True).fit()
    assert [
        (each.error, each.metrics["x"], each.metrics["training_iteration"]) for each in resumed
    ] == [(None, 2, 2), (None, 2, 2)]


def test_g8_processes_are_used_again_if_they_are_asked_for_and_clean(
    idle: Home, tmp_path: Path
) -> None:
    """A trial that leaves a thread, a child, another directory or variable behind: where it ran
    nothing else does, or all is set back."""

    def train(config: dict) -> None:
        import subprocess
        import threading

        left = {"directory": os.getcwd(), "variable": os.environ.get("LEFT")}
        os.chdir("/")
        os.environ["LEFT"] = "1"
        if config["a"] == "thread":
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        if config["a"] == "child":
            subprocess.Popen(["sleep", "1000"])
        tune.report({"x": 1, "left": left})

    space = {"a": tune.grid_search(["clean", "clean", "thread", "clean", "child", "clean"])}
    grid = sweep(train, tmp_path, space, reuse_actors=True, max_concurrent_trials=1)
    assert not grid.errors and [each.metrics["left"]["variable"] for each in grid] == [None] * 6
    assert [each.metrics["left"]["directory"] for each in grid] == [each.path for each in grid]
    pids = [each.metrics["pid"] for each in grid]
    assert pids[0] == pids[1] == pids[2] and pids[3] == pids[4] and len(set(pids)) == 3


def test_outside_of_a_trial(idle: Home) -> None:
    for call in (lambda: tune.report({"x": 1}), tune.get_checkpoint, tune.get_context):
        with pytest.raises(RuntimeError, match="a sweep's trials run"):
            call()
    assert TIMEOUT_S
