"""Submitted sweeps: a handle that outlives its program, results, an end by a person, an engine
whose process is lost.

Method: a real cluster; trials wait for files, so that what happens meanwhile is the test's to say;
programs of their own where a program ends.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

from troupe import exceptions, tune

cloudpickle.register_pickle_by_value(sys.modules[__name__])

PROGRAM = """
import sys
from pathlib import Path
from troupe import tune
folder = Path(sys.argv[1])

@tune.sweep(remote=True, metric="x", mode="max", space={"a": tune.grid_search([1, 2, 3])}, storage=folder, name="left")
def train(a, go):
    import time
    tune.report({"x": a})
    while not Path(go).exists():
        time.sleep(0.02)  # lint-ok: a trial that waits for the test
    tune.report({"x": 10 * a})

print(train.submit(go=str(folder / "go")).name)
"""


def swept(folder: Path, name: str) -> tune.SweepFunction:
    """Three trials with two reports each, the second once the file `go` is there."""

    @tune.sweep(
        remote=True,
        metric="x",
        mode="max",
        space={"a": tune.grid_search([1, 2, 3])},
        storage=folder,
        name=name,
    )
    def train(a: int, go: str) -> None:
        import time

        tune.report({"x": a})
        while not Path(go).exists():
            time.sleep(0.02)  # lint-ok: a trial that waits for the test
        tune.report({"x": 10 * a})

    return train


def running(handle: tune.SweepHandle, trials: int = 3) -> Callable[[], bool]:
    return lambda: (
        handle.status()["trials"]["running"] == trials and handle.status()["best"] is not None
    )


def test_a_sweep_outlives_the_program_that_submitted_it(idle: Home, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    address = idle.json("status")["address"]
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        env={**os.environ, "TROUPE_ADDRESS": address},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert (done.returncode, done.stdout) == (0, "left\n"), done.stderr
    handle = tune.attach("left")
    eventually(running(handle), what="three running trials")
    status = handle.status()
    assert (
        status["state"] == "running"
        and status["trials_planned"] == 3
        and not handle.done()
        and status["best"]["config"]["a"] <= 3
    )
    with pytest.raises(
        exceptions.GetTimeoutError, match="sweep left has not ended after 0.01 s; it goes on"
    ):
        handle.result(timeout=0.01)
    (tmp_path / "go").touch()
    grid = pickle.loads(pickle.dumps(handle)).result(TIMEOUT_S)
    assert len(grid) == 3 and grid.get_best_result().metrics["x"] == 30
    assert (
        handle.done()
        and handle.status()["over"] == "all trials are over"
        and handle.status()["best"]["value"] == 30
    )
    with pytest.raises(ValueError, match="no sweep called 'lefd' in .*: did you mean 'left'?"):
        tune.attach("lefd", storage=tmp_path)


def test_g3_where_its_engine_is_killed_another_goes_on(idle: Home, tmp_path: Path) -> None:
    handle = swept(tmp_path, "killed").submit(go=str(tmp_path / "go"))
    eventually(running(handle), what="three running trials")
    first = handle.status()["engine"]["pid"]
    os.kill(first, signal.SIGKILL)
    eventually(
        lambda: running(handle)() and handle.status()["engine"].get("pid") not in (None, first),
        what="another engine",
    )
    (tmp_path / "go").touch()
    grid = handle.result(TIMEOUT_S)
    assert (
        [each.config["a"] for each in grid] == [1, 2, 3]
        and [each.metrics["x"] for each in grid] == [10, 20, 30]
        and not grid.errors
    )


def test_a_sweep_that_is_stopped_has_no_result_and_its_name_is_taken(
    idle: Home, tmp_path: Path
) -> None:
    train = swept(tmp_path, "stopped")
    handle = train.submit(go=str(tmp_path / "go"))
    eventually(running(handle), what="three running trials")
    with pytest.raises(FileExistsError, match="`troupe sweep resume stopped` goes on with it"):
        train.submit(go="")
    with pytest.raises(FileExistsError, match="a sweep called stopped runs in this cluster"):
        swept(tmp_path / "elsewhere", "stopped").submit(go="")
    handle.stop()
    assert handle.status()["state"] == "stopped" and handle.status()["trials"]["waiting"] == 3
    with pytest.raises(
        tune.TuneError,
        match="sweep stopped was stopped, and has no result yet\n.*troupe sweep resume stopped",
    ):
        handle.result(TIMEOUT_S)


def test_a_sweep_that_can_never_be_is_refused_before_it_starts(idle: Home, tmp_path: Path) -> None:
    train = swept(tmp_path, "never")
    with pytest.raises(ValueError, match="compares trials"):
        train.options(metric=None, mode=None, stop_early="asha").submit(go="")
    with pytest.raises(ValueError, match="a"):
        train.options(space={"a": tune.choice([])}).submit(go="")
    assert not (tmp_path / "never").exists()
