"""A tracking store that is a file of the caller's: ranks on every node log to it, and have none of
their own.

Method: two nodes that speak over TLS, one rank on each; what is in the store is asked of a program
that has nothing else to do with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, eventually
from servers import needs_mlflow

import troupe
from troupe.launch import distributed

pytestmark = needs_mlflow
cloudpickle.register_pickle_by_value(sys.modules[__name__])
LIMIT_S = 4 * TIMEOUT_S
READ = """
import json, sys, mlflow
mlflow.set_tracking_uri(sys.argv[1])
client = mlflow.MlflowClient()
runs = client.search_runs([each.experiment_id for each in client.search_experiments()])
print(json.dumps([{"status": run.info.status, "metrics": run.data.metrics, "params": run.data.params, "tags": run.data.tags} for run in runs]))
"""
LOST = """
import os, signal, sys
import troupe
from troupe.launch import distributed

@distributed(processes=1, remote=True)
def wait():
    import mlflow
    mlflow.log_metric("begun", 1)
    open(sys.argv[2], "w").close()
    signal.pause()

troupe.init(sys.argv[1])
print(wait.submit().id, flush=True)
signal.pause()
"""


def has_samples(run: str, nodes: int) -> None:
    """Returns once the run has system metrics of so many nodes, by asking for it."""
    import mlflow

    def of_nodes() -> set[str]:
        return {
            name.split("/")[1]
            for name in mlflow.MlflowClient().get_run(run).data.metrics
            if name.startswith("system/")
        }

    while len(of_nodes()) < nodes:  # the launch has a limit
        threading.Event().wait(0.2)


@distributed(processes=2, remote=True, strategy="STRICT_SPREAD", timeout=LIMIT_S)
def train(store: str) -> tuple[str, str]:
    import mlflow

    mlflow.set_tracking_uri(store)  # as programs do that run alone too
    with mlflow.start_run() as run:
        mlflow.log_metric("rank_" + os.environ["RANK"], 1)
        mlflow.log_param("rank", os.environ["RANK"])
        has_samples(run.info.run_id, 2)
    return run.info.run_id, os.environ["MLFLOW_TRACKING_URI"]


def runs_in(store: str, folder: Path) -> list[dict]:
    done = subprocess.run(
        [sys.executable, "-c", READ, store],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=folder,
        check=True,
    )
    return list(json.loads(done.stdout))


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("folder", marks=pytest.mark.long)])
def test_a9_ranks_on_every_node_log_to_the_callers_own_store(
    hosts: dict[str, str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = f"sqlite:///{tmp_path}/own.db" if kind == "sqlite" else str(tmp_path / "runs")
    if kind == "folder":
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions ask for it
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    handle = train.submit(store)
    (run, first), (same, second) = handle.result(LIMIT_S)
    assert run == same and first != second and first.startswith("http://127.0.0.1:")
    (found,) = runs_in(store, tmp_path)
    assert (
        found["status"] == "FINISHED"
        and found["tags"]["troupe.launch"] == handle.id
        and found["params"] == {"rank": "0"}
    )
    assert found["metrics"]["rank_0"] == found["metrics"]["rank_1"] == 1
    assert {name.split("/")[1] for name in found["metrics"] if name.startswith("system/")} == {
        "a",
        "b",
    }
    assert not (tmp_path / "mlflow.db").exists()


@pytest.mark.long
def test_a_caller_that_is_killed_leaves_no_run_open(hosts: dict[str, str], tmp_path: Path) -> None:
    """The process that has the store notices, and closes what was open; then it ends too."""
    store = f"sqlite:///{tmp_path}/own.db"

    def status() -> list[tuple[str]]:
        with contextlib.closing(
            sqlite3.connect(tmp_path / "own.db", timeout=TIMEOUT_S)
        ) as database:
            return database.execute("SELECT status FROM runs").fetchall()

    (tmp_path / "lost.py").write_text(LOST)
    caller = subprocess.Popen(
        [
            sys.executable,
            "lost.py",
            troupe.get_runtime_context().gcs_address,
            str(tmp_path / "begun"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MLFLOW_TRACKING_URI": store},
    )
    assert caller.stdout is not None and caller.stdout.readline()
    eventually((tmp_path / "begun").exists, timeout=LIMIT_S, what="the first metric")
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    eventually(lambda: status() == [("KILLED",)], timeout=LIMIT_S, what="the end of the run")


def test_a_detached_launch_has_no_run_in_a_store_that_ends_before_it(
    hosts: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/own.db")

    @distributed(processes=1, remote=True)
    def variables() -> bool:
        return "TROUPE_TRACKER" in os.environ

    assert variables.options(detach=True).submit().result(LIMIT_S) == [False]
    assert "the launch is not tracked: it is detached, and sqlite:///" in capfd.readouterr().err
