"""`troupe.state` and `status()` of launches that go to a cluster without `troupe.init()`.

Method: a program that launches by TROUPE_ADDRESS and asks for what the cluster holds, in one
process; a launch of it succeeds, one fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from conftest import TIMEOUT_S, Home

PROGRAM = """
import json
import troupe
from troupe.launch import distributed


def fail():
    raise ValueError("as it should")



before = len(troupe.state.list_nodes())
good = distributed(processes=1, remote=True, quiet=True)(lambda: 1).submit()
bad = distributed(processes=1, remote=True, quiet=True)(fail).submit()
good.result()
try:
    bad.result()
except troupe.exceptions.LaunchError:
    pass
print(json.dumps({
    "nodes": [before, len(troupe.state.list_nodes()), len(troupe.nodes())], "states": [good.status()["state"], bad.status()["state"]],
    "listed": sorted(each["state"] for each in troupe.state.list_launches()), "events": bool(troupe.state.list_events()),
    "tasks": troupe.state.list_tasks(), "actors": troupe.state.list_actors(), "groups": troupe.state.list_placement_groups(),
    "free": len(troupe.state.available_resources_per_node()), "timeline": bool(troupe.timeline())}))
"""


def test_the_state_is_that_of_the_cluster_launched_on_and_a_launch_that_ended_has_its_outcome(
    home: Home, tmp_path: Path
) -> None:
    address = home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"]
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        env={**os.environ, "TROUPE_ADDRESS": address},
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["states"] == ["succeeded", "failed"] and found["listed"] == ["failed", "succeeded"]
    assert (
        found["nodes"] == [1, 1, 1] and found["free"] == 1 and found["events"] and found["timeline"]
    )
    assert found["tasks"] == found["actors"] == found["groups"] == []
    assert sorted(each["state"] for each in home.json("list", "launches")) == [
        "failed",
        "succeeded",
    ]
    latest = home.json("list", "launches", "--limit", "1", "--since", "1h")
    assert [each["state"] for each in latest] == ["failed"]
    for words, said in (
        (["nodes", "--limit", "1"], "go with launches"),
        (["launches", "--since", "yesterday"], "is no duration"),
    ):
        refused = home.run("list", *words, ok=False)
        assert refused.returncode == 2 and said in refused.stderr
    assert "failed" not in home.run("status").stdout, (
        "launches that have ended are not in the overview"
    )
