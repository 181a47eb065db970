"""A9: a run per launch in MLflow: what every rank logs, whose it is, and how it ends.

Method: a real server of MLflow's, a cluster that runs, and launches from this process or from
programs of their own; what the server has is asked over its HTTP interface.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from servers import Server, needs_mlflow

import troupe
from troupe import exceptions
from troupe.launch import distributed

pytestmark = needs_mlflow
cloudpickle.register_pickle_by_value(sys.modules[__name__])
LIMIT_S = 4 * TIMEOUT_S
PROGRAM = """
import os
import mlflow
import troupe
from troupe.launch import distributed

@distributed(processes=2, remote=True, name="digits", inherit_env=["FOUND"])
def train(epochs):
    rank = int(os.environ["RANK"])
    for step in range(epochs):
        mlflow.log_metric(f"loss/{rank}", 1 / (step + 1), step=step)
    mlflow.log_param("lr", 0.1 * (rank + 1))
    mlflow.log_params({"rank": rank})
    with open(os.environ["FOUND"] + str(rank), "w") as file:
        file.write(mlflow.active_run().info.run_id)
    mlflow.end_run()
    mlflow.MlflowClient().set_tag(open(file.name).read(), f"after.{rank}", "yes")

troupe.init(os.environ["CLUSTER"])
mlflow.set_experiment("numbers")
with mlflow.start_run(run_name="outer") as outer:
    handle = train.submit(3)
    handle.print_logs(follow=True)
    handle.result()
print(outer.info.run_id, handle.id)
"""


def test_a9_metrics_of_every_rank_reach_one_run_below_the_callers(
    cluster: Home, server: Server, tmp_path: Path
) -> None:
    """The run's parameters are rank 0's, its end is the launch's, its link is printed; it has the
    node's system metrics, a commit, and who made it."""
    script = tmp_path / "w" / "train.py"
    script.parent.mkdir()
    script.write_text(PROGRAM)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(script.parent)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    address = troupe.get_runtime_context().gcs_address
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=script.parent,
        env={
            **os.environ,
            "MLFLOW_TRACKING_URI": server.uri,
            "CLUSTER": address,
            "FOUND": str(tmp_path / "found"),
            "TROUPE_QUIET": "",
        },
    )
    assert done.returncode == 0, done.stderr
    outer, launch = done.stdout.split()[-2:]
    run = server.ended(launch)
    assert {(tmp_path / f"found{rank}").read_text() for rank in (0, 1)} == {run["id"]}
    assert run["status"] == "FINISHED" and run["name"] == "digits"
    assert run["metrics"]["loss/0"] == run["metrics"]["loss/1"] == 1 / 3
    assert run["params"] == {"lr": "0.1", "rank": "0"}
    assert run["tags"]["after.0"] == run["tags"]["after.1"] == "yes"
    assert run["tags"]["mlflow.parentRunId"] == outer and run["tags"]["troupe.ranks"] == "2"
    assert (
        run["tags"]["mlflow.source.name"] == str(script)
        and run["tags"]["mlflow.source.git.commit"] == commit
    )
    assert "system/one/cpu_utilization_percentage" in run["metrics"], run["metrics"]
    link = next(line for line in done.stderr.splitlines() if "/runs/" in line)
    assert link.startswith(
        f"launch {launch[:4]} · MLflow: {server.uri}/#/experiments/"
    ) and link.endswith(run["id"])
    experiment = server.ask("experiments/search", max_results=100, filter="name = 'numbers'")[
        "experiments"
    ][0]["experiment_id"]
    assert f"/experiments/{experiment}/" in link


def test_a_run_ends_as_the_marker_says(
    cluster: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception, kill -9 and a cancel; the ranks themselves never import MLflow."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")

    @distributed(processes=1, remote=True)
    def end(how: str) -> None:
        assert "mlflow" not in sys.modules
        if how == "raise":
            raise KeyError("lost")
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()

    raised, killed, cancelled = (end.submit(how) for how in ("raise", "kill", "cancel"))
    cancelled.wait_state(lambda info: info["state"] == "running", LIMIT_S)
    cancelled.cancel(grace=0)
    with pytest.raises(KeyError):
        raised.result(LIMIT_S)
    with pytest.raises(exceptions.LaunchError, match="SIGKILL"):
        killed.result(LIMIT_S)
    assert [server.ended(each.id)["status"] for each in (raised, killed, cancelled)] == [
        "FAILED",
        "FAILED",
        "KILLED",
    ]
    assert not any(name.startswith("system/") for name in server.ended(raised.id)["metrics"])
    eventually(
        lambda: not any("Tracker" in command for command in cluster.processes().values()),
        what="the end of the trackers",
    )


def test_a_second_attempt_goes_on_in_the_same_run(
    cluster: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)

    @distributed(processes=1, remote=True, max_attempts=2)
    def train() -> None:
        import mlflow

        epoch = int(os.environ["TROUPE_EPOCH"])
        mlflow.log_metric(f"epoch_{epoch}", epoch)
        if epoch == 1:
            raise OSError("not this time")

    handle = train.submit()
    handle.result(LIMIT_S)
    run = server.ended(handle.id)
    assert run["status"] == "FINISHED" and run["tags"]["troupe.epoch"] == "2"
    assert run["metrics"]["epoch_1"] == 1 and run["metrics"]["epoch_2"] == 2


def test_no_run_where_an_option_or_a_variable_says_so_or_nothing_is_set(
    cluster: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    @distributed(processes=1, remote=True)
    def variables() -> list[str]:
        return [name for name in os.environ if name.startswith(("MLFLOW_RUN", "TROUPE_TRACKER"))]

    assert variables.submit().result(LIMIT_S) == [[]]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    assert variables.options(tracking=False).submit().result(LIMIT_S) == [[]]
    monkeypatch.setenv("TROUPE_TRACKING", "0")
    assert variables.submit().result(LIMIT_S) == [[]]
    with pytest.raises(TypeError, match="tracking must be True, False, or None"):
        variables.options(tracking="yes")
    assert not any("Tracker" in command for command in cluster.processes().values())
