"""A9: the run of a launch outlives its head and its tracker, and ends before a cluster that ends
    with its program.

Method: while a rank waits, the head is killed and started again, and the tracker's process is
killed; then the rank goes on. One run must have all of it. A program with a cluster of its own
leaves while one launch has ended and another runs.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually, running
from servers import Server, needs_mlflow

import troupe
from troupe.launch import distributed

pytestmark = needs_mlflow
cloudpickle.register_pickle_by_value(sys.modules[__name__])
LIMIT_S = 4 * TIMEOUT_S


@distributed(processes=1, remote=True)
def train(begun: str, go: str) -> None:
    import mlflow

    mlflow.log_metric("before", 1)
    Path(begun).touch()
    with open(go, "rb", buffering=0) as gate:  # a pipe, in which the test puts a byte
        gate.read(1)
    mlflow.log_metric("after", 1)


def trackers(home: Home) -> set[int]:
    return {pid for pid, command in home.processes().items() if "actor Tracker" in command}


@pytest.mark.long
def test_a9_a_head_and_a_tracker_that_are_killed_cost_the_run_nothing(
    home: Home, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")
    started = home.json("start", "--head", "--port", "0", "--num-cpus", "8")
    troupe.init(started["address"])
    os.mkfifo(tmp_path / "go")
    handle = train.submit(str(tmp_path / "begun"), str(tmp_path / "go"))
    eventually((tmp_path / "begun").exists, timeout=LIMIT_S, what="the first metric")
    os.kill(started["pid"], signal.SIGKILL)
    eventually(lambda: not running(started["pid"]), what="the head's end")
    assert home.json("start", "--head", "--no-worker")["resumed"]
    (first,) = trackers(home)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: trackers(home) - {first}, timeout=LIMIT_S, what="another tracker")
    with open(tmp_path / "go", "r+b", buffering=0) as gate:
        gate.write(b"1")
        handle.result(LIMIT_S)
    run = server.ended(handle.id)
    assert run["status"] == "FINISHED" and run["metrics"] == {"before": 1, "after": 1}
    eventually(lambda: not trackers(home), timeout=LIMIT_S, what="the tracker's end")


EMBEDDED = """
import os, signal
from troupe.launch import distributed

@distributed(processes=1)
def train(gate):
    import mlflow
    mlflow.log_metric("loss", 1)
    if gate:
        with open(gate, "w") as said:
            said.write("begun")
        signal.pause()

train.distributed("")
os.mkfifo("gate")
handle = train.submit(os.path.abspath("gate"))
assert open("gate").read() == "begun"
"""


@pytest.mark.long
def test_a9_a_program_that_takes_its_cluster_along_leaves_no_run_open(
    home: Home, server: Server, tmp_path: Path
) -> None:
    before = {each["id"] for each in server.runs()}
    done = home.python(
        EMBEDDED,
        cwd=tmp_path,
        timeout=LIMIT_S,
        env={
            "MLFLOW_TRACKING_URI": server.uri,
            "TROUPE_QUIET": "1",
            "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "false",
        },
    )
    assert done.returncode == 0, done.stderr
    runs = [each for each in server.runs() if each["id"] not in before]
    assert sorted(each["status"] for each in runs) == ["FINISHED", "KILLED"], done.stderr
