"""Sweeps that go on: whatever ended their engine, none of their trials is lost and none runs twice
(G3), and one engine is at a sweep at a time (G4).

Method: the engine runs in a program of its own, which is killed or gets Ctrl-C while its trials, of
which each leaves a line for every step that it takes, are known to be at a certain step; another
program goes on with the sweep.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

from troupe import tune

PROGRAM = """
import os, sys
from pathlib import Path
import troupe
from troupe import tune

folder = Path(sys.argv[1])

def train(config):
    start = 0
    if checkpoint := tune.get_checkpoint():
        start = int(Path(checkpoint.path, "step").read_text()) + 1
    try:
        for step in range(start, 8):
            with open(folder / "steps", "a") as log:
                log.write(f"{config['a']} {step}\\n")
            while not (folder / f"go-{step}").exists() and not (folder / "go").exists():
                os.sched_yield()
            own = folder / f"own-{config['a']}"
            own.mkdir(exist_ok=True)
            (own / "step").write_text(str(step))
            tune.report({"x": config["a"] * step, "step": step}, checkpoint=tune.Checkpoint(own) if step % 2 == 1 else None)
    finally:
        with open(folder / "finally", "a") as log:
            log.write(f"{config['a']}\\n")

troupe.init(num_cpus=3)
if tune.Tuner.can_restore(folder / "sweep"):
    tuner = tune.Tuner.restore(folder / "sweep", train)
else:
    tuner = tune.Tuner(train, param_space={"a": tune.grid_search(list(range(6)))}, run_config=tune.RunConfig(name="sweep", storage_path=folder),
                       tune_config=tune.TuneConfig(metric="x", mode="max"))
grid = tuner.fit()
print(len(grid), grid.num_errors, grid.get_best_result().config["a"], [each.metrics["step"] for each in grid],
      [each.metrics["training_iteration"] for each in grid], flush=True)
"""
WHOLE = "6 0 5 [7, 7, 7, 7, 7, 7] [8, 8, 8, 8, 8, 8]\n"


class Program:
    """A program that runs the sweep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "script.py").write_text(PROGRAM)
        self.process = subprocess.Popen(
            [sys.executable, str(folder / "script.py"), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def steps(self) -> list[tuple[int, int]]:
        """(trial, step) of all that was begun, in its order."""
        path = self.folder / "steps"
        return (
            [tuple(map(int, line.split())) for line in path.read_text().splitlines()]
            if path.exists()
            else []
        )  # type: ignore[misc]

    def at(self, step: int, trials: int = 3) -> None:
        """Waits until that many trials are at that step."""

        def reached() -> bool:
            return (
                sum(each[1] == step for each in self.steps()) >= trials
                or self.process.poll() is not None
            )

        eventually(reached, what=f"{trials} trials at step {step} ({self.steps()})")
        assert self.process.poll() is None, self.process.communicate()

    def end(self) -> tuple[str, str]:
        """Return the output."""
        return self.process.communicate(timeout=2 * TIMEOUT_S)


@pytest.fixture
def folder(home: Home, tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "runs"
    made.mkdir()
    yield made


def test_g3_an_engine_that_is_killed_is_gone_on_with(folder: Path) -> None:
    """Twice.

    A trial begins again with the step after its last checkpoint: each step was begun at most once
    for each end of the engine, and once more only where no checkpoint had it.
    """
    first = Program(folder)
    for step in (0, 1, 2):
        (folder / f"go-{step}").touch()
    first.at(3)
    first.process.kill()
    first.end()
    second = Program(folder)
    (folder / "go-3").touch()
    eventually(
        lambda: (
            sum(step == 4 for _, step in second.steps()) >= 3 or second.process.poll() is not None
        ),
        what="step 4",
    )
    second.process.kill()
    second.end()
    (folder / "go").touch()
    out, error = Program(folder).end()
    assert out == WHOLE, error
    begun = Counter(Program.steps(first))
    assert all(begun[trial, step] == 1 for trial in range(6) for step in (0, 1, 5, 6, 7)), begun
    assert all(1 <= begun[trial, step] <= 3 for trial in range(6) for step in (2, 3, 4)), begun
    history = tune.Tuner.restore(folder / "sweep", print).fit()[0].metrics_history
    assert [each["step"] for each in history] == list(range(8)) and [
        each["training_iteration"] for each in history
    ] == list(range(1, 9))


def test_ctrl_c_once_lets_trials_clean_up_and_says_how_to_go_on(folder: Path) -> None:
    program = Program(folder)
    (folder / "go-0").touch()
    (folder / "go-1").touch()
    program.at(2)
    program.process.send_signal(signal.SIGINT)
    assert program.process.stderr is not None
    eventually(
        lambda: (
            "stopping, 5 s; Ctrl-C again ends it now" in program.process.stderr.readline()
            or program.process.poll() is not None
        ),
        what="its word",
    )
    (folder / "go-2").touch()  # reports within the grace
    out, error = program.end()
    assert (
        out == ""
        and "KeyboardInterrupt" in error
        and f"Tuner.restore('{folder / 'sweep'}', trainable).fit() goes on with it" in error
    )
    assert sorted((folder / "finally").read_text().split()) == sorted(
        {str(trial) for trial, _ in program.steps()}
    )
    (folder / "go").touch()
    out, error = Program(folder).end()
    assert out == WHOLE, error


def test_ctrl_c_twice_ends_it_at_once(folder: Path) -> None:
    program = Program(folder)
    (folder / "go-0").touch()
    program.at(1)
    assert program.process.stderr is not None
    program.process.send_signal(signal.SIGINT)
    eventually(
        lambda: "Ctrl-C again ends it now" in program.process.stderr.readline(), what="its word"
    )
    program.process.send_signal(signal.SIGINT)
    out, error = program.end()
    assert out == "" and "KeyboardInterrupt" in error and not (folder / "finally").exists()
    (folder / "go").touch()
    out, error = Program(folder).end()
    assert out == WHOLE, error


def test_g4_a_second_engine_is_refused_with_host_and_pid_of_the_first(folder: Path) -> None:
    first = Program(folder)
    first.at(0)
    with pytest.raises(BlockingIOError, match=f"pid {first.process.pid} on "):
        tune.Tuner.restore(folder / "sweep", print).fit()
    (folder / "go").touch()
    out, error = first.end()
    assert out == WHOLE, error
    assert os.path.exists(folder / "sweep" / "sweep.db")
