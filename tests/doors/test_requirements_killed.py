"""An environment whose making was killed: the next one makes it whole, once nobody writes to it any more.

Method: a `uv` that waits until it is let go on; its starter, a process of its own, is killed meanwhile.
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


def test_one_that_was_killed_while_it_was_made_is_made_whole_by_the_next(home: Home, tmp_path: Path) -> None:
    """The installer outlives its killed starter: nobody else writes to the folder before it has ended."""
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
    third = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=2 * TIMEOUT_S)
    assert third.stdout == said and len(installer.runs()) == 2


def _waits(pid: int) -> bool:
    """Whether it waits for a lock of a file, as the kernel tells."""
    return Path(f"/proc/{pid}/wchan").read_text().startswith(("flock", "locks", "__flock")) or "->" in _waiters(pid)


def _waiters(pid: int) -> str:
    return "".join(line for line in Path("/proc/locks").read_text().splitlines() if f" {pid} " in line)
