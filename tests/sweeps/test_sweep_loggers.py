"""Files that loggers write for a sweep: Ray's files in each trial's folder, and none unasked.

Method: real sweeps; the files are read by what reads them elsewhere. The formats are those that Ray
2.60's own callbacks have written.
"""

from __future__ import annotations

import csv
import glob
import importlib.util
import json
import pickle
import struct
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home

from troupe import tune
from troupe.tune import ResultGrid, RunConfig, TuneConfig, Tuner
from troupe.tune.logger import (
    CSVLoggerCallback,
    JsonLoggerCallback,
    LoggerCallback,
    TBXLoggerCallback,
    pretty_print,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])
needs_tensorboardx = pytest.mark.skipif(
    importlib.util.find_spec("tensorboardX") is None,
    reason="needs tensorboardX: pip install '.[tune]'",
)


def train(config: dict) -> None:
    start = 0
    if checkpoint := tune.get_checkpoint():
        start = int(Path(checkpoint.path, "step").read_text())
    for step in range(start + 1, 4):
        own = Path(config["path"], tune.get_context().get_trial_id())
        own.mkdir(exist_ok=True)
        (own / "step").write_text(str(step))
        tune.report(
            {
                "loss": config["lr"] / step,
                "by": {"class": {"a": step}},
                **({"late": 1} if step == 3 else {}),
            },
            checkpoint=tune.Checkpoint(own),
        )
        if step == 2 and config.get("fails") and not start:
            raise KeyError("once")


def swept(folder: Path, callbacks: list[Any] | None, **config: Any) -> ResultGrid:
    own = folder / "own"
    own.mkdir(exist_ok=True)
    return Tuner(
        train,
        param_space={"lr": tune.grid_search([1.0, 2.0]), "path": str(own), **config},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=RunConfig(
            name="sweep",
            storage_path=folder,
            callbacks=callbacks,
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=1),
        ),
    ).fit()


def test_rows_and_lines_of_each_report_are_in_the_trials_folder(idle: Home, tmp_path: Path) -> None:
    grid = swept(tmp_path, [CSVLoggerCallback(), JsonLoggerCallback()])
    assert len(grid) == 2
    for result in grid:
        folder = Path(result.path)
        rows = list(csv.DictReader((folder / "progress.csv").open(newline="")))
        assert [float(row["loss"]) for row in rows] == [
            result.config["lr"] / step for step in (1, 2, 3)
        ]
        assert (
            [row["training_iteration"] for row in rows]
            == ["1", "2", "3"]
            == [row["by/class/a"] for row in rows]
        )
        assert list(rows[0])[-1] == "by/class/a" and not {"config", "config/lr", "late"} & set(
            rows[0]
        )
        lines = [json.loads(line) for line in (folder / "result.json").read_text().splitlines()]
        assert [line["by"] for line in lines] == [
            {"class": {"a": step}} for step in (1, 2, 3)
        ] and lines[2]["late"] == 1
        assert all(
            line["config"] == result.config and line["trial_id"] == result.trial_id
            for line in lines
        )
        assert (
            json.loads((folder / "params.json").read_text())
            == pickle.loads((folder / "params.pkl").read_bytes())
            == result.config
        )


def test_a_trial_that_goes_on_adds_to_its_files(idle: Home, tmp_path: Path) -> None:
    """Once after a failure, once in a sweep that is restored, whose callbacks were kept with it."""
    grid = swept(tmp_path, [CSVLoggerCallback(), JsonLoggerCallback()], fails=True)
    assert not grid.errors
    for result in grid:
        rows = list(csv.DictReader(Path(result.path, "progress.csv").open(newline="")))
        assert [row["training_iteration"] for row in rows] == ["1", "2", "3"]
        assert len(Path(result.path, "result.json").read_text().splitlines()) == 3
    again = Tuner.restore(tmp_path / "sweep", train)
    assert [type(each) for each in again._run.callbacks or ()] == [
        CSVLoggerCallback,
        JsonLoggerCallback,
    ]


def test_without_loggers_there_are_no_files_of_theirs(idle: Home, tmp_path: Path) -> None:
    grid = swept(tmp_path, None)
    assert {path.name for path in Path(grid[0].path).iterdir()} == {
        f"checkpoint_{number:06d}" for number in range(3)
    }


@needs_tensorboardx
def test_events_are_those_that_tensorboard_shows(idle: Home, tmp_path: Path) -> None:
    grid = swept(tmp_path, [TBXLoggerCallback()])
    for result in grid:
        events = [
            (event.step, value.tag, value.simple_value)
            for event in events_in(result.path)
            for value in event.summary.value
        ]
        assert [(step, value) for step, tag, value in events if tag == "ray/tune/loss"] == [
            (step, pytest.approx(result.config["lr"] / step)) for step in (1, 2, 3)
        ]
        tags = {tag for _, tag, _ in events}
        assert "ray/tune/by/class/a" in tags and "_hparams_/session_end_info" in tags
        assert not {"ray/tune/config", "ray/tune/pid", "ray/tune/training_iteration"} & tags


def events_in(folder: str) -> list[Any]:
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in glob.glob(f"{folder}/events.out.tfevents.*"):
        data, at = Path(path).read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            found.append(Event.FromString(data[at + 12 : at + 12 + size]))
            at += 16 + size
    return found


def test_a_logger_that_fails_at_each_report_is_said_once_and_counted(
    idle: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    class Full(LoggerCallback):
        def log_trial_result(self, iteration: int, trial: Any, result: dict) -> None:
            raise OSError(28, "No space left on device", trial.local_path)

    grid = swept(tmp_path, [Full()])
    said = capfd.readouterr().err
    assert (
        not grid.errors
        and said.count("Full.on_trial_result() raised;") == 1
        and "Full.on_trial_result() raised 6 times in all" in said
    ), said


def test_thousands_of_trials_that_pause_hold_few_files(tmp_path: Path) -> None:
    """There are more trials than files may be open; each goes on in its own."""
    from troupe.tune._callback import TrialView

    trials = [
        TrialView(str(number), f"trial_{number}", {"a": number}, str(tmp_path / str(number)))
        for number in range(200)
    ]
    table, lines = CSVLoggerCallback(), JsonLoggerCallback()
    for step in (1, 2):
        for trial in trials:
            lines.log_trial_start(trial)
            for each in (table, lines):
                each.log_trial_result(
                    step, trial, {"x": step, "training_iteration": step, "config": trial.config}
                )
    assert (
        sum(
            Path(f"/proc/self/fd/{each.name}").resolve().is_relative_to(tmp_path)
            for each in Path("/proc/self/fd").iterdir()
        )
        == 2 * 64
    )
    table.on_experiment_end(trials)
    lines.on_experiment_end(trials)
    assert all(
        (tmp_path / str(number) / "progress.csv").read_text() == "x,training_iteration\n1,1\n2,2\n"
        for number in range(200)
    )
    assert all(
        len((tmp_path / str(number) / "result.json").read_text().splitlines()) == 2
        for number in range(200)
    )


def test_a_report_as_text(tmp_path: Path) -> None:
    assert (
        pretty_print(
            {"loss": 1.5, "config": {"a": 1}, "none": None, "by": {"x": 1.0}, "not": 2},
            exclude={"not"},
        )
        == "by:\n  x: 1.0\nloss: 1.5\n"
    )
