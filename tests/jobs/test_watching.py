# Method: a summary in this process; then commands in processes of their own, in a pipe and in a
#     pseudo terminal, which see a job that is submitted meanwhile, until Ctrl-C.
from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
from e2e_conftest import TIMEOUT_S, Home

from troupe.cli.operation import _top

RESOURCES = [{"name": n, "ten_thousandths": c} for n, c in (("CPU", 80000), ("GPU", 20000))]
STATUS = {
    "cluster_id": "5k" * 16,
    "address": "h:1",
    "up_ms": 5000,
    "nodes": [
        {"name": "a", "state": "alive", "resources": RESOURCES, "free": RESOURCES},
        {"name": "b", "state": "alive", "resources": RESOURCES, "free": RESOURCES[:1]},
        {"name": "c", "state": "dead", "resources": RESOURCES, "free": []},
    ],
    "launches": [],
}


def test_the_fullest_node_is_first_and_actors_are_counted_by_class() -> None:
    kinds = [("A", "alive"), ("B", "alive"), ("B", "alive"), ("A", "dead")]
    actors = [{"class_name": name, "state": state} for name, state in kinds]
    seen = _top.summary(STATUS, actors)
    assert [(each["name"], each["held"]) for each in seen["nodes"]] == [
        ("b", {"CPU": 0.0, "GPU": 1.0}),
        ("a", {"CPU": 0.0, "GPU": 0.0}),
    ]
    assert seen["actors"] == {"B": 2, "A": 1}


@pytest.mark.parametrize("command", [["status", "--watch"], ["top"]], ids=["status", "top"])
def test_what_is_submitted_meanwhile_is_seen_until_ctrl_c(
    cluster: Home, command: list[str]
) -> None:
    """In a pipe: JSON, one document a line."""
    line = [sys.executable, "-m", "troupe", *command, "--interval", "0.1", "--json"]
    watching = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        assert [each["name"] for each in first["nodes"]] == ["one"]
        name = f"seen-by-{command[0]}"
        job = cluster.run("job", "submit", "--name", name, "--", "sleep", "600").stdout.strip()
        for each in watching.stdout:
            if name in each:
                break
        else:
            pytest.fail("it ended before it saw the job")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(TIMEOUT_S) == 130
    finally:
        watching.kill()
        watching.wait()
    cluster.run("job", "stop", "--grace", "0", job)


@pytest.mark.parametrize("command", [["status", "--watch"], ["top"]], ids=["status", "top"])
def test_a_terminal_has_it_on_a_screen_of_its_own_which_is_left_at_the_end(
    cluster: Home, command: list[str]
) -> None:
    parent, child = pty.openpty()
    watching = subprocess.Popen(
        [sys.executable, "-m", "troupe", *command, "--interval", "0.1"],
        stdin=child,
        stdout=child,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
    )
    os.close(child)
    try:
        said = _until(parent, b"", b"alive")
        assert b"\x1b[?1049h" in said and b"one" in said
        watching.send_signal(signal.SIGINT)
        _until(parent, said, b"\x1b[?1049l")
        assert watching.wait(TIMEOUT_S) == 130
    finally:
        watching.kill()
        watching.wait()
        os.close(parent)


def _until(terminal: int, said: bytes, wanted: bytes) -> bytes:
    """Return the program's output, once `wanted` is in it."""
    deadline = time.monotonic() + TIMEOUT_S
    while wanted not in said:
        assert select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0], said
        said += os.read(terminal, 65536)
    return said


def test_once_is_a_page_of_text(cluster: Home) -> None:
    seen = cluster.run("top", "--once").stdout
    assert "one" in seen and "/8" in seen and "╌" in seen
    assert cluster.json("top", "--once")["nodes"][0]["total"]["CPU"] == 8
