"""CB-1: an exception in a callback ends nothing else.

CB-2: a session that has ended says so to everyone who waits.

Method: a driver, an actor and a rank are given news whose hearing raises, on the thread that their
waits depend on: an exception of the user's that ends threads when it is loaded, a stderr that is
gone. What is asked of the cluster then must be answered. The last driver loses its head for good.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually, running

COMMON = """
import os, sys, threading
import troupe

class Ends(Exception):
    def __init__(self, text, sound=True):
        super().__init__(text)
    def __reduce__(self):
        return end, ()

def end():
    raise SystemExit(3)

@troupe.remote
class Refuses:
    def __init__(self):
        raise Ends("no")
    def ping(self):
        return "never"

@troupe.remote
class Answers:
    def ping(self):
        return "pong"

def go_on():
    try:
        troupe.get(Refuses.remote().ping.remote(), timeout=60)
    except troupe.exceptions.ActorDiedError:
        pass
    group = troupe.util.placement_group([{"CPU": 1}])
    troupe.get(group.ready(), timeout=60)
    return troupe.get(Answers.remote().ping.remote(), timeout=60)
"""
DRIVER = (
    COMMON
    + """
troupe.init(num_cpus=2)
print(go_on())
"""
)
ACTOR = (
    COMMON
    + """
troupe.init(num_cpus=2)
@troupe.remote
class Maker:
    def go_on(self):
        return go_on()
print(troupe.get(Maker.remote().go_on.remote(), timeout=90))
"""
)
TASK = (
    COMMON
    + """
troupe.init(num_cpus=2)
print(troupe.get(troupe.remote(go_on).options(num_cpus=0).remote(), timeout=90))
"""
)
RANK = (
    COMMON
    + """
from troupe.launch import distributed
if __name__ == "__main__":
    print(distributed(processes=1)(go_on).submit().result(90)[0])
"""
)


@pytest.mark.parametrize(
    "program", [DRIVER, ACTOR, TASK, RANK], ids=["driver", "actor", "task", "rank"]
)
def test_CB1_an_exception_that_ends_threads_ends_no_session(
    home: Home, tmp_path: Path, program: str
) -> None:
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S * 2,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[-1] == "pong", done.stdout + done.stderr


RESTARTED = """
import sys, troupe
troupe.init({address!r})
@troupe.remote
class Counter:
    def __init__(self): self.n = 0
    def add(self): self.n += 1; return self.n
counter = Counter.remote()
print(troupe.get(counter.add.remote()), flush=True)
sys.stdin.readline()
print(troupe.get(counter.add.remote(), timeout=60), flush=True)
other = Counter.remote()  # its address comes by a push of the new head
print(troupe.get(other.add.remote(), timeout=60), flush=True)
"""


def _start(home: Home) -> dict:
    return home.json("start", "--head", "--port", "0", "--num-cpus", "2", "--node-name", "one")


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not running(pid), what="the head's end")


def test_CB1_a_driver_whose_stderr_is_gone_comes_back_to_its_head(home: Home) -> None:
    head = _start(home)
    read, write = os.pipe()
    driver = subprocess.Popen(
        [sys.executable, "-u", "-c", RESTARTED.format(address=head["address"])],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=write,
    )
    os.close(write)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "1\n"
    os.close(read)  # messages about its head's absence meet a broken pipe
    _kill(head["pid"])
    home.json("start", "--head", "--no-worker")
    out, _ = driver.communicate("\n", timeout=TIMEOUT_S * 2)
    assert (driver.returncode, out.split()) == (0, ["2", "1"])


WAITS = """
import sys, threading, troupe
troupe.init({address!r})
@troupe.remote
class Lives:
    def ping(self): return "pong"
lives = Lives.remote()
troupe.get(lives.ping.remote())
group = troupe.util.placement_group([{{"CPU": 2}}])
troupe.get(group.ready())
waits = troupe.util.placement_group([{{"CPU": 2}}])
refs = [troupe.remote(lambda: 1).options(num_cpus=2).remote(), waits.ready(), Lives.options(num_cpus=2).remote().ping.remote()]
def wait_for(ask):
    try:
        return ask()
    except troupe.exceptions.TroupeError as error:
        return type(error).__name__
def say(word):  # in one go: two threads speak
    sys.stdout.write(f"{{word}}\\n")
    sys.stdout.flush()
threading.Thread(target=lambda: say("wait " + wait_for(lambda: waits.wait(100)))).start()
say("asked")
for ref in refs:
    say(wait_for(lambda: troupe.get(ref)))
say(troupe.get(lives.ping.remote()))
"""


def test_CB2_all_who_wait_are_told_when_the_head_never_comes_back(home: Home) -> None:
    head = _start(home)
    program = WAITS.format(address=head["address"])
    driver = subprocess.Popen(
        [sys.executable, "-u", "-c", program],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == "asked\n"
    _kill(head["pid"])
    out, errors = driver.communicate(timeout=TIMEOUT_S * 2)
    assert driver.returncode == 0, errors
    lines = sorted(out.splitlines())
    assert lines[-1] == "wait ConnectionError", out + errors
    assert lines.count("pong") == 1, "a call to where an actor is needs no head\n" + out + errors
    home.json("start", "--head", "--no-worker")
