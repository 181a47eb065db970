"""The wall clock jumps, by months, forwards and back: nothing that runs notices, and what is new
still comes in.

Method: head, worker and driver are started with a library preloaded (wall_clock.cc) that shifts
their CLOCK_REALTIME by what a file says; the driver is reached by TCP only, so that every
connection shows a certificate, which a clock makes out of date. The driver is told by a line to do
a round of everything.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Home, eventually

LIBRARY = Path(os.environ.get("TROUPE_BIN_DIR", "/nonexistent"), "libwall_clock.so")
pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(),
    reason=f"{LIBRARY} is not there: TROUPE_BIN_DIR names no development build",
)
DAY_S = 24 * 3600

DRIVER = """
import json, os, sys, time
import troupe
from troupe.launch import ray_launch

class Echo:
    def pid(self):
        return os.getpid()

@ray_launch(processes=2, remote=True)
def gang():
    return int(os.environ["WORLD_SIZE"])

troupe.init(sys.argv[1], token_file=sys.argv[2])
Echo = troupe.remote(Echo)
first = Echo.remote()
for line in sys.stdin:
    said = {"first": troupe.get(first.pid.remote(), timeout=60)}
    fresh = Echo.remote()
    said["fresh"] = troupe.get(fresh.pid.remote(), timeout=60)
    troupe.kill(fresh)
    said["gang"] = gang.distributed()
    said["day"] = int(time.time() // 86400)
    print("said", json.dumps(said), flush=True)
"""


@pytest.fixture
def jump(home: Home, tmp_path: Path) -> Iterator[Callable[[int], None]]:
    """Sets the clocks of what is started from now on, and of what runs already, off by so many
    days."""
    file = tmp_path / "offset"
    file.write_bytes(struct.pack("=q", 0))
    os.environ.update(LD_PRELOAD=str(LIBRARY), TROUPE_TEST_WALL_CLOCK=str(file))

    def by(days: int) -> None:
        with file.open("r+b") as opened:  # in place: it is mapped
            opened.write(struct.pack("=q", days * DAY_S))

    yield by
    by(0)


def nodes(home: Home) -> dict[str, bool]:
    return {node["name"]: node["alive"] for node in home.json("status")["nodes"]}


def test_a_clock_that_jumps_by_months_disturbs_nothing(
    home: Home, jump: Callable[[int], None], tmp_path: Path
) -> None:
    address = home.json("start", "--head", "--no-worker", "--port", "0")["address"]
    home.run(
        "start",
        "--address",
        address,
        "--token-file",
        home.token(),
        "--node-name",
        "n0",
        "--num-cpus",
        "4",
        "--force-tcp",
    )
    elsewhere = {
        **os.environ,
        "TROUPE_HOME": str(tmp_path / "elsewhere"),
    }  # no Unix socket of the head is known there
    argv = [sys.executable, "-c", DRIVER, address, home.token("--role", "client")]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=elsewhere
    ) as driver:

        def round_of_all() -> dict:
            driver.stdin.write("go\n")
            driver.stdin.flush()
            for line in driver.stdout:  # times of the launches as well
                if line.startswith("said "):
                    return json.loads(line.removeprefix("said "))
            raise AssertionError("the driver has ended")

        try:
            before = round_of_all()
            for number, days in enumerate((40, -40, 400), start=1):
                jump(days)
                after = round_of_all()
                assert after["day"] - before["day"] in (days, days + 1), "the clock has jumped"
                assert after["first"] == before["first"] and after["gang"] == before["gang"]
                home.run(
                    "start",
                    "--address",
                    address,
                    "--token-file",
                    home.token(),
                    "--node-name",
                    f"n{number}",
                    "--num-cpus",
                    "1",
                    "--force-tcp",
                )
                eventually(
                    lambda: nodes(home) == {f"n{each}": True for each in range(number + 1)},
                    what="all nodes",
                )
        finally:
            driver.stdin.close()
            driver.wait(60)


def test_a_head_started_with_a_clock_ahead_by_a_month_retires_nothing_and_says_so(
    home: Home, jump: Callable[[int], None], tmp_path: Path
) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "2")
    token = home.token("--role", "client")
    code = f"""
import troupe
from troupe.launch import ray_launch
troupe.init({head["address"]!r})
def work():
    return 1
ray_launch(processes=1, remote=True, name="kept")(work).distributed()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    home.run("stop")
    jump(30)
    again = home.json("start", "--head", "--num-cpus", "2")
    assert [each["name"] for each in home.json("list", "launches")] == ["kept"]
    elsewhere = {**os.environ, "TROUPE_HOME": str(tmp_path / "elsewhere")}
    subprocess.run(
        [
            sys.executable,
            "-c",
            f"import troupe; troupe.init({again['address']!r}, token_file={token!r})",
        ],
        check=True,
        timeout=120,
        env=elsewhere,
    )
    said = [each["message"] for each in home.json("list", "events")]
    assert any("the clock of its host was set" in each for each in said), said
