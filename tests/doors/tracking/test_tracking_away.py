"""Tracking never fails a training: servers that are down, that hang, that die in the middle, and
addresses where there is none.

Method: ranks that log by MLflow's own functions, as they would; in front of the real server stands
a port that the test closes. What is said is counted.
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


@distributed(processes=1, remote=True)
def train(experiment: str) -> int:
    import mlflow

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


class Words:
    """The messages about launches' tracking."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd, self.text = capfd, ""

    def of(self, launch: str) -> list[str]:
        """Lines of this launch, once there is one."""

        def found() -> list[str]:
            self.text += self._capfd.readouterr().err
            return [
                line
                for line in self.text.splitlines()
                if line.startswith(f"launch {launch[:4]} · MLflow: ")
            ]

        lines = eventually(found, what=f"a word of launch {launch}")
        assert isinstance(lines, list)
        return lines


def nobody() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


@pytest.mark.long
def test_a_server_that_is_not_there_is_said_once_and_the_training_succeeds(
    cluster: Home,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Three servers at the same time, for they are waited for: one that is down, one that accepts
    and never answers, and addresses that lead nowhere."""
    dead = nobody()
    monkeypatch.setenv(
        "MLFLOW_HTTP_REQUEST_TIMEOUT", "600"
    )  # would alone delay everything where nobody answers
    with front() as silent:
        expected = {
            dead: "Connection refused",
            silent.uri: f"MLflow at {silent.uri} was not answered within 20 s",
            f"{server.uri}/wrong": "404",
            "nonsense://somewhere": "nonsense",
        }
        handles = {}
        for shown in expected:
            monkeypatch.setenv("MLFLOW_TRACKING_URI", shown.replace("//", "//somebody:gr4v3l@"))
            handles[shown] = train.submit("an experiment")
        for shown, handle in handles.items():
            assert handle.result(LIMIT_S) == [0], shown
    words = Words(capfd)
    for shown, handle in handles.items():
        lines = words.of(handle.id)
        assert (
            len(lines) == 1 and f"no run in {shown}: " in lines[0] and expected[shown] in lines[0]
        ), lines
    seen = [words.text, *cluster.processes().values()] + [
        str(each.status()) + str(list(each.logs())) for each in handles.values()
    ]
    assert not any("gr4v3l" in each for each in seen)


def test_a_server_that_dies_in_the_middle_costs_metrics_and_nothing_else(
    cluster: Home,
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    with front(server.port) as between:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", between.uri)
        handle = train_on.submit(str(tmp_path / "begun"), str(go))
        eventually(
            lambda: all((tmp_path / f"begun{rank}").exists() for rank in (0, 1)),
            timeout=LIMIT_S,
            what="the first metrics",
        )
        between.die()
        with open(go, "r+b", buffering=0) as gate:
            gate.write(b"12")
            assert handle.result(LIMIT_S) == [0, 1]
    run = server.runs(handle.id)[0]
    assert {"before0", "before1"} <= set(run["metrics"]) and "after" not in run["metrics"]
    lines = Words(capfd).of(handle.id)
    assert sum("left out while the store does not answer" in line for line in lines) >= 1, lines
    assert any(
        f"could not be marked FINISHED in {between.uri}" in line or "is not written yet" in line
        for line in lines
    ), lines
    assert len(lines) <= 6, lines
