"""A program in C++ outlives its head: the next one, of the same state, is come back to."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from e2e_conftest import Home, eventually


def test_a_head_that_is_killed_and_started_again_is_come_back_to(
    home: Home, programs: Path
) -> None:
    started = home.json("start", "--head", "--port", "0", "--num-cpus", "8")
    with subprocess.Popen(
        [programs / "actors", "returns"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    ) as program:
        assert (
            program.stdin is not None and program.stdout is not None and program.stderr is not None
        )
        try:
            assert program.stdout.readline() == "before 2\n", program.stderr.read()
            head = next(
                pid for pid, command in home.processes().items() if "troupe-head" in command
            )
            os.kill(head, signal.SIGKILL)
            eventually(lambda: head not in home.processes(), what="the end of the head")
            home.run(
                "start",
                "--head",
                "--port",
                started["address"].rpartition(":")[2],
                "--num-cpus",
                "8",
            )
            out, err = program.communicate("go\n", timeout=180)
        finally:
            program.kill()
    assert program.returncode == 0, err
    assert out.splitlines() == ["after 3", "new 6", "anew 11"]
