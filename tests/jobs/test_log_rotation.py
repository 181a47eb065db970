# Method: a head and a worker whose log files have 1 MiB. A job writes one piece after the other,
#     each once the one before has been read, so that what is followed is cut several times.
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home

from troupe.cli import _start_head

PIECES, LINES, LINE_BYTES = 12, 2500, 100  # 250 kB a piece, 3 MB in all
PROGRAM = f"""
import os, pathlib, sys, time
for piece in range({PIECES}):
    while not pathlib.Path(sys.argv[1], str(piece)).exists():
        time.sleep(0.01)  # lint-ok: until the test has read the piece before
    for number in range(piece * {LINES}, (piece + 1) * {LINES}):
        print(str(number).ljust({LINE_BYTES - 1}, "x"))
    sys.stdout.flush()
    while piece % 4 == 3 and os.fstat(1).st_size > 1 << 20:
        time.sleep(0.01)  # lint-ok: the worker cuts the file at a tick
"""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("job", "logs", "-f"), id="job logs"),
        pytest.param(("logs", "--follow"), id="logs", marks=pytest.mark.long),
    ],
)
def test_who_follows_a_log_that_is_cut_reads_each_line_once(
    home: Home, tmp_path: Path, command: tuple[str, ...]
) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "1", "--log-file-mib", "1")
    submit = ("job", "submit", "--json", "--", sys.executable, "-c", PROGRAM, str(tmp_path))
    name = json.loads(home.run(*submit).stdout)["id"]
    if command[0] == "logs":
        name = home.json("list", "launches")[0]["id"]
    with subprocess.Popen(
        [sys.executable, "-m", "troupe", *command, name], stdout=subprocess.PIPE, text=True
    ) as follower:
        try:
            assert follower.stdout is not None
            for piece in range(PIECES):
                (tmp_path / str(piece)).touch()
                for number in range(piece * LINES, (piece + 1) * LINES):
                    line = follower.stdout.readline().removeprefix("[0] ")
                    assert line == str(number).ljust(LINE_BYTES - 1, "x") + "\n"
            assert follower.stdout.read() == "" and follower.wait(TIMEOUT_S) == 0
        finally:
            follower.kill()
    cut = list(Path(head["state"], "nodes").glob("*/logs/**/*.dropped"))
    assert cut and int(cut[0].read_text()) > 0, "it was cut"
    home.run("stop")


def test_logs_of_heads_that_did_not_start_are_few(home: Home) -> None:
    folder = home.path / "logs"
    folder.mkdir(parents=True)
    for number in range(3 * _start_head._FAILED_KEPT):
        (folder / f"head-{number:016x}.log").touch()
        os.utime(folder / f"head-{number:016x}.log", (time.time(), 1000.0 + number))
    home.json("start", "--head", "--no-worker", "--port", "0")
    left = sorted(each.name for each in folder.iterdir())
    assert len(left) == _start_head._FAILED_KEPT and left[-1] == f"head-{29:016x}.log"
    home.run("stop")
