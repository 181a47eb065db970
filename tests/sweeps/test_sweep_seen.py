"""Listeners of a sweep: callbacks, which no trial waits for, and the text for a person.

Method: callbacks that write down what they hear, raise, or hang until the trials are known to be
over; programs in a terminal and in a pipe.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from terminals import Terminal

from troupe import tune
from troupe.tune import FailureConfig, RunConfig, TuneConfig, Tuner

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Hears(tune.Callback):
    def __init__(self) -> None:
        self.heard: list[tuple] = []

    def setup(
        self,
        stop: Any = None,
        num_samples: int | None = None,
        total_num_samples: int | None = None,
        **info: Any,
    ) -> None:
        self.heard.append(("setup", total_num_samples))

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        self.heard.append(("start", trial.trial_id, trial.status))

    def on_trial_restore(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        self.heard.append(("restore", trial.trial_id))

    def on_trial_result(
        self, iteration: int, trials: Any, trial: Any, result: dict, **info: Any
    ) -> None:
        self.heard.append(
            (
                "result",
                trial.trial_id,
                result["x"],
                result["config"]["a"],
                result["training_iteration"],
            )
        )

    def on_checkpoint(
        self, iteration: int, trials: Any, trial: Any, checkpoint: Any, **info: Any
    ) -> None:
        self.heard.append(("checkpoint", trial.trial_id, Path(checkpoint.path).is_dir()))

    def on_trial_recover(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        self.heard.append(("recover", trial.trial_id))

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        self.heard.append(
            ("complete", trial.trial_id, trial.status, [each.trial_id for each in trials])
        )
        raise ValueError("a callback that raises")

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        self.heard.append(("error", trial.trial_id, trial.status, trial.error.splitlines()[0]))

    def on_experiment_end(self, trials: Any, **info: Any) -> None:
        self.heard.append(("end", len(trials)))


def test_callbacks_hear_of_everything_in_order_and_what_they_raise_ends_nothing(
    idle: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    def train(config: dict) -> None:
        own = tmp_path / "own"
        own.mkdir(exist_ok=True)
        tune.report({"x": 1}, checkpoint=tune.Checkpoint(own))
        if config["a"] or tune.get_checkpoint().path.endswith("000000"):
            raise KeyError("no")

    hears = Hears()
    lock = threading.Lock()  # a callback that cannot be pickled
    hears.lock = lock  # type: ignore[attr-defined]
    grid = Tuner(
        train,
        param_space={"a": 1},
        tune_config=TuneConfig(metric="x", mode="max"),
        run_config=RunConfig(
            storage_path=tmp_path,
            name="sweep",
            callbacks=[hears],
            failure_config=FailureConfig(max_failures=1),
        ),
    ).fit()
    trial = grid[0].trial_id
    assert hears.heard == [
        ("setup", 1),
        ("start", trial, "RUNNING"),
        ("result", trial, 1, 1, 1),
        ("checkpoint", trial, True),
        ("recover", trial),
        ("start", trial, "RUNNING"),
        ("restore", trial),
        ("result", trial, 1, 1, 2),
        ("checkpoint", trial, True),
        ("error", trial, "ERROR", "KeyError: 'no'"),
        ("end", 1),
    ]
    assert (
        isinstance(grid[0].error, KeyError)
        and "in train" in str(grid[0].error)
        and str(grid[0].error).startswith(f"trial {trial}: KeyError: 'no'")
    )
    other = Hears()
    Tuner(
        lambda: tune.report({"x": 1}),
        run_config=RunConfig(storage_path=tmp_path, name="other", callbacks=[other]),
    ).fit()
    assert [each[0] for each in other.heard] == [
        "setup",
        "start",
        "complete",
        "end",
    ] or other.heard[-2][0] == "complete"
    assert (
        "Hears.on_trial_complete() raised; the runtime goes on without it" in capfd.readouterr().err
    )


def test_g11_no_trial_waits_for_a_callback(idle: Home, tmp_path: Path) -> None:
    """The callback hangs until all trials have come to their end."""

    def train(config: dict) -> None:
        for step in range(50):
            tune.report({"x": step})
        Path(config["path"], str(config["a"])).touch()

    class Hangs(tune.Callback):
        def on_trial_result(
            self, iteration: int, trials: Any, trial: Any, result: dict, **info: Any
        ) -> None:
            if iteration == 0:
                eventually(
                    lambda: all((tmp_path / str(number)).exists() for number in range(4)),
                    what="the end of all trials",
                )
            assert (tmp_path / "3").exists()

    grid = Tuner(
        train,
        param_space={"a": tune.grid_search([0, 1, 2, 3]), "path": str(tmp_path)},
        run_config=RunConfig(storage_path=tmp_path, name="sweep", callbacks=[Hangs()]),
    ).fit()
    assert not grid.errors and [each.metrics["x"] for each in grid] == [49] * 4


PROGRAM = """
import sys
from troupe import tune

def train(config):
    for step in range(3):
        tune.report({"acc": config["lr"] * step})

tune.Tuner(train, param_space={"lr": tune.grid_search([0.5, 1.0])}, tune_config=tune.TuneConfig(metric="acc", mode="max"),
           run_config=tune.RunConfig(name="shown", storage_path=sys.argv[1], verbose=None if sys.argv[2] == "-" else 0)).fit()
print("out")
"""


def test_a_line_at_the_beginning_and_the_end_in_a_pipe_and_none_with_verbose_0(
    home: Home, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    shown = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "a"), "-"],
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_S,
    )
    assert shown.returncode == 0 and shown.stdout == "out\n", shown.stderr
    lines = [line for line in shown.stderr.splitlines() if line.startswith("troupe.tune: sweep")]
    assert (
        lines[0] == f"troupe.tune: sweep shown of 2 trials, in {tmp_path}/a/shown"
        and len(lines) == 2
    )
    assert (
        "2/2 trials" in lines[1]
        and "best acc=2  lr=1" in lines[1]
        and lines[1].endswith(f"in {tmp_path}/a/shown")
    )
    quiet = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "b"), "0"],
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_S,
    )
    assert quiet.returncode == 0 and quiet.stdout == "out\n" and quiet.stderr == ""


def test_a_terminal_has_rows_that_change_and_are_gone_at_the_end(
    home: Home, tmp_path: Path
) -> None:
    terminal = Terminal(f"""
import os
from troupe import tune

def train(config):
    tune.report({{"acc": config["lr"]}})
    while config["lr"] == 1.0 and not os.path.exists({str(tmp_path / "go")!r}):
        os.sched_yield()

tune.Tuner(train, param_space={{"lr": tune.grid_search([0.5, 1.0])}}, tune_config=tune.TuneConfig(metric="acc", mode="max"),
           run_config=tune.RunConfig(name="shown", storage_path={str(tmp_path)!r})).fit()
""")
    terminal.until(
        lambda text: "sweep shown · 1/2 trials · 1 running" in text and "best acc=1  lr=1" in text
    )
    (tmp_path / "go").touch()
    text = terminal.end()
    assert (
        text.count("sweep shown") == 1
        and "sweep shown · 2/2 trials" in text
        and text.count("best acc=1  lr=1") == 1
    ), text


def test_the_first_lines_of_the_page_run(home: Home, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "sweeps.md").read_text()
    script = tmp_path / "script.py"
    script.write_text(page.partition("```python\n")[2].partition("```")[0])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=4 * TIMEOUT_S,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.returncode == 0 and done.stdout.startswith("{'lr': "), done.stderr
