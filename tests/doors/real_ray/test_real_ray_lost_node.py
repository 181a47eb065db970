"""A real Ray cluster of a launch, one of whose nodes is lost: nothing of Ray is left there.

Method: two workers of a cluster of the test's own; one is killed.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from e2e_conftest import Home, eventually
from real_rays import LIMIT_S, needs_ray, up

import troupe
from troupe import exceptions

pytestmark = [needs_ray, pytest.mark.long]


def _cluster(home: Home) -> None:
    os.environ["TMPDIR"] = os.environ["XDG_RUNTIME_DIR"]  # the home's own
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    for name in ("a", "b"):
        home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            home.token(),
            "--node-name",
            name,
            "--num-cpus",
            "4",
            "--force-tcp",
        )
    troupe.init(head["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygotes"
    )


def _worker_above(pid: int) -> int:
    while "troupe-worker" not in Path(f"/proc/{pid}/cmdline").read_text():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert pid > 1, "no worker is above it"
    return pid


def test_a13_a_worker_that_is_killed_leaves_nothing_of_ray(home: Home, tmp_path: Path) -> None:
    _cluster(home)
    cluster = up(home, tmp_path)
    os.kill(_worker_above(cluster.process("raylet/raylet --", 1)), signal.SIGKILL)
    with pytest.raises(exceptions.NodeDiedError, match="rank 1 was lost with its node"):
        cluster.handle.result(timeout=LIMIT_S)
    eventually(cluster.is_gone, what="the end of all that Ray had there")
