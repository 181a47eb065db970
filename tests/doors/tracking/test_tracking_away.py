"""Tracking never fails a training: servers that are down, that hang, that die in the middle, and addresses where there is none.

Method: ranks that log by MLflow's own functions, as they would; in front of the real server stands a port that the test closes. What is said is counted.
"""
from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from servers import Server, front, needs_mlflow

from troupe.launch import distributed

pytestmark = needs_mlflow
cloudpickle.register_pickle_by_value(sys.modules[__name__])
LIMIT_S = 4 * TIMEOUT_S


@distributed(processes=2, remote=True)
def train(experiment: str = "") -> int:
    import mlflow

    if experiment:
        mlflow.set_experiment(experiment)
    with mlflow.start_run():
        mlflow.log_param("lr", 0.1)
        mlflow.log_metrics({"loss": 1.0, "accuracy": 0.5})
        mlflow.set_tag("a", "b")
    mlflow.log_metric("after", 1)
    return int(os.environ["RANK"])


@distributed(processes=2, remote=True)
def train_on(begun: str, go: str) -> int:
    import mlflow

    mlflow.log_metric("before" + os.environ["RANK"], 1)
    Path(begun + os.environ["RANK"]).touch()
    with open(go, "rb", buffering=0) as gate:  # a pipe, in which the test puts a byte for each rank
        gate.read(1)
    for step in range(1000):
        mlflow.log_metric("after", step, step=step)
    return int(os.environ["RANK"])


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capfd.readouterr().err.splitlines() if "MLflow:" in line]


@pytest.fixture
def dead() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


def test_a_server_that_is_down_is_said_once_and_the_training_succeeds(cluster: Home, dead: str, monkeypatch: pytest.MonkeyPatch,
                                                                     capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", dead.replace("//", "//somebody:gr4v3l@"))
    handle = train.submit("an experiment")
    assert handle.result(LIMIT_S) == [0, 1]
    lines = said(capfd)
    assert len(lines) == 1 and f"no run in {dead}: " in lines[0] and "Connection refused" in lines[0], lines
    shown = str(handle.status()) + str(list(handle.logs())) + "".join(lines) + "".join(cluster.processes().values())
    assert "gr4v3l" not in shown


@pytest.mark.parametrize("uri", ["nonsense://somewhere", "/wrong"])
def test_an_address_that_leads_nowhere_is_said_once(cluster: Home, server: Server, uri: str, monkeypatch: pytest.MonkeyPatch,
                                                    capfd: pytest.CaptureFixture[str]) -> None:
    uri = server.uri + uri if uri.startswith("/") else uri
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert train.submit().result(LIMIT_S) == [0, 1]
    lines = said(capfd)
    assert len(lines) == 1 and f"no run in {uri}: " in lines[0], lines


def test_a_server_that_accepts_and_never_answers_holds_nothing_up(cluster: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """What waits for it has a bound, which is in the text."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "600")  # which alone would hold it up
    with front() as silent:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", silent.uri)
        assert train.submit().result(LIMIT_S) == [0, 1]
        lines = said(capfd)
    assert len(lines) == 1 and f"no run in {silent.uri}: Late: MLflow at {silent.uri} was not answered within 20 s" in lines[0], lines


def test_a_server_that_dies_in_the_middle_costs_metrics_and_nothing_else(cluster: Home, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                        capfd: pytest.CaptureFixture[str]) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    with front(server.port) as between:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", between.uri)
        handle = train_on.submit(str(tmp_path / "begun"), str(go))
        eventually(lambda: all((tmp_path / f"begun{rank}").exists() for rank in (0, 1)), timeout=LIMIT_S, what="the first metrics")
        between.die()
        with open(go, "r+b", buffering=0) as gate:
            gate.write(b"12")
            assert handle.result(LIMIT_S) == [0, 1]
    run = server.runs(handle.id)[0]
    assert {"before0", "before1"} <= set(run["metrics"]) and "after" not in run["metrics"]
    lines = said(capfd)
    assert sum("left out while the store does not answer" in line for line in lines) >= 1, lines
    assert any(f"could not be marked FINISHED in {between.uri}" in line or "is not written yet" in line for line in lines), lines
    assert len(lines) <= 6, lines
