"""A head killed with live work and started again: what runs goes on, what was acknowledged is
there.

Method: a real head is killed with SIGKILL while a driver waits, and started again by `troupe start
--head`, with a driver on the head's host and one that came by TLS and a token.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually, processes_of, running


def start(home: Home) -> dict:
    """A head and a worker, with a zygote that is ready."""
    started = home.json("start", "--head", "--port", "0", "--num-cpus", "8", "--node-name", "one")
    eventually(
        lambda: all(node["zygote_ready"] for node in home.json("status")["nodes"]),
        what="the zygote",
    )
    return started


def kill_head(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not running(pid), what="the head's end")


def restart(home: Home, killed: dict) -> dict:
    """Kills the head and starts it again, as an operator would."""
    kill_head(killed["pid"])
    again = home.json("start", "--head", "--no-worker")
    assert again["resumed"] and again["cluster_id"] == killed["cluster_id"]
    return again


class Driver:
    """A program that drives the cluster; its lines are read one by one."""

    def __init__(self, code: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, self.process.communicate()[1]
        return line

    def end(self) -> tuple[int, list[str], str]:
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out.splitlines(), err


LAUNCH = """
import pathlib, troupe
from troupe.launch import distributed
troupe.init({address!r}, token_file={token!r})
gate = pathlib.Path({gate!r})
def work(i):
    import os, time
    (gate / f"here-{{os.environ['RANK']}}").touch()
    while not (gate / "go").exists():
        time.sleep(0.01)  # lint-ok: a rank that works until the test says so
    return i + int(os.environ["RANK"])
handle = distributed(processes=2, remote=True)(work).submit(10)
print("submitted", flush=True)
print(handle.result(60), flush=True)
print(distributed(processes=1, remote=True)(lambda: "next").submit().result(60), flush=True)
"""


@pytest.mark.parametrize("remote", [False, True], ids=["same host", "by token"])
def test_a_launch_in_progress_ends_with_its_results(
    home: Home, tmp_path: Path, remote: bool
) -> None:
    head = start(home)
    token = home.token("--role", "client", "--single-use") if remote else None
    env = {"TROUPE_HOME": str(tmp_path / "elsewhere")} if remote else None
    driver = Driver(LAUNCH.format(address=head["address"], token=token, gate=str(tmp_path)), env)
    assert driver.line() == "submitted"
    eventually(lambda: len(list(tmp_path.glob("here-*"))) == 2, what="the ranks")
    head = restart(home, head)
    # The launch ends while the driver may still be on its way back, and again with it there.
    (tmp_path / "go").touch()
    code, lines, errors = driver.end()
    assert code == 0, errors
    assert lines == ["[10, 11]", "['next']"]
    assert f"the head at {head['address']} is gone" in errors and "is back after" in errors
    assert home.json("list", "launches")[0]["outcome"] == "succeeded"


def test_a_launch_that_ended_while_the_head_was_away(home: Home, tmp_path: Path) -> None:
    head = start(home)
    driver = Driver(LAUNCH.format(address=head["address"], token=None, gate=str(tmp_path)))
    assert driver.line() == "submitted"
    eventually(lambda: len(list(tmp_path.glob("here-*"))) == 2, what="the ranks")
    kill_head(head["pid"])
    (tmp_path / "go").touch()
    home.json("start", "--head", "--no-worker")
    code, lines, errors = driver.end()
    assert code == 0, errors
    assert lines == ["[10, 11]", "['next']"]


ACTORS = """
import sys, troupe
from troupe.util import placement_group
troupe.init({address!r})
@troupe.remote
class Counter:
    def __init__(self): self.n = 0
    def add(self): self.n += 1; return self.n
counter = Counter.options(name="counter").remote()
print(troupe.get(counter.add.remote()), flush=True)
sys.stdin.readline()
print(troupe.get(counter.add.remote()), flush=True)  # the same process: its state is there
print(troupe.get(troupe.get_actor("counter").add.remote()), flush=True)
other = Counter.remote()  # its address comes by a push of the new head
print(troupe.get(other.add.remote(), timeout=30), flush=True)
group = placement_group([{{"CPU": 1}}])
print(group.wait(30), flush=True)
troupe.kill(counter)
try:
    troupe.get(counter.add.remote())
except troupe.exceptions.ActorDiedError:
    print("dead", flush=True)
"""


def test_actors_and_names_survive(home: Home) -> None:
    head = start(home)
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", ACTORS.format(address=head["address"])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    restart(home, head)
    out, errors = process.communicate("\n", timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    assert out.splitlines() == ["2", "3", "1", "True", "dead"]


def test_a_stopped_cluster_ends_its_drivers_at_once(home: Home, tmp_path: Path) -> None:
    head = start(home)
    driver = Driver(LAUNCH.format(address=head["address"], token=None, gate=str(tmp_path)))
    assert driver.line() == "submitted"
    eventually(lambda: len(list(tmp_path.glob("here-*"))) == 2, what="the ranks")
    home.run("stop")
    code, _, errors = driver.end()
    assert code != 0 and "ConnectionError" in errors and "said goodbye" in errors, errors
    assert "is gone" not in errors


def test_the_head_of_an_embedded_cluster_that_dies_is_named(home: Home) -> None:
    code = """
import os, signal, troupe
from troupe._cluster import session as _session
troupe.init(num_cpus=1)
head = _session.current().embedded._programs[0]
@troupe.remote
class Slow:
    def wait(self):
        import threading
        threading.Event().wait()
actor = Slow.remote()
os.kill(head.pid, signal.SIGKILL)
try:
    troupe.util.placement_group([{"CPU": 1}]).wait()
except troupe.exceptions.ConnectionError as error:
    print(error)
"""
    done = home.python(code)
    assert done.returncode == 0, done.stderr
    assert "embedded cluster" in done.stdout and "was killed by signal 9" in done.stdout, (
        done.stdout
    )
    eventually(lambda: not processes_of(home.test_id), what="the end of the embedded cluster")


def test_two_heads_on_one_state_are_refused(home: Home) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    binary = (
        Path(os.environ["TROUPE_BIN_DIR"]) / "troupe-head"
        if "TROUPE_BIN_DIR" in os.environ
        else None
    )
    if binary is None:
        pytest.skip("needs TROUPE_BIN_DIR")
    second = subprocess.run(
        [binary, f"--state-dir={head['state']}"], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert second.returncode == 1
    assert f"another head (pid {head['pid']}) runs on" in second.stderr
    assert home.json("status")["pid"] == head["pid"]


NESTED = """
import pathlib, time, troupe
troupe.init({address!r})
@troupe.remote
class Held:
    def ping(self):
        return "pong"
@troupe.remote
class Maker:
    def make(self):
        self.first = Held.options(num_cpus=8).remote()
        troupe.get(self.first.ping.remote())
        self.second = Held.options(num_cpus=8).remote()
        self.answer = self.second.ping.remote()
    def end(self):
        troupe.kill(self.first)
        return troupe.get(self.answer, timeout=60)
maker = Maker.options(num_cpus=0).remote()
troupe.get(maker.make.remote())
print("made", flush=True)
while not pathlib.Path({gate!r}).exists():
    time.sleep(0.01)  # lint-ok: a program that waits for the test
print(troupe.get(maker.end.remote()), flush=True)
"""


def test_an_actor_hears_of_the_actors_that_it_has_made_from_the_head_that_comes_back(
    home: Home, tmp_path: Path
) -> None:
    """An actor has no room before the head is killed, and begins after it came back."""
    head = start(home)
    driver = Driver(NESTED.format(address=head["address"], gate=str(tmp_path / "go")))
    assert driver.line() == "made"
    restart(home, head)
    (tmp_path / "go").touch()
    code, lines, err = driver.end()
    assert (code, lines) == (0, ["pong"]), err
