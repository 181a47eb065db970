"""Command jobs that lose a node, by distribution: all ends, with the node's name, and nothing of
what a process has started stays on either node.

Method: two workers in a home of their own; that of one node is killed while the job's processes
wait for others that they have started, one of them in a session of its own.
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

LINE = "echo begins; sleep 1000 & setsid sleep 1000 & wait; echo over"
KINDS = {
    "pytorch": (LINE, {"type": "pytorch"}, 2),
    "tensorflow": (LINE, {"type": "tensorflow", "worker_count": 1, "parameter_server_count": 1}, 2),
    "mpi": (LINE, {"type": "mpi"}, 2),
    "launcher": (f"pdsh -w a,b '{LINE}'", {"type": "pytorch", "launcher": "deepspeed"}, 2),
    "ray": (LINE, {"type": "ray"}, 1),
}

OFTEN = {("tensorflow", "b"), ("mpi", "a")}
"""Of these two each run of the tests has the loss; of the others `./test long doors`."""


def marks(kind: str, lost: str) -> list[pytest.MarkDecorator]:
    return [
        *([needs_mpirun] if kind == "mpi" else []),
        *([] if (kind, lost) in OFTEN else [pytest.mark.long]),
    ]


@pytest.mark.parametrize(
    ("kind", "lost"),
    [pytest.param(kind, lost, marks=marks(kind, lost)) for kind in KINDS for lost in "ab"],
)
def test_a_lost_node_ends_the_job(home: Home, kind: str, lost: str) -> None:
    """The lost node is the first one, which drives the job, or the other; with TensorFlow a
    worker's or a parameter server's."""
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
    jobs = MLClient().jobs
    line, distribution, processes = KINDS[kind]
    job = jobs.create_or_update(command(command=line, instance_count=2, distribution=distribution))
    handle = jobs.handle(jobs.info(job.name))
    eventually(
        lambda: sum("begins" in each for each in handle.logs()) == processes,
        what="the processes",
        timeout=LIMIT_S,
    )
    (pid,) = [
        each["pid"]
        for each in handle.session.request("GetStatus", {})[1]["nodes"]
        if each["name"] == lost
    ]
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(
        exceptions.LaunchError, match=rf"rank {'ab'.index(lost)} was lost with its node on {lost}"
    ) as failed:
        handle.result(timeout=LIMIT_S)
    assert isinstance(failed.value, exceptions.NodeDiedError)
    words = ("sleep 1000", "orted", "mpirun", "_guard.py", "raynode")
    eventually(
        lambda: (
            not [each for each in home.processes().values() if any(word in each for word in words)]
        ),
        what="the end of all processes",
    )
