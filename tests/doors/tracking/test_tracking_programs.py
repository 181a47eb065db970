"""A9, A14: programs as ranks, the driver of a `@ray_launch` with its monitor, callers that die, and
where credentials are not.

Method: `troupe submit` and programs of their own against a cluster that runs; what is there to read
of a launch is searched for a secret.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from servers import Server, needs_mlflow

import troupe
from troupe.launch import distributed, ray_launch

pytestmark = needs_mlflow
cloudpickle.register_pickle_by_value(sys.modules[__name__])
LIMIT_S = 4 * TIMEOUT_S
SECRET = "gr4v3l-and-s4nd"
TRAIN = """
import os
import mlflow
mlflow.log_metric("rank_" + os.environ["RANK"], 1)
mlflow.set_tag("token." + os.environ["RANK"], str(os.environ.get("MLFLOW_TRACKING_TOKEN") == os.environ["EXPECTED"]))
"""
CALLER = """
import signal, sys
import troupe
from troupe.launch import distributed

@distributed(processes=1, remote=True)
def wait():
    open(sys.argv[2], "w").close()
    signal.pause()

troupe.init(sys.argv[1])
print(wait.submit().id, flush=True)
signal.pause()
"""


@pytest.mark.long
def test_a9_ranks_of_a_program_log_to_the_launchs_run_with_the_callers_credentials(
    cluster: Home, server: Server, tmp_path: Path
) -> None:
    """Forked ones and executed ones; the token is theirs, and in no status, list, log or command
    line."""
    (tmp_path / "train.py").write_text(TRAIN)
    environment = {
        "MLFLOW_TRACKING_URI": server.uri,
        "MLFLOW_TRACKING_TOKEN": SECRET,
        "EXPECTED": SECRET,
        "TROUPE_ADDRESS": "",
        "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "false",
    }
    for how in ([], ["--fresh"]):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "troupe",
                "submit",
                "--ranks",
                "2",
                "--env",
                "EXPECTED",
                *how,
                "train.py",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, **environment},
        )
        assert done.returncode == 0, done.stderr
        launch = troupe.state.list_launches()[-1]["id"]
        run = server.ended(launch)
        assert (
            run["status"] == "FINISHED"
            and run["metrics"] == {"rank_0": 1, "rank_1": 1}
            and run["name"] == "train.py"
        )
        assert run["tags"]["token.0"] == run["tags"]["token.1"] == "True" and run["tags"][
            "mlflow.source.name"
        ] == str(tmp_path / "train.py")
        link = next(line for line in done.stderr.splitlines() if "MLflow:" in line)
        assert (
            link == f"launch {launch[:4]} · MLflow: {server.uri}/#/experiments/0/runs/{run['id']}"
        )
        seen = [done.stdout, done.stderr, str(run), *cluster.processes().values()]
        seen += [
            cluster.run(*words).stdout
            for words in (["status"], ["status", "--json"], ["logs", launch])
        ]
        assert not any(SECRET in each for each in seen)
    logs = [path for path in cluster.path.rglob("*.log") if path.is_file()]
    assert logs and not any(SECRET.encode() in path.read_bytes() for path in logs)


@pytest.mark.parametrize(
    "how",
    [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)],
    ids=lambda each: each.name,
)
def test_a_caller_that_dies_leaves_no_run_open(
    cluster: Home, server: Server, tmp_path: Path, how: signal.Signals
) -> None:
    """The launch ends with it, and the run with the launch."""
    caller = subprocess.Popen(
        [
            sys.executable,
            "-c",
            CALLER,
            troupe.get_runtime_context().gcs_address,
            str(tmp_path / "begun"),
        ],
        text=True,
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "MLFLOW_TRACKING_URI": server.uri,
            "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "0",
        },
    )
    assert caller.stdout is not None
    launch = caller.stdout.readline().strip()
    eventually((tmp_path / "begun").exists, timeout=LIMIT_S, what="the start of the rank")
    caller.send_signal(how)
    caller.wait()
    assert server.ended(launch)["status"] == "KILLED"


def test_a9_a_run_that_the_caller_names_is_the_launchs(
    cluster: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLFLOW_RUN_ID: it gets what the ranks log, and does not end with the launch."""
    named = server.ask("runs/create", experiment_id="0", run_name="mine")["run"]["info"]["run_id"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    monkeypatch.setenv("MLFLOW_RUN_ID", named)

    @distributed(processes=1, remote=True)
    def train() -> None:
        import mlflow

        mlflow.MlflowClient().log_metric(os.environ["MLFLOW_RUN_ID"], "loss", 1)

    handle = train.submit()
    handle.result(LIMIT_S)
    (run,) = server.runs(handle.id)
    assert (
        run["id"] == named
        and run["name"] == "mine"
        and run["status"] == "RUNNING"
        and run["metrics"]["loss"] == 1
    )


def test_a14_samples_of_the_monitor_reach_the_launchs_run(
    cluster: Home, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has not imported MLflow itself; the node's own system metrics are there beside
    them, and the actors' logs."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)

    @ray_launch(processes=1, remote=True, timeout=LIMIT_S)
    def drive() -> None:
        import troupe as ray
        from troupe.serverless_gpu import RayMetricsMonitor

        @ray.remote(num_cpus=0)
        class Trainer:
            def train(self, number: int) -> None:
                import mlflow

                mlflow.log_metric(f"actor_{number}", 1)
                mlflow.log_param("number", number)

        actors = [Trainer.remote() for _ in range(2)]
        ray.get([each.train.remote(number) for number, each in enumerate(actors)])
        with RayMetricsMonitor(remote=True, sampling_interval=0.2) as monitor:
            while monitor._step < 3:
                threading.Event().wait(0.1)

    handle = drive.submit()
    handle.result(LIMIT_S)
    run = server.ended(handle.id)
    node = troupe.nodes()[0]
    assert (
        f"system/{node['NodeManagerAddress']}/ray_node_{node['NodeID']}/system_memory_usage_percentage"
        in run["metrics"]
    )
    assert "system/one/system_memory_usage_percentage" in run["metrics"]
    assert run["metrics"]["actor_0"] == run["metrics"]["actor_1"] == 1 and run["params"][
        "number"
    ] in ("0", "1")
