"""Tasks of the whole cluster: those of other programs, of actors and of tasks, and what is said of
those that are over.

Method: a second program on the same cluster, and an actor, start tasks that wait for a file; this
process lists them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually, stand_still

import troupe
from troupe import exceptions
from troupe.util import state

OTHER = """
import sys, threading, troupe
troupe.init(sys.argv[1])
hold = troupe.remote(num_cpus=1)(lambda go: threading.Event().wait(300))
hold = hold.options(name="of_another_program")
fails = troupe.remote(num_cpus=1)(lambda: 1 / 0).options(name="fails")
try: troupe.get(fails.remote())
except ZeroDivisionError: pass
refs = [hold.remote(1) for _ in range(2)]
print(refs[0].hex(), flush=True)
sys.stdin.readline()
for ref in refs: troupe.cancel(ref)
"""


@troupe.remote(num_cpus=1)
def hold(go: str) -> str:
    import threading

    pause = threading.Event()
    while not os.path.exists(go):
        pause.wait(0.01)
    return "held"


@troupe.remote(num_cpus=0)
class Starter:
    def start(self, go: str) -> int:
        self.refs = [hold.remote(go)]
        return os.getpid()

    def held(self) -> list[str]:
        return troupe.get(self.refs)


@contextlib.contextmanager
def other_program() -> Iterator[tuple[subprocess.Popen, str]]:
    """A program that has tasks, and the id of one of these."""
    program = subprocess.Popen(
        [sys.executable, "-c", OTHER, troupe.get_runtime_context().gcs_address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield program, program.stdout.readline().strip()
    finally:
        program.kill()
        program.communicate()


def names() -> list[str]:
    return sorted(each.name for each in state.list_tasks(timeout=TIMEOUT_S))


def test_tasks_of_other_programs_and_of_actors_are_listed(idle: Home, tmp_path: Path) -> None:
    go = tmp_path / "go"
    mine, starter = hold.remote(str(go)), Starter.remote()
    pid = troupe.get(starter.start.remote(str(go)), timeout=TIMEOUT_S)
    with other_program() as (program, task):
        assert names() == ["hold", "hold", "of_another_program", "of_another_program"]
        assert [each.task_id for each in state.list_tasks(limit=1)] == [mine.hex()]
        found = state.get_task(task)
        assert found.owner_pid == program.pid and found.name == "of_another_program"
        assert {each.owner_pid for each in state.list_tasks(filters=[("name", "=", "hold")])} == {
            pid,
            os.getpid(),
        }
        assert found.job_id not in {
            each.job_id for each in state.list_tasks(filters=[("name", "=", "hold")])
        }
        eventually(lambda: state.get_task(task).state == "RUNNING", what="the other program's task")
        assert state.get_task(task).worker_id in {
            each.worker_id for each in state.list_workers(limit=10_000)
        }
        assert state.summarize_tasks()["cluster"]["total_tasks"] == 4
        assert (
            len(troupe.state.list_tasks()) == 1
            and len(troupe.state.list_tasks(everywhere=True)) == 4
        )
        listed = idle.json("list", "tasks")
        assert sorted(each["name"] for each in listed) == [
            "hold",
            "hold",
            "of_another_program",
            "of_another_program",
        ]
        assert "of_another_program" in idle.run("list", "tasks").stdout
        program.communicate("\n")
    eventually(lambda: names() == ["hold", "hold"], what="the end of the other program's tasks")
    go.touch()
    assert troupe.get([mine, starter.held.remote()], timeout=TIMEOUT_S) == ["held", ["held"]]
    assert names() == []


def test_a_program_that_stands_still_is_missing_and_one_that_is_gone_is_not(idle: Home) -> None:
    with other_program() as (program, _):
        stand_still(program.pid)
        with pytest.raises(exceptions.GetTimeoutError, match="1 of 1 other processes"):
            state.list_tasks(timeout=5)
        assert state.list_tasks(timeout=5, raise_on_missing_output=False) == []
        program.send_signal(signal.SIGCONT)
        assert names() == ["of_another_program"] * 2
        program.kill()
        program.wait()
        eventually(lambda: names() == [], what="the end of the program")


def test_the_timeline_has_what_is_over(idle: Home, tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    ref = troupe.remote(lambda: Path(gate).read_text()).options(name="mine").remote()
    with open(gate, "w"):  # returns once the task reads
        there = {each.worker_id for each in state.list_workers(limit=10_000)}
    assert troupe.get(ref, timeout=TIMEOUT_S) == ""
    with other_program():
        troupe.timeline(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    trace = [each for each in trace if "task_id" in each["args"]]  # tasks of processes that live
    (mine,) = [each for each in trace if each["name"] == "mine"]
    (fails,) = [each for each in trace if each["name"] == "fails"]
    assert (mine["ph"], fails["ph"]) == ("X", "X") and (
        mine["args"]["state"],
        fails["args"]["state"],
    ) == ("finished", "failed")
    assert mine["dur"] > 0 and mine["args"]["worker_id"] in there
    assert mine["ts"] + mine["dur"] <= fails["ts"] + fails["dur"]
    assert [each["ph"] for each in trace if each["name"] == "of_another_program"] == ["i", "i"]


def test_the_history_is_bounded(idle: Home) -> None:
    quick = troupe.remote(num_cpus=1)(lambda: None).options(name="quick")
    troupe.get([quick.remote() for _ in range(5000)], timeout=TIMEOUT_S)
    spans = [each for each in troupe.timeline() if each["ph"] == "X" and "task_id" in each["args"]]
    assert len(spans) == 4096 and {each["name"] for each in spans} == {"quick"}
    assert all(each["dur"] >= 0 for each in spans)


def test_tasks_of_an_earlier_session_are_not_of_this_one(idle: Home) -> None:
    fails = troupe.remote(num_cpus=1)(lambda: 1 / 0).options(name="fails")
    with pytest.raises(ZeroDivisionError):
        troupe.get(fails.remote(), timeout=TIMEOUT_S)
    assert "fails" in {each["name"] for each in troupe.timeline()}
    address = troupe.get_runtime_context().gcs_address
    troupe.shutdown()
    troupe.init(address)
    assert (
        troupe.get(
            troupe.remote(num_cpus=1)(lambda: 1).options(name="now").remote(), timeout=TIMEOUT_S
        )
        == 1
    )
    assert {each["name"] for each in troupe.timeline() if "task_id" in each["args"]} == {"now"}
