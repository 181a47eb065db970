"""`handle.watch()` and `troupe.launch.attach`: a launch that runs already, seen from the program
that has its handle, and from another.

Method: programs of their own beside a launch that waits at a gate; what they print, and what Ctrl-C
in them leaves running.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S, Home
from gate import Gate

import troupe
from troupe import exceptions
from troupe.launch import attach, distributed

LIMIT_S = 4 * TIMEOUT_S


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path / "gate")
    yield made
    made.close()


def speak(gate: str) -> int:
    import os

    print("before", os.environ["RANK"], flush=True)
    open(gate, "rb", buffering=0).read(1)
    print("after", os.environ["RANK"], flush=True)
    return 7


def started(code: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-u", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
        env={**os.environ, "TROUPE_ADDRESS": troupe.state._session.current().address},
    )


def test_another_program_watches_by_the_id_until_the_end(idle: Home, gate: Gate) -> None:
    handle = distributed(processes=2, remote=True)(speak).submit(gate.path)
    watcher = started(
        f"from troupe.launch import attach\nattach({handle.id[:8]!r}).watch()\nprint('the watcher "
        "goes on')"
    )
    assert watcher.stdout is not None
    assert {watcher.stdout.readline(), watcher.stdout.readline()} == {
        "[0] before 0\n",
        "[1] before 1\n",
    }
    gate.open()
    out, errors = watcher.communicate(timeout=LIMIT_S)
    assert watcher.returncode == 0, errors
    assert sorted(out.splitlines()) == ["[0] after 0", "[1] after 1", "the watcher goes on"]
    assert re.search(r"2 ranks on 1 node · ready in .*\n(.*\n)*launch \w+ · succeeded", errors), (
        errors
    )
    assert handle.result(TIMEOUT_S) == [7, 7]


@pytest.mark.parametrize("way", ["watch", "logs"])
def test_ctrl_c_leaves_it_running_and_says_how_to_come_back(
    idle: Home, gate: Gate, way: str
) -> None:
    handle = distributed(processes=1, remote=True)(speak).submit(gate.path)
    watcher = started(
        f"from troupe.launch import attach\nattach({handle.id!r}).watch()\nprint('the watcher goes "
        "on')"
        if way == "watch"
        else (
            f"import sys; sys.argv = ['troupe', 'logs', {handle.id!r}, '--follow']\nfrom "
            "troupe.cli import main\nmain()"
        )
    )
    assert watcher.stdout is not None and watcher.stdout.readline() == "[0] before 0\n"
    watcher.send_signal(signal.SIGINT)
    out, errors = watcher.communicate(timeout=LIMIT_S)
    assert re.search(r"goes on · come back: troupe logs [0-9a-f]+ --follow$", errors.rstrip()), (
        errors
    )
    assert "Traceback" not in errors and (watcher.returncode, out) == (
        (0, "the watcher goes on\n") if way == "watch" else (130, "")
    ), (out, errors)
    assert not handle.done()
    gate.open()
    assert handle.result(TIMEOUT_S) == [7]


def test_the_program_that_submitted_it_watches_is_interrupted_and_watches_again(
    idle: Home, gate: Gate
) -> None:
    code = f"""
from troupe.launch import distributed
@distributed(processes=1, remote=True)
def speak(gate):
    print("before", flush=True)
    open(gate, "rb", buffering=0).read(1)
    print("after", flush=True)
    raise ValueError("no success")
handle = speak.submit({gate.path!r})
handle.watch()
print("left")
handle.watch()
try:
    handle.result()
except ValueError as error:
    print("result() raises", type(error).__mro__[1].__name__)
"""
    watcher = started(code)
    assert watcher.stdout is not None and watcher.stdout.readline() == "[0] before\n"
    watcher.send_signal(signal.SIGINT)
    assert watcher.stdout.readline() == "left\n"
    gate.open()
    out, errors = watcher.communicate(timeout=LIMIT_S)
    assert watcher.returncode == 0, errors
    assert out.splitlines()[:2] == ["[0] before", "[0] after"] and out.splitlines()[-1].startswith(
        "result() raises"
    ), out
    assert "goes on while this program does · come back: " in errors and " · failed · " in errors, (
        errors
    )


def test_a_handle_travels_and_attach_says_what_it_does_not_find(idle: Home, gate: Gate) -> None:
    handle = distributed(processes=1, remote=True)(speak).submit(gate.path)
    arrived = pickle.loads(pickle.dumps(handle))
    assert arrived.id == handle.id == attach(handle.id[:12].upper()).id and not arrived.done()
    gate.open()
    assert arrived.result(TIMEOUT_S) == [7] == handle.result(TIMEOUT_S)
    with pytest.raises(ValueError, match="no launch has an id that starts with 'ffff0000'"):
        attach("ffff0000")
    with pytest.raises(TypeError, match="takes the id of a launch"):
        attach("")


def test_a_task_that_has_the_handle_watches(idle: Home, gate: Gate) -> None:
    handle = distributed(processes=1, remote=True)(speak).submit(gate.path)

    def look(given: Any) -> list[Any]:
        given.watch(quiet=True)
        return list(given.result())

    gate.open()
    assert troupe.get(troupe.remote(num_cpus=1)(look).remote(handle), timeout=LIMIT_S) == [7]


def test_attach_without_a_cluster_says_how_to_have_one(idle: Home) -> None:
    code = (
        "import os; del os.environ['TROUPE_ADDRESS']\nfrom troupe.launch import "
        "attach\nattach('7f3a')"
    )
    _, errors = started(code).communicate(timeout=LIMIT_S)
    assert (
        "ConnectionError: not connected to a cluster: call troupe.init" in errors
        and exceptions.ConnectionError.__name__ in errors
    )
