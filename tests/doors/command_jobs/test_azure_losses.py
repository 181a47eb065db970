"""Command jobs that lose a node, by distribution: all ends, with the node's name.

Method: two workers in a home of their own; that of the second node is killed while the job's processes wait.
"""
from __future__ import annotations

import os
import signal

import pytest
from azure_jobs import LIMIT_S, needs_mpirun
from e2e_conftest import Home, eventually

import troupe
from troupe import exceptions
from troupe.azure import MLClient, command


LINE = "echo begins; exec sleep 1000"
OTHERS = {
    "launcher": (f"pdsh -w a,b '{LINE}'", {"type": "pytorch", "launcher": "deepspeed"}),
}


@pytest.mark.parametrize("kind", ["pytorch", "tensorflow", "launcher", pytest.param("mpi", marks=needs_mpirun)])
def test_a_lost_node_ends_the_job(home: Home, kind: str) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    for name in ("a", "b"):
        home.run("start", "--address", head["address"], "--token-file", home.token(), "--node-name", name, "--num-cpus", "4", "--force-tcp")
    troupe.init(head["address"])
    jobs = MLClient().jobs
    line, distribution = OTHERS.get(kind, (LINE, {"type": kind}))
    job = jobs.create_or_update(command(command=line, instance_count=2, distribution=distribution))
    handle = jobs.handle(jobs.info(job.name))
    eventually(lambda: sum("begins" in each for each in handle.logs()) == 2, what="both processes", timeout=LIMIT_S)
    (pid,) = [each["pid"] for each in handle.session.request("GetStatus", {})[1]["nodes"] if each["name"] == "b"]
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(exceptions.LaunchError, match=r"rank 1 was lost with its node on b"):
        handle.result(timeout=LIMIT_S)
    eventually(lambda: not [each for each in home.processes().values() if "sleep 1000" in each or "orted" in each], what="the end of all processes")
