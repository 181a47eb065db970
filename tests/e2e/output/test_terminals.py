"""Texts of programs, actors and errors cannot drive the reader's terminal; the logs keep them as
written.

Method: scripts in processes of their own whose ranks, actors and errors say escape sequences; what
comes out of them, and of the commands, is looked at. What is let through is decided in
troupe/_base/visible.py (tests/bindings/test_visible.py).
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import TIMEOUT_S, Home

ATTACK = "\x1b]0;owned\x07\x1b[2J\x1b[1A\u202eabc\x1b[31mred\x1b[0m\x9b2K"
SCRIPT = """
import sys, troupe
from troupe.launch import distributed
troupe.init({address!r})
attack = {attack!r}

@troupe.remote
class Named:
    def speak(self):
        print("actor says", attack, flush=True)
        print("and on stderr", attack, file=sys.stderr, flush=True)
    def fail(self):
        raise ValueError("actor fails " + attack)

@distributed(processes=1, remote=True)
def rank():
    print("rank says", attack, flush=True)

@distributed(processes=1, remote=True)
def fails():
    raise ValueError("rank fails " + attack)

actor = Named.options(name="name" + attack).remote()
troupe.get(actor.speak.remote())
rank.distributed()
for what in (lambda: troupe.get(actor.fail.remote()), lambda: fails.distributed()):
    try:
        what()
    except Exception as error:
        print("error:", error, flush=True)
input()
"""


def obeyed(text: str) -> list[str]:
    """Return the control sequences that a terminal would obey, colours left out."""
    return re.findall(
        "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]",
        re.sub("\x1b\\[[0-9;:]*m", "", text),
    )


@pytest.fixture
def script(home: Home) -> subprocess.Popen:
    address = home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"]
    return subprocess.Popen(
        [sys.executable, "-u", "-c", SCRIPT.format(address=address, attack=ATTACK)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_outputs_names_and_errors_reach_a_terminal_without_what_it_obeys(
    home: Home, script: subprocess.Popen
) -> None:
    seen = []
    assert script.stdout is not None
    while len([line for line in seen if line.startswith("error:")]) < 2:
        line = script.stdout.readline()
        assert line, (seen, script.communicate())
        seen.append(line)
    listed = (
        home.run("list", "actors").stdout
        + home.run("list", "launches").stdout
        + home.run("status").stdout
    )
    actor = next(each for each in home.json("list", "actors") if each["class_name"] == "Named")
    logs = home.run("logs", actor["actor_id"][:8]).stdout
    kept = [path.read_bytes() for path in home.path.rglob("*.out")]
    out, errors = script.communicate("\n", timeout=TIMEOUT_S)
    shown = "".join(seen) + out + errors
    for text in (shown, listed, logs):
        assert not obeyed(text), (obeyed(text), text)
    assert (
        "rank says" in shown
        and "actor says" in shown
        and "rank fails" in shown
        and "actor fails" in shown
    ), shown
    assert "\x1b[31mred\x1b[0m" in next(
        line for line in shown.splitlines() if "rank says" in line
    ), "colours stay"
    assert "actor says" in logs and "name\\x1b]0;owned" in listed, (logs, listed)
    assert any(b"rank says " + ATTACK.encode() in each for each in kept), "the logs keep bytes"
