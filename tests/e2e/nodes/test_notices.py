"""`troupe start --notice-command`: a node whose machine will be taken away ends in order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import TIMEOUT_S, Home, eventually

WORK = """
import pathlib, signal, sys
from troupe.launch import distributed

@distributed(processes=1, remote=True, max_attempts=2)
def work(folder):
    word = pathlib.Path(folder, "last word")
    if word.exists():
        return "again"
    signal.signal(signal.SIGTERM, lambda *_: (word.write_text("x"), sys.exit(1)))
    pathlib.Path(folder, "began").touch()
    signal.pause()

print(work.submit(sys.argv[1]).result(100))
"""


def test_a_notice_ends_the_node_and_what_ran_there_goes_on_elsewhere(
    home: Home, tmp_path: Path
) -> None:
    address = home.json("start", "--head", "--no-worker", "--port", "0")["address"]
    join = ("start", "--address", address, "--token-file", home.token(), "--num-cpus", "1")
    taken = tmp_path / "taken"
    node = subprocess.Popen(
        [sys.executable, "-m", "troupe", *join, "--node-name", "spot"]
        + ["--block", "--json", "--notice-command", f"test -e {taken}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert node.stdout is not None and '"spot"' in node.stdout.readline()
    program = subprocess.Popen(
        [sys.executable, "-c", WORK, str(tmp_path)],
        env={**os.environ, "TROUPE_ADDRESS": address},
        stdout=subprocess.PIPE,
        text=True,
    )
    eventually((tmp_path / "began").exists, what="the start of the rank")
    home.run(*join, "--node-name", "other")
    taken.touch()
    _, said = node.communicate(timeout=TIMEOUT_S)
    assert node.returncode == 0 and "will be taken away" in said
    assert (tmp_path / "last word").exists()
    assert program.communicate(timeout=2 * TIMEOUT_S)[0].strip() == "['again']"
    names = [each["name"] for each in home.json("list", "nodes") if each["state"] == "alive"]
    assert names == ["other"]


def test_a_notice_needs_a_node_that_stays(home: Home) -> None:
    for line in (("--head", "--block"), ("--address", "127.0.0.1:1")):
        done = home.run("start", *line, "--notice-command", "true", ok=False)
        assert done.returncode == 2 and "goes with --address and --block" in done.stderr
