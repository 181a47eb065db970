"""Processes that want one environment at once: what was killed the next makes whole, and what fails
fails for all that wait.

Method: a `uv` that waits until it is let go on, and starters that are processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import TIMEOUT_S, Home, eventually
from installs import Installer, wheel

MAKES = """
import sys
from troupe._code import requirements, virtual_environments
pip = {"lines": [sys.argv[1]], "check": False, "digest": "d"}
sys.path[:0] = virtual_environments.enter(pip, -1, object())
import tiny_thing
print(tiny_thing.VALUE, tiny_thing.__file__)
"""


def test_one_that_was_killed_while_it_was_made_is_made_whole_by_the_next(
    home: Home, tmp_path: Path
) -> None:
    """The installer outlives its killed starter: nobody else writes to the folder before it has
    ended."""
    installer = Installer(tmp_path / "bin")
    line = [sys.executable, "-c", MAKES, wheel(tmp_path)]
    environment = {**os.environ, **installer.variables()}
    os.mkfifo(installer.gate)
    first = subprocess.Popen(line, env=environment)
    eventually(installer.runs, what="the first installer")
    first.kill()
    first.wait()
    second = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True)
    (folder,) = [each for each in (home.path / "cache").iterdir() if each.is_dir()]
    eventually(lambda: _waits(second.pid), what="the second maker to wait for the lock")
    assert len(installer.runs()) == 1 and not folder.with_name(folder.name + ".made").exists()
    installer.gate.write_text("")  # the first installer goes on
    installer.gate.unlink()
    said, _ = second.communicate(timeout=2 * TIMEOUT_S)
    assert said.startswith("1.0 ") and str(folder) in said and len(installer.runs()) == 2
    third = subprocess.run(
        line, env=environment, capture_output=True, text=True, timeout=2 * TIMEOUT_S
    )
    assert third.stdout == said and len(installer.runs()) == 2


def test_what_does_not_resolve_is_asked_once_by_those_that_wait_together(
    home: Home, tmp_path: Path
) -> None:
    installer = Installer(tmp_path / "bin")
    line = [sys.executable, "-c", MAKES, "no-such-thing-anywhere==1.0"]
    environment = {**os.environ, **installer.variables()}
    os.mkfifo(installer.gate)
    makers = [subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)]
    eventually(installer.runs, what="the first installer")
    makers.append(subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True))
    eventually(lambda: _waits(makers[1].pid), what="the second maker to wait for the lock")
    installer.gate.write_text("")
    installer.gate.unlink()
    said = [maker.communicate(timeout=2 * TIMEOUT_S)[1] for maker in makers]
    assert all(
        "No matching distribution found for no-such-thing-anywhere==1.0" in each for each in said
    ), said
    assert len(installer.runs()) == 1
    again = subprocess.run(
        line, env=environment, capture_output=True, text=True, timeout=2 * TIMEOUT_S
    )
    assert again.returncode == 1 and len(installer.runs()) == 2, (
        "one that asks later is not told what was"
    )


def _waits(pid: int) -> bool:
    """Return True if the process waits for a lock of a file, as the kernel tells."""
    return any(
        "->" in line and f" {pid} " in line for line in Path("/proc/locks").read_text().splitlines()
    )
