"""A head of today's version opens what an earlier one kept, and nodes of today make its actors
again: recorded/README.md.

Method: a copy of the recorded cluster is started by `troupe start --head`, with a node that it does
not know. The wall clock of all its programs is set (wall_clock.cc) to shortly after the recording,
so that certificates and kept results are as old in ten years as they are today.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import time
from pathlib import Path

import pytest
from conftest import Home

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
RECORDED = Path(__file__).parent / "recorded" / VERSION
LIBRARY = Path(os.environ.get("TROUPE_BIN_DIR", "/nonexistent"), "libwall_clock.so")
pytestmark = [
    pytest.mark.skipif(not RECORDED.exists(), reason=f"nothing is recorded by CPython {VERSION}"),
    pytest.mark.skipif(
        not LIBRARY.exists(),
        reason=f"{LIBRARY} is not there: TROUPE_BIN_DIR names no development build",
    ),
]
LATER_S = 60

DRIVER = """
import json, sys, troupe
from troupe._cluster import session as _session
from troupe.launch import LaunchHandle

troupe.init(sys.argv[1], namespace="recorded")
launches, said = json.loads(sys.argv[2]), {}
"""
ASK_THE_ACTOR = (
    DRIVER
    + """
holder = troupe.get_actor("holder")
said["given"] = troupe.get(holder.given.remote(), timeout=180)  # until the actor is there again: fenced, that is 75 s
said["written"] = troupe.get(holder.write.remote("anew"), timeout=180)
said["same ledger"] = troupe.get(troupe.get_actor("ledger").write.remote("by its name"), timeout=60)
said["halves"] = troupe.get(holder.halves.remote("abcd"), timeout=60)
said["gone"] = troupe.get(holder.ask_the_gone.remote(), timeout=60)
said["made"] = troupe.get(holder.run.remote(4), timeout=60)
said["group"] = troupe.util.get_placement_group("group").wait(60)
print("said", json.dumps(said))
"""
)
ASK_THE_LAUNCHES = (
    DRIVER
    + """
def result(name):
    return LaunchHandle(_session.current(), launches[name], waiting_for="a recorded one").result(60)[0]

handle, rejected, group = result("value")
said["value"] = [troupe.get(handle.write.remote("by a value"), timeout=60), str(rejected), rejected.code, group.bundle_specs]
for name in ("failed", "kept"):
    try:
        said[name] = result(name)
    except Exception as error:
        kinds = sorted({"LaunchError", "Refused", "ObjectLostError"} & {kind.__name__ for kind in type(error).__mro__})
        said[name] = [kinds, str(error).splitlines()[0], getattr(error, "code", None)]
print("said", json.dumps(said))
"""
)


def opened(home: Home, tmp_path: Path) -> tuple[dict, dict]:
    """A head on a copy of what is recorded, at the time of the recording; what is recorded, and the
    head."""
    recorded = json.loads((RECORDED / "recorded.json").read_text())
    state = home.path / "clusters" / recorded["cluster"]
    shutil.copytree(RECORDED / "cluster", state)
    home.path.chmod(0o700)
    for path in (home.path / "clusters").rglob("*"):  # git keeps no modes
        path.chmod(0o700 if path.is_dir() else 0o600)
    offset = tmp_path / "offset"
    offset.write_bytes(struct.pack("=q", recorded["at_s"] + LATER_S - int(time.time())))
    os.environ.update(LD_PRELOAD=str(LIBRARY), TROUPE_TEST_WALL_CLOCK=str(offset))
    head = home.json(
        "start", "--head", "--no-worker", "--port", "0", "--cluster", recorded["cluster"]
    )
    assert head["resumed"]
    return recorded, head


def start_node(home: Home, head: dict, name: str) -> None:
    home.run(
        "start",
        "--address",
        head["address"],
        "--token-file",
        home.token(),
        "--node-name",
        name,
        "--num-cpus",
        "8",
    )


def said(home: Home, code: str, recorded: dict, head: dict) -> dict:
    driver = home.python(
        "import sys; sys.argv[1:] = "
        f"{[head['address'], json.dumps(recorded['launches'])]!r}\n{code}",
        timeout=600,
    )
    assert driver.returncode == 0, driver.stderr
    return json.loads(
        next(line for line in driver.stdout.splitlines() if line.startswith("said ")).removeprefix(
            "said "
        )
    )


def test_recorded_actors_are_made_again_and_recorded_launches_have_their_ends(
    home: Home, tmp_path: Path
) -> None:
    recorded, head = opened(home, tmp_path)
    start_node(home, head, "two")
    answers = said(home, ASK_THE_ACTOR, recorded, head)
    assert answers == {
        "given": recorded["given"],
        "written": 1,
        "same ledger": 2,
        "halves": ["ab", "cd"],
        "gone": "ActorDiedError",
        "made": [8, 1, 8],
        "group": True,
    }
    answers = said(home, ASK_THE_LAUNCHES, recorded, head)
    assert answers["value"] == [3, "/data", 3, recorded["given"]["group"]]
    assert (
        answers["failed"] == [["LaunchError", "Refused"], answers["failed"][1], 6]
        and "raised Refused: 6 for /data" in answers["failed"][1]
    )
    kinds, text, _ = answers[
        "kept"
    ]  # what stands for it loads and says where it was: with a node that is no more
    assert kinds == ["ObjectLostError"] and text.startswith(
        "the driver's result (the launch succeeded) is lost"
    ), text
