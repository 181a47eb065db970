"""`troupe timeline` and `troupe.timeline()`: a launch, tasks and actor calls of real processes, the
trace opened by what viewers ask of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe.launch import distributed

CALLER = """
import os, sys, troupe
troupe.init(sys.argv[1])

@troupe.remote
class Counter:
    def add(self, k): return k
    def pid(self): return os.getpid()
    def die(self): os._exit(3)

@troupe.remote
class Later:
    async def add(self, k): return k

counter, later = Counter.remote(), Later.remote()
for at in range(10): troupe.get(counter.add.remote(at))
troupe.get([later.add.remote(at) for at in range(10)])
troupe.get([troupe.remote(lambda: 1).options(name="quick").remote() for _ in range(5)])
pid = troupe.get(counter.pid.remote())
try: troupe.get(counter.die.remote())
except troupe.exceptions.ActorDiedError: pass
print(pid, os.getpid(), flush=True)
"""


def xs(trace: list[dict], category: str) -> list[dict]:
    return [each for each in trace if each["ph"] == "X" and each["cat"] == category]


def check(trace: list[dict]) -> None:
    """Numbers with names, arrows with both ends, spans of one track nested."""
    named = {(each["name"], each["pid"], each["tid"]) for each in trace if each["ph"] == "M"}
    for each in trace:
        assert type(each["pid"]) is int and type(each["tid"]) is int, each
        assert ("process_name", each["pid"], 0) in named, each
        assert each["ph"] == "M" or ("thread_name", each["pid"], each["tid"]) in named, each
    assert {each["id"] for each in trace if each["ph"] == "f"} == {
        each["id"] for each in trace if each["ph"] == "s"
    }
    open_ends: dict[tuple[int, int], list[float]] = {}
    spans = [each for each in trace if each["ph"] == "X"]
    for each in sorted(spans, key=lambda one: (one["ts"], -one["dur"])):
        ends = open_ends.setdefault((each["pid"], each["tid"]), [])
        while ends and ends[-1] <= each["ts"]:
            ends.pop()
        assert not ends or each["ts"] + each["dur"] <= ends[-1] + 1, each  # microseconds
        ends.append(each["ts"] + each["dur"])


@pytest.fixture
def sampled(idle: Home) -> tuple[int, int]:
    """The pids of an actor that has died and of the program that called it, all of whose calls were
    recorded."""
    done = subprocess.run(
        [sys.executable, "-c", CALLER, troupe.get_runtime_context().gcs_address],
        env={**os.environ, "TROUPE_TRACE_CALLS": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    actor, program = map(int, done.stdout.split())
    return actor, program


def test_calls_tasks_and_lives_of_processes_that_have_ended(
    idle: Home, sampled: tuple[int, int], tmp_path: Path
) -> None:
    actor, program = sampled
    path = tmp_path / "t.json"

    def written() -> list[dict]:
        said = idle.json("timeline", "--seconds", "300", "-o", str(path))
        assert said["file"] == str(path) and not said["errors"] and said["spans"] > 0
        trace = json.loads(path.read_text())["traceEvents"]
        return trace if any(each["pid"] == actor for each in xs(trace, "life")) else []

    trace = eventually(written, what="the ring of an actor that has died")
    check(trace)
    calls = [each for each in xs(trace, "call") if each["pid"] == program]
    runs = [each for each in xs(trace, "run") if each["pid"] == actor]
    assert sum(each["name"] == "add" for each in calls) == 20
    assert sum(each["name"] == "add" for each in runs) == 10
    arrows = {each["id"]: each for each in trace if each["ph"] == "s"}
    ends = {each["id"]: each for each in trace if each["ph"] == "f"}
    led = [at for at, end in ends.items() if end["pid"] == actor and end["name"] == "add"]
    assert len(led) == 10 and all(arrows[at]["pid"] == program for at in led)
    assert all(arrows[at]["ts"] <= ends[at]["ts"] for at in led)
    later = [each for each in xs(trace, "run") if each["pid"] not in (actor, program)]
    assert sum(each["name"] == "add" for each in later) == 10, "of coroutines, too"
    assert sum(each["name"] == "quick" for each in xs(trace, "task")) == 5
    names = {each["pid"]: each["args"] for each in trace if each["name"] == "process_name"}
    assert names[actor]["kind"] == "actor" and "Counter" in names[actor]["name"]
    assert names[program]["kind"] == "program"
    assert any(each["name"].startswith("construct") for each in xs(trace, "phase"))


def test_a_launch_has_its_phases_and_nothing_of_others(idle: Home, tmp_path: Path) -> None:
    @distributed(processes=2, remote=True, quiet=True)
    def train() -> int:
        return os.getpid()

    handle = train.submit()
    pids = handle.result()
    path = tmp_path / "t.json"
    idle.run("timeline", handle.id, "--seconds", "300", "-o", str(path))
    trace = json.loads(path.read_text())["traceEvents"]
    check(trace)
    phases = {(each["pid"], each["name"].partition(" ")[0]) for each in xs(trace, "phase")}
    assert phases == {(pid, what) for pid in pids for what in ("load", "wait", "run")}
    kinds = {each["args"]["kind"] for each in trace if each["name"] == "process_name"}
    assert kinds <= {"rank", "program"}
    done = idle.run("timeline", "zz", ok=False)
    assert done.returncode == 2 and "no launch or actor" in done.stderr


def test_calls_are_recorded_while_somebody_asks_for_them(idle: Home, tmp_path: Path) -> None:
    @troupe.remote
    class Echo:
        def echo(self, value: int) -> int:
            return value

    actor = Echo.remote()
    assert troupe.get(actor.echo.remote(1)) == 1
    path = str(tmp_path / "t.json")
    command = [sys.executable, "-m", "troupe", "timeline", "--calls", "20", "--seconds", "2", "-o"]
    before = [each for each in troupe.timeline() if each["name"] == "echo"]
    assert before == [], "none is recorded unless it is asked for"
    with subprocess.Popen([*command, path], stdout=subprocess.DEVNULL) as recording:
        while recording.poll() is None:
            assert troupe.get(actor.echo.remote(2), timeout=TIMEOUT_S) == 2
    assert recording.returncode == 0
    trace = json.loads(Path(path).read_text())["traceEvents"]
    check(trace)
    assert {each["pid"] for each in xs(trace, "call") if each["name"] == "echo"} == {os.getpid()}
    assert any(each["ph"] == "f" and each["name"] == "echo" for each in trace)
    troupe.kill(actor)


def test_a_trace_in_python_is_a_list_of_events(idle: Home, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    assert troupe.timeline(path) is None
    trace = json.loads(path.read_text())
    check(trace)
    assert os.getpid() in {each["pid"] for each in xs(trace, "life")}
