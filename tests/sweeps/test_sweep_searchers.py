"""Searchers and stoppers of real sweeps: each hears how every trial ended, also after the last one.

Method: searchers that write down what they hear, and are slower than the trials; Optuna's study is
read after `fit()` has returned.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

from troupe import tune
from troupe.tune import RunConfig, TuneConfig, Tuner
from troupe.tune.search import ConcurrencyLimiter, Repeater, Searcher

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def report_it(config: dict) -> None:
    tune.report({"x": config["a"]})


class Writes(Searcher):
    """Writes down each end that it hears of.

    Once it has made all of its `most` suggestions it waits for `go`: the sweep is over before it
    has heard the rest.
    """

    def __init__(self, folder: Path, most: int) -> None:
        super().__init__(metric="x", mode="max")
        self.folder, self.most, self.count = folder, most, 0

    def suggest(self, trial_id: str) -> dict[str, Any]:
        self.count += 1
        return {"a": self.count}

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        if self.count == self.most:
            eventually(lambda: (self.folder / "go").exists())
        with (self.folder / "heard").open("a") as file:
            file.write(json.dumps([trial_id[-5:], (result or {}).get("x"), error]) + "\n")


class Opens(tune.Callback):
    """Lets the searcher go on once all trials have ended."""

    def __init__(self, folder: Path, trials: int) -> None:
        self.folder, self.left = folder, trials

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self.left -= 1
        if not self.left:
            (self.folder / "go").touch()


def heard(folder: Path) -> list[list]:
    return sorted(json.loads(line) for line in (folder / "heard").read_text().splitlines())


@pytest.mark.parametrize("kind", ["own", "batch", "repeater"])
def test_a_searcher_hears_how_the_last_trials_ended(idle: Home, tmp_path: Path, kind: str) -> None:
    """`own`: a slow one.

    `batch`: of a batch that is not full. `repeater`: of a suggestion that was tried less often than
    asked for.
    """
    wrapped: Any = {
        "own": lambda own: own,
        "batch": lambda own: ConcurrencyLimiter(own, 3, batch=True),
        "repeater": lambda own: Repeater(own, 3),
    }[kind]
    trials = 5
    if kind != "own":
        (tmp_path / "go").touch()
    grid = Tuner(
        report_it,
        tune_config=TuneConfig(search_alg=wrapped(Writes(tmp_path, trials)), num_samples=trials),
        run_config=RunConfig(
            name="sweep", storage_path=tmp_path, callbacks=[Opens(tmp_path, trials)], verbose=0
        ),
    ).fit()
    assert len(grid) == trials and not grid.errors
    # an id for which the searcher had nothing yet is not always used later: which ids there are,
    # the grid says
    ids = {
        each.metrics["x"]: each.metrics["trial_id"][-5:] for each in reversed(list(grid))
    }  # the first of those that are repeated
    assert heard(tmp_path) == sorted(
        [ids[x], x, False] for x in ([1, 2] if kind == "repeater" else range(1, trials + 1))
    )


def test_optunas_study_has_every_trial_when_fit_returns(idle: Home, tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    from troupe.tune.search.optuna import OptunaSearch

    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study.db")
    search = OptunaSearch(seed=1, storage=storage, study_name="digits")
    grid = Tuner(
        report_it,
        param_space={"a": tune.uniform(0, 1)},
        tune_config=TuneConfig(metric="x", mode="max", search_alg=search, num_samples=8),
        run_config=RunConfig(name="sweep", storage_path=tmp_path, verbose=0),
    ).fit()
    study = optuna.load_study(study_name="digits", storage=f"sqlite:///{tmp_path}/study.db")
    assert sorted(trial.value for trial in study.trials) == sorted(
        each.metrics["x"] for each in grid
    )
    assert len(study.trials) == 8


HANGS = """
import sys, threading
from pathlib import Path
import troupe
from troupe import tune
from troupe.tune.search import Searcher

class Hangs(Searcher):
    def suggest(self, trial_id): return {{}}
    def on_trial_complete(self, trial_id, result=None, error=False):
        if {raises}:
            raise ValueError("no trial of mine")
        Path({folder!r}, "hangs").touch()
        threading.Event().wait()

troupe.init(num_cpus=1)
print(tune.Tuner(lambda config: {{"x": 1}}, tune_config=tune.TuneConfig(search_alg=Hangs(), num_samples=1),
                 run_config=tune.RunConfig(name="sweep", storage_path={folder!r})).fit()[0].metrics["x"], flush=True)
"""


def test_ctrl_c_ends_the_wait_for_a_searcher_that_hangs_and_the_results_are_there(
    home: Home, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGS.format(folder=str(tmp_path), raises=False)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    eventually(lambda: (tmp_path / "hangs").exists())
    eventually(lambda: '"kind":"leave"' in _journal_text(tmp_path / "sweep"))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=4 * TIMEOUT_S)
    assert out == "1\n" and process.returncode == 0, err
    assert "the searcher did not hear the end of all trials: 1 call" in err, err


def test_what_a_searcher_raises_at_the_end_is_raised_by_fit(home: Home, tmp_path: Path) -> None:
    done = home.python(HANGS.format(folder=str(tmp_path), raises=True), timeout=4 * TIMEOUT_S)
    assert done.returncode == 1 and "ValueError: no trial of mine" in done.stderr, done.stderr


def _journal_text(folder: Path) -> str:
    return "".join(path.read_bytes().decode(errors="replace") for path in folder.glob("sweep.db*"))


class AfterFailures(tune.Stopper):
    """Ends the sweep once a trial's function has said that it will fail."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return (self.folder / "failed").exists()


@pytest.mark.parametrize("retries", [0, 3])
def test_whether_all_is_done_is_asked_after_failures_and_ends_too(
    idle: Home, tmp_path: Path, retries: int
) -> None:
    def fails(config: dict) -> None:
        (tmp_path / "failed").touch()
        raise ValueError("bad")

    grid = Tuner(
        fails,
        tune_config=TuneConfig(num_samples=20, max_concurrent_trials=1),
        run_config=RunConfig(
            name="sweep",
            storage_path=tmp_path,
            stop=AfterFailures(tmp_path),
            failure_config=tune.FailureConfig(max_failures=retries),
            verbose=0,
        ),
    ).fit()
    assert len(grid) < 20 and [each.metrics for each in grid] == [{}] * len(grid), grid


def test_each_point_of_a_grid_that_a_function_returns_is_a_trial_and_counted(
    idle: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    space = {
        "b": tune.randint(1, 1000),
        "a": tune.sample_from(lambda spec: tune.grid_search([spec.config.b, -spec.config.b, 0])),
    }
    grid = Tuner(
        report_it,
        param_space=space,
        tune_config=TuneConfig(metric="x", mode="max", num_samples=2),
        run_config=RunConfig(name="grids", storage_path=tmp_path),
    ).fit()
    found = [(each.config["a"], each.config["b"]) for each in grid]
    (_, first), (_, second) = found[0], found[3]
    assert (
        found == [(each, drawn) for drawn in (first, second) for each in (drawn, -drawn, 0)]
        and grid.num_errors == 0
    )
    assert "6/6 trials" in capfd.readouterr().err
    (listed,) = json.loads(idle.run("sweep", "list", "--storage", str(tmp_path), "--json").stdout)
    assert (listed["trials"]["completed"], listed["trials_planned"]) == (6, 6)
