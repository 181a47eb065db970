"""A head killed while a restartable actor is being started again (A1, L2).

Method: an actor whose second life waits in its constructor for the test's word; then its head is killed and started again, and
the actor's maker still waits for a call.
"""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually

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
    eventually(lambda: not Path(f"/proc/{pid}/exe").exists(), what=f"the end of process {pid}")


@pytest.mark.parametrize("meanwhile", ["it is still starting", "it comes to be", "its process ends"])
def test_L2_a_driver_is_answered_by_an_actor_that_was_starting_when_the_head_died(home: Home, tmp_path: Path,
                                                                                  meanwhile: str) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "2")
    driver = subprocess.Popen([sys.executable, "-u", "-c", PROGRAM.format(address=head["address"], folder=str(tmp_path))],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
    assert last in _lives(tmp_path) - {first} and (last == second) == (meanwhile != "its process ends")
    assert out.split()[1] == "pong"
    assert "Traceback" not in errors, errors
