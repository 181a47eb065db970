"""MLflow logging of command jobs: in a store of the job's own where no address reaches it, else in
a run of the caller's store.

Method: jobs through real processes; runs are read back by MLflow's client from what `download`
brought, or from the caller's store.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from azure_jobs import folder_of
from e2e_conftest import Home
from submits import troupe_in

from troupe._tracking.jobs import job_store

mlflow = pytest.importorskip("mlflow")

LOGS = """
import os, sys, tempfile
import mlflow
rank = int(os.environ["RANK"])
mlflow.log_metric("loss", rank)
mlflow.log_param("epochs", 3)
if rank == 0:
    mlflow.log_text("weights", "w.txt")
    mlflow.end_run()
    with mlflow.start_run(run_name="second"):
        mlflow.log_metric("other", 1)
    sys.exit(3)
"""
JOB = f"""
command: {sys.executable} train.py
code: src
environment: e
experiment_name: digits
display_name: shown
tags: {{{{team: vision}}}}
distribution: {{{{type: pytorch, process_count_per_instance: {{ranks}}}}}}
"""


@pytest.fixture(autouse=True)
def _no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of MLflow's, nor of tracking, is set by who runs the tests."""
    for name in [
        name for name in os.environ if name.startswith("MLFLOW_") or name == "TROUPE_TRACKING"
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")


def _runs(uri: str) -> dict[str, Any]:
    """The runs of a store by their names, with their experiment's name and the metrics' values."""
    client = mlflow.MlflowClient(uri)
    found = {}
    for experiment in client.search_experiments():
        for run in client.search_runs([experiment.experiment_id]):
            values = {
                key: sorted(each.value for each in client.get_metric_history(run.info.run_id, key))
                for key in run.data.metrics
                if not key.startswith("system/")
            }
            tags = {
                name: value
                for name, value in run.data.tags.items()
                if not name.startswith("mlflow.")
            }
            artifacts = [each.path for each in client.list_artifacts(run.info.run_id)]
            found[run.info.run_name] = (
                experiment.name,
                run.info.status,
                values,
                run.data.params,
                tags,
                artifacts,
                run.info.run_id,
            )
    return found


def test_ranks_of_a_detached_job_share_one_run_that_download_brings(
    home: Home, tmp_path: Path
) -> None:
    home.run("start", "--head", "--port", "0", "--num-cpus", "4")
    folder_of(tmp_path, **{"src__train.py": LOGS, "job.yml": JOB.format(ranks=3)})
    assert (
        troupe_in(tmp_path, "azure", "job", "create", "-f", "job.yml", "-n", "detached").returncode
        == 0
    )
    streamed = troupe_in(tmp_path, "azure", "job", "stream", "-n", "detached")
    told = [
        line
        for line in (streamed.stdout + streamed.stderr).splitlines()
        if line.startswith("[") and "what this job logs by MLflow is its run" in line
    ]
    assert streamed.returncode == 3 and len(told) == 1, streamed.stderr
    assert (
        troupe_in(
            tmp_path, "azure", "job", "download", "-n", "detached", "--all", "-p", "d"
        ).returncode
        == 0
    )
    runs = _runs(f"sqlite:///{tmp_path}/d/artifacts/mlflow/mlflow.db")
    experiment, status, values, params, tags, artifacts, run = runs.pop("shown")
    assert (experiment, status, params, artifacts) == (
        "digits",
        "FAILED",
        {"epochs": "3"},
        ["w.txt"],
    ) and f"is its run {run} in " in told[0]
    assert 0.0 in values["loss"] and set(values["loss"]) <= {
        0.0,
        1.0,
        2.0,
    }  # others are ended once rank 0 has failed
    assert tags == {"team": "vision", "troupe.job": "detached"}
    assert set(runs) == {"second"} and runs["second"][2] == {"other": [1.0]}


def test_names_and_tags_of_a_job_reach_its_run_in_the_callers_store(
    home: Home, tmp_path: Path
) -> None:
    folder_of(
        tmp_path,
        **{"src__train.py": LOGS.replace("sys.exit(3)", "pass"), "job.yml": JOB.format(ranks=2)},
    )
    uri = f"sqlite:///{tmp_path}/own.db"
    done = troupe_in(
        tmp_path,
        "azure",
        "job",
        "create",
        "-f",
        "job.yml",
        "-n",
        "here",
        "--stream",
        env={"MLFLOW_TRACKING_URI": uri},
    )
    assert (
        done.returncode == 0
        and "own.db" in done.stderr
        and "by MLflow is its run" not in done.stderr
    ), done.stderr
    experiment, status, values, params, tags, _, _ = _runs(uri)["shown"]
    assert (experiment, status, values, params) == (
        "digits",
        "FINISHED",
        {"loss": [0.0, 1.0]},
        {"epochs": "3"},
    )
    assert tags["team"] == "vision" and tags["troupe.ranks"] == "2"


def test_which_jobs_have_a_store_of_their_own(tmp_path: Path) -> None:
    wish = job_store.wish_of("j", "", {"a": "b"}, {}, told="run {run}")
    assert wish == {"name": "j", "experiment": "", "tags": {"a": "b"}, "told": "run {run}"}
    assert job_store.wish_of("j", "", {}, {"TROUPE_TRACKING": "0"}, told="") is None

    def address_of(now: dict[str, str], own: dict[str, str]) -> str | None:
        return job_store.variables(tmp_path, "", wish, now, own).get("MLFLOW_TRACKING_URI")

    store = f"sqlite:///{tmp_path}/mlflow/mlflow.db"
    assert (
        address_of({}, {})
        == address_of({"MLFLOW_TRACKING_URI": "sqlite:///mlflow.db"}, {})
        == store
    )  # a file of the caller's is not here
    assert address_of({"MLFLOW_TRACKING_URI": "http://server"}, {}) is None
    assert (
        address_of(
            {"MLFLOW_TRACKING_URI": "file:///shared"}, {"MLFLOW_TRACKING_URI": "file:///shared"}
        )
        is None
    )
    assert address_of({"MLFLOW_RUN_ID": "a"}, {}) is None
    assert (
        job_store.variables(tmp_path, "node", wish, {"PYTHONPATH": "src"}, {})["PYTHONPATH"]
        == f"{job_store.HOOK}:src"
    )
