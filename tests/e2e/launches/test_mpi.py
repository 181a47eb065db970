"""`mpirun troupe run`: Open MPI itself, of Debian's packages, with two nodes on loopback.

Skipped where it is not installed. The nodes are names: what starts a daemon on one of them runs it
on this machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="not installed: mpirun (Debian: openmpi-bin)"
)

AGENT = '#!/bin/sh\nshift\nexec /bin/sh -c "$*"\n'
PROGRAM = """
import os, sys, troupe
from troupe.launch import distributed
with troupe.init():
    print("nodes", len(troupe.nodes()))
    of_a_rank = lambda: int(os.environ["NODE_RANK"])
    print(distributed(processes=4, remote=True)(of_a_rank).submit().result(60))
sys.exit(4)
"""
UNTIL_TOLD = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
pathlib.Path(sys.argv[1]).touch()
signal.pause()
"""


class Mpi:
    """Two nodes of mpirun, and a secret that they share."""

    def __init__(self, home: Home, folder: Path) -> None:
        self._agent = folder / "agent"
        self._agent.write_text(AGENT)
        self._agent.chmod(0o700)
        self._secret = str(folder / "secret")
        home.run("run", "--make-secret", self._secret)

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start `mpirun troupe run` of a command."""
        line = ["mpirun", "--map-by", "ppr:1:node", "-H", "one:1,two:1"]
        for name, value in (
            ("plm_rsh_agent", str(self._agent)),
            ("orte_keep_fqdn_hostnames", "1"),
            ("odls_base_sigkill_timeout", "30"),
        ):
            line += ["--mca", name, value]
        line += [sys.executable, "-m", "troupe", "run", "--secret-file", self._secret]
        line += ["--address", "127.0.0.1", "--num-cpus", "2", "--", sys.executable, *command]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return subprocess.Popen(
            line,
            env={**os.environ, **root},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def mpi(home: Home, tmp_path: Path) -> Mpi:
    return Mpi(home, tmp_path)


def test_mpirun(mpi: Mpi) -> None:
    process = mpi.start("-c", PROGRAM)
    told, said = process.communicate(timeout=2 * TIMEOUT_S)
    assert process.returncode == 4, said
    assert told.splitlines()[:2] == ["nodes 2", "[0, 0, 1, 1]"]
    assert said.count("marker: failed, exit 4") == 2


def test_a_signal_to_mpirun_ends_the_run_in_order(mpi: Mpi, home: Home, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    process = mpi.start("-c", UNTIL_TOLD, str(ready))
    eventually(ready.exists, timeout=2 * TIMEOUT_S, what="the command's start")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=2 * TIMEOUT_S)
    assert process.returncode != 0
    assert "SIGTERM" in said, said
    eventually(lambda: not home.processes(), what="the end of all processes")
