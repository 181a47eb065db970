"""A head killed while a restartable actor is being started again (A1, L2), and nodes that come back
just after their loss.

Method: an actor whose second life waits in its constructor for the test's word; then its head is
killed and started again, and the actor's maker still waits for a call. Nodes are lost by standing
still; TROUPE_TEST_LIMITS makes the fence so long that only word of the old process's end can bring
the next life.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
from conftest import TIMEOUT_S, Home, eventually, running, stand_still

import troupe
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors would not find this file

PROGRAM = """
import os, pathlib, sys, time, troupe
troupe.init({address!r})
folder = pathlib.Path({folder!r})

@troupe.remote(max_restarts=-1)
class Slow:
    def __init__(self, held):
        first = not list(folder.glob("begun-*"))
        (folder / f"begun-{{os.getpid()}}").touch()
        while not first and not (folder / "go").exists():
            time.sleep(0.01)  # lint-ok: a constructor that takes until the test says so
    def pid(self):
        return os.getpid()

@troupe.remote
class Other:
    def ping(self):
        return "pong"

slow = Slow.remote([troupe.put(1)])
print(troupe.get(slow.pid.remote()), flush=True)
sys.stdin.readline()
print(troupe.get(slow.pid.remote(), timeout=90), flush=True)
print(troupe.get(Other.remote().ping.remote(), timeout=90), flush=True)
"""


def _lives(folder: Path) -> set[int]:
    return {int(each.name.removeprefix("begun-")) for each in folder.glob("begun-*")}


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not running(pid), what=f"the end of process {pid}")


@pytest.mark.parametrize(
    "meanwhile", ["it is still starting", "it comes to be", "its process ends"]
)
def test_L2_a_driver_is_answered_by_an_actor_that_was_starting_when_the_head_died(
    home: Home, tmp_path: Path, meanwhile: str
) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "2")
    driver = subprocess.Popen(
        [sys.executable, "-u", "-c", PROGRAM.format(address=head["address"], folder=str(tmp_path))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout is not None and driver.stdin is not None
    first = int(driver.stdout.readline())
    _end(first)
    second = eventually(lambda: _lives(tmp_path) - {first}, what="the second life").copy().pop()  # type: ignore[attr-defined]
    _end(head["pid"])
    if meanwhile == "it comes to be":
        (tmp_path / "go").touch()
    elif meanwhile == "its process ends":
        _end(second)
    home.json("start", "--head", "--no-worker")
    driver.stdin.write("\n")
    driver.stdin.flush()
    (tmp_path / "go").touch()
    out, errors = driver.communicate(timeout=TIMEOUT_S * 3)
    assert driver.returncode == 0, errors
    last = int(out.split()[0])
    assert last in _lives(tmp_path) - {first} and (last == second) == (
        meanwhile != "its process ends"
    )
    assert out.split()[1] == "pong"
    assert "Traceback" not in errors, errors


class Teller:
    """Tells its process and its node by a file that appears when it begins."""

    def __init__(self, folder: str) -> None:
        Path(folder, str(os.getpid())).touch()

    def pid(self) -> int:
        return os.getpid()


def _told(folder: Path) -> set[int]:
    return {int(each.name) for each in folder.iterdir() if each.name.isdigit()}


def _seen(name: str) -> dict:
    return next(node for node in troupe.state.list_nodes() if node["name"] == name)


@contextlib.contextmanager
def _nodes(home: Home, limits: str) -> Iterator[dict]:
    """A head, and nodes a and b; this process is connected."""
    env = {"TROUPE_TEST_LIMITS": limits}
    home.run("start", "--head", "--no-worker", "--port", "0", env=env)
    head = home.json("status")
    for name in "ab":
        home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            home.token(),
            "--node-name",
            name,
            "--num-cpus",
            "2",
            "--force-tcp",
            env=env,
        )
    troupe.init(head["address"])
    try:
        eventually(
            lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()),
            what="the zygotes",
        )
        yield env
    finally:
        troupe.shutdown()


@pytest.mark.parametrize("cpus", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_node_that_is_back_brings_the_next_life_of_what_it_ran(
    home: Home, tmp_path: Path, cpus: int
) -> None:
    with _nodes(home, "recreate_after=3600"):
        made = troupe.remote(Teller).options(
            max_restarts=-1, num_cpus=cpus, scheduling_strategy=On(_seen("b")["node_id"], soft=True)
        )
        actor = made.remote(str(tmp_path))
        first = troupe.get(actor.pid.remote(), timeout=TIMEOUT_S)
        worker = _seen("b")["pid"]
        stand_still(worker)
        try:
            eventually(lambda: _seen("b")["state"] == "dead", what="the loss of node b")
        finally:
            os.kill(worker, signal.SIGCONT)
        [second] = eventually(lambda: _told(tmp_path) - {first}, what="the next life")  # type: ignore[misc]
        assert not running(first), "two lives of one actor"
        assert troupe.get(actor.pid.remote(), timeout=TIMEOUT_S) == second


def test_a_head_that_restarts_again_and_again_does_not_put_the_next_life_off(
    home: Home, tmp_path: Path
) -> None:
    with _nodes(home, "fence_after=15,recreate_after=25") as env:
        there = On(_seen("b")["node_id"], soft=True)
        actor = (
            troupe.remote(Teller)
            .options(max_restarts=-1, scheduling_strategy=there)
            .remote(str(tmp_path))
        )
        first = troupe.get(actor.pid.remote(), timeout=TIMEOUT_S)
        worker = _seen("b")["pid"]
        stand_still(worker)
        try:
            eventually(lambda: _seen("b")["state"] == "dead", what="the loss of node b")
            deadline = time.monotonic() + 3 * TIMEOUT_S
            while not _told(tmp_path) - {first}:
                assert time.monotonic() < deadline, (
                    "no next life, however often the head was started again"
                )
                _end(home.json("status")["pid"])
                home.run("start", "--head", "--no-worker", env=env)
                again = time.monotonic() + 12  # not as long as a head would wait that began anew
                eventually(
                    lambda: _told(tmp_path) - {first} or time.monotonic() > again,
                    what="the next life or a while",
                )
            [second] = _told(tmp_path) - {first}
            assert troupe.get(actor.pid.remote(), timeout=TIMEOUT_S) == second
        finally:
            os.kill(worker, signal.SIGCONT)
        eventually(lambda: not running(first), what="the end of the first life")
