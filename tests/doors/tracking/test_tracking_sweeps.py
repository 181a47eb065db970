"""A sweep's runs in MLflow: one for it, one for each trial, and what becomes of them where the
server is away.

Method: a real server of MLflow's and real sweeps; what the server has is asked over its HTTP
interface.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from servers import Server, front, needs_mlflow

from troupe import tune
from troupe.tune import ResultGrid, RunConfig, TuneConfig, Tuner

pytestmark = needs_mlflow
cloudpickle.register_pickle_by_value(sys.modules[__name__])
LIMIT_S = 4 * TIMEOUT_S


@pytest.fixture(autouse=True)
def loaded() -> None:
    """MLflow, which takes long to load beside other tests: what is waited for is the server."""
    import mlflow

    mlflow.set_tracking_uri(None)


def train(config: dict) -> None:
    for step in range(1, 4):
        tune.report(
            {
                "loss": config["lr"] / step,
                "by": {"class": step},
                "text": "no number",
                "odd/": float("nan"),
            }
        )
        if config["lr"] == 4 and step == 2:
            raise KeyError("four")
        if config.get("go"):
            from pathlib import Path

            Path(config["go"], "reported").touch()
            while not Path(config["go"], "go").exists():
                os.sched_yield()


def swept(folder: Path, logger: Any, rates: list[float], **config: Any) -> ResultGrid:
    return Tuner(
        train,
        param_space={"lr": tune.grid_search(rates), "opt": {"name": "adam"}, **config},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=RunConfig(
            name=folder.name,
            storage_path=folder,
            callbacks=[logger],
            stop=lambda trial, result: result["loss"] > 4,
        ),
    ).fit()


def test_a_run_for_the_sweep_and_one_below_it_for_each_trial(
    idle: Home, server: Server, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    logger = tune.logger.MLflowLoggerCallback(
        server.uri, experiment_name="sweeps", tags={"team": "a"}
    )
    grid = swept(tmp_path, logger, [1, 2, 4])
    own, trials = server.runs_of_sweep(tmp_path.name)
    assert (
        own["status"] == "FINISHED"
        and own["tags"]["troupe.trials"] == "3"
        and own["name"] == tmp_path.name
    )
    assert (
        own["metrics"] == {"loss": 1 / 3}
        and own["tags"]["troupe.best_trial"] == grid.get_best_result().trial_id
    )
    by_rate = {each["params"]["lr"]: each for each in trials.values()}
    assert {rate: each["status"] for rate, each in by_rate.items()} == {
        "1": "FINISHED",
        "2": "FINISHED",
        "4": "FAILED",
    }
    first = by_rate["1"]
    assert (
        first["params"] == {"lr": "1", "opt/name": "adam"}
        and first["metrics"]["by/class"] == 3.0
        and first["metrics"]["loss"] == 1 / 3
        and "odd" in first["metrics"]
    )
    assert (
        first["tags"]["team"] == "a"
        and first["tags"]["trial_name"] == first["name"]
        and "KeyError: 'four'" in by_rate["4"]["tags"]["troupe.error"]
    )
    assert not {"pid", "text", "config/lr"} & set(first["metrics"])
    history = server_get(server, f"metrics/get-history?run_id={first['id']}&metric_key=loss")[
        "metrics"
    ]
    assert [(each["step"], each["value"]) for each in history] == [
        (step, 1 / step) for step in (1, 2, 3)
    ]
    said = capfd.readouterr().err
    assert (
        f"troupe.tune: sweep {tmp_path.name}: MLflow: {server.uri}/#/experiments/" in said
        and own["id"] in said
    )
    assert "MLFLOW_HTTP_REQUEST_TIMEOUT" not in os.environ


def server_get(server: Server, path: str) -> Any:
    import json
    import urllib.request

    return json.loads(
        urllib.request.urlopen(f"{server.uri}/api/2.0/mlflow/{path}", timeout=60).read()
    )


def test_a_decorated_sweep_is_below_the_active_run_and_says_why_a_trial_was_stopped(
    idle: Home, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)

    @tune.sweep(
        remote=True,
        tracking=True,
        quiet=True,
        storage=tmp_path,
        name="decorated",
        metric="acc",
        mode="max",
        max_concurrent=1,
        space={"lr": tune.grid_search([3, 2, 1])},
        stop_early="asha",
        reduction_factor=2,
        max_t=4,
    )
    def climb(lr: int) -> None:
        for step in range(4):
            tune.report({"acc": lr * step})

    with mlflow.start_run(run_name="outer") as outer:
        grid = climb.sweep()
    own, trials = server.runs_of_sweep("decorated")
    assert own["tags"]["mlflow.parentRunId"] == outer.info.run_id and own["metrics"] == {"acc": 9.0}
    assert {
        each["params"]["lr"]: each["tags"].get("troupe.stopped", "") for each in trials.values()
    } == {str(each.config["lr"]): each.stopped for each in grid}
    assert any(each.stopped for each in grid) and {each["status"] for each in trials.values()} == {
        "FINISHED"
    }


def test_a_server_that_is_down_is_one_line_and_ends_nothing(
    idle: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    with front() as gone:
        uri = gone.uri
    grid = swept(tmp_path, tune.logger.MLflowLoggerCallback(uri), [1, 2])
    assert not grid.errors and len(grid) == 2
    lines = [line for line in capfd.readouterr().err.splitlines() if "MLflow" in line]
    assert len(lines) == 1 and f"MLflow: no run in {uri}: " in lines[0] and "refused" in lines[0], (
        lines
    )


def test_a_server_that_goes_away_in_the_middle_costs_what_was_reported_meanwhile(
    idle: Home, server: Server, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    """Reported when it goes, and at the end the losses; the trials report on."""

    class Ends(tune.Callback):
        def on_trial_result(
            self, iteration: int, trials: Any, trial: Any, result: dict, **info: Any
        ) -> None:
            if iteration == 0:
                eventually(
                    lambda: [
                        each
                        for each in server.runs()
                        if each["name"] == trial.trial_name and "loss" in each["metrics"]
                    ],
                    what="the first metric",
                )
                before.die()
                (tmp_path / "go").touch()

    with front(server.port) as before:
        logger = tune.logger.MLflowLoggerCallback(before.uri)
        grid = Tuner(
            train,
            param_space={"lr": 1, "go": str(tmp_path)},
            run_config=RunConfig(
                name=tmp_path.name, storage_path=tmp_path, callbacks=[logger, Ends()]
            ),
        ).fit()
    assert not grid.errors and grid[0].metrics["training_iteration"] == 3
    lines = [line for line in capfd.readouterr().err.splitlines() if "MLflow" in line]
    assert (
        len(lines) == 3
        and f"{before.uri} is away" in lines[1]
        and "2 reports are not there" in lines[2]
        and "2 runs stay RUNNING" in lines[2]
    ), lines


@pytest.mark.long
def test_a_sweep_that_is_restored_goes_on_with_its_runs(
    idle: Home, server: Server, tmp_path: Path
) -> None:
    """Killed in the middle, with one trial running: the same run for the sweep, and the same for
    the trial."""
    script = tmp_path / "script.py"
    script.write_text(f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from troupe import tune

def train(config):
    for step in range(1, 4):
        tune.report({{"loss": 1 / step}})
        Path(sys.argv[1], "reported").touch()
        while not Path(sys.argv[1], "go").exists():
            os.sched_yield()

if len(sys.argv) > 2:
    tune.Tuner.restore(os.path.join(sys.argv[1], "again"), train).fit()
else:
    tune.Tuner(train, run_config=tune.RunConfig(name="again", storage_path=sys.argv[1],
               callbacks=[tune.logger.MLflowLoggerCallback({server.uri!r})])).fit()
""")
    first = subprocess.Popen([sys.executable, str(script), str(tmp_path)])
    try:
        eventually(
            lambda: (
                [each for each in server.runs() if each["tags"].get("troupe.sweep") == "again"]
                and [
                    each
                    for each in server.runs_of_sweep("again")[1].values()
                    if each["metrics"].get("loss") == 1
                ]
            ),
            timeout=LIMIT_S,
            what="the trial's first metric in MLflow",
        )
    finally:
        first.kill()
        first.wait()
    before, trials_before = server.runs_of_sweep("again")
    (tmp_path / "go").touch()
    subprocess.run([sys.executable, str(script), str(tmp_path), "-"], check=True, timeout=LIMIT_S)
    after, trials_after = server.runs_of_sweep("again")
    assert before["id"] == after["id"] and (before["status"], after["status"]) == (
        "RUNNING",
        "FINISHED",
    )
    (one,), (other,) = trials_before.values(), trials_after.values()
    assert (
        one["id"] == other["id"]
        and other["status"] == "FINISHED"
        and other["metrics"]["loss"] == 1 / 3
    )


def test_a_token_is_in_no_file_of_the_sweeps(tmp_path: Path) -> None:
    logger = tune.logger.MLflowLoggerCallback(
        "http://me:secret@host:1/", tracking_token="other secret"
    )
    assert b"secret" not in cloudpickle.dumps(logger)
