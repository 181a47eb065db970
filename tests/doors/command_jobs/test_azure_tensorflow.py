"""Command jobs with the TensorFlow distribution: TF_CONFIG on every process, ports that are theirs,
the end of parameter servers.

Method: shell lines and small programs that look at TF_CONFIG, on two nodes that are as other hosts;
and where tensorflow is installed, a training with MultiWorkerMirroredStrategy.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path

import pytest
from azure_jobs import LIMIT_S, folder_of, ran, run

from troupe import exceptions
from troupe._cluster import session
from troupe.azure import MLClient, TensorFlowDistribution, command
from troupe.launch import _ports

TYPED = 'kind=$(echo $TF_CONFIG | grep -o \'"type": "[a-z]*"\' | cut -d\\" -f4); '


def test_c4_every_process_has_its_tf_config(hosts: dict[str, str]) -> None:
    lines = ran(
        command="echo $TF_CONFIG",
        instance_count=2,
        distribution=TensorFlowDistribution(worker_count=2),
    )
    found = [json.loads(line) for line in lines]
    assert [each["task"] for each in found] == [
        {"type": "worker", "index": 0},
        {"type": "worker", "index": 1},
    ]
    assert all(
        set(each) == {"cluster", "task", "environment"} and each["environment"] == "cloud"
        for each in found
    )
    assert found[0]["cluster"] == found[1]["cluster"] and set(found[0]["cluster"]) == {"worker"}
    assert (
        all(re.fullmatch(r"[\d.]+:\d+", each) for each in found[0]["cluster"]["worker"])
        and len(set(found[0]["cluster"]["worker"])) == 2
    )


def test_c4_the_ports_are_the_processes_to_listen_at(hosts: dict[str, str], tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "src",
        **{
            "meet.py": """
import json, os, socket
config = json.loads(os.environ["TF_CONFIG"])
workers, index = config["cluster"]["worker"], config["task"]["index"]
host, port = workers[index].rsplit(":", 1)
server = socket.create_server(("", int(port)))
def call(address):
    while True:
        try:
            return socket.create_connection((address[0], int(address[1])))
        except ConnectionRefusedError:
            pass
other = call(workers[1 - index].rsplit(":", 1))
other.sendall(b"from %d" % index)
print(server.accept()[0].recv(9).decode())
"""
        },
    )
    assert ran(
        code=str(folder),
        command="python meet.py",
        instance_count=2,
        distribution={"type": "TensorFlow"},
    ) == ["from 0", "from 1"]


def test_c4_parameter_servers_end_when_all_workers_have_and_that_is_success(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    """Workers end once the server waits: one that is told to end before it runs ends without a
    word."""
    for rank in (0, 1):
        os.mkfifo(tmp_path / f"go{rank}")
    line = TYPED + (
        f"echo $kind of node $NODE_RANK; cd {tmp_path}; test $kind = ps || read line < go$RANK; "
        'if [ $kind = ps ]; then trap "echo told" TERM; sleep 1000 & echo > go0; echo > go1; wait; '
        "echo ended; fi"
    )
    lines = ran(
        command=line,
        instance_count=2,
        distribution={
            "type": "tensorflow",
            "worker_count": 2,
            "parameter_server_count": 1,
            "added_property": 7,
        },
    )
    assert lines == [
        "ended",
        "ps of node 1",
        "told",
        "worker of node 0",
        "worker of node 0",
    ], "3 processes of 2 instances are on exactly two nodes"


def test_c4_a_parameter_server_that_ends_before_has_its_own_code(hosts: dict[str, str]) -> None:
    with pytest.raises(exceptions.LaunchError) as failed:
        run(
            command=TYPED + "test $kind = ps && { echo why >&2; exit 4; }; exec sleep 1000",
            distribution=TensorFlowDistribution(worker_count=1, parameter_server_count=1),
        )
    assert (failed.value.exit_code, failed.value.rank) == (4, 1)


def test_c4_a_worker_that_is_killed_ends_all_that_wait_for_it(hosts: dict[str, str]) -> None:
    with pytest.raises(exceptions.LaunchError) as failed:
        run(
            command=TYPED + 'test "$kind $RANK" = "worker 1" && kill -KILL $$; sleep 1000',
            instance_count=2,
            distribution=TensorFlowDistribution(worker_count=2, parameter_server_count=1),
        )
    assert (failed.value.signal, failed.value.rank) == (9, 1)


def test_c4_workers_that_serve_a_chief_end_with_it(hosts: dict[str, str], tmp_path: Path) -> None:
    """chief_ends_job: as with ParameterServerStrategy, whose workers wait for ever.

    The chief ends once all others wait.
    """
    os.mkfifo(tmp_path / "waits")
    line = TYPED + (
        f"echo $kind; cd {tmp_path}; if [ $kind = chief ]; then exec 3<>waits; head -n 3 <&3 "
        ">/dev/null; "
        'else trap "echo told" TERM; sleep 1000 & echo > waits; wait; fi'
    )
    lines = ran(
        command=line,
        instance_count=2,
        distribution={
            "type": "tensorflow",
            "worker_count": 2,
            "parameter_server_count": 1,
            "chief_count": 1,
            "chief_ends_job": True,
        },
    )
    assert lines == ["chief", "ps", "told", "told", "told", "worker", "worker"]


@pytest.mark.long
def test_c4_a_worker_that_outlives_its_chief_is_named_with_what_to_do(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    """The job goes on: it may be a worker that still trains."""
    line = TYPED + f"test $kind != worker || cat {tmp_path / 'go'}; test $kind != ps || sleep 1000"
    os.mkfifo(tmp_path / "go")
    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(
            command=line,
            distribution=TensorFlowDistribution(
                worker_count=1, parameter_server_count=1, chief_count=1
            ),
        )
    )
    handle = jobs.handle(jobs.info(job.name))
    said = next(
        each for each in handle.logs(2, follow=True) if "troupe: all chiefs have ended" in each
    )
    assert (
        said == "troupe: all chiefs have ended, and rank 1, a worker, runs on, and so does the job"
    )
    assert jobs.get(job.name).status == "Running"
    (tmp_path / "go").write_text("")
    handle.result(timeout=LIMIT_S)
    assert any(
        "chief_ends_job=True of the distribution ends workers when the chiefs have" in each
        for each in handle.logs(2)
    )


def test_c4_chief_ends_job_is_of_a_job_with_a_chief() -> None:
    with pytest.raises(
        ValueError, match="chief_ends_job is of a job with a chief: chief_count is 0"
    ):
        TensorFlowDistribution(worker_count=1, chief_ends_job=True)
    with pytest.raises(TypeError, match="chief_ends_job must be True or False, not 'yes'"):
        TensorFlowDistribution(worker_count=1, chief_count=1, chief_ends_job="yes")


def test_what_jobs_have_told_at_the_head_goes_when_they_are_over(hosts: dict[str, str]) -> None:
    for _ in range(2):
        run(command="true", instance_count=2, distribution={"type": "TensorFlow"})
    left = _ports.told_by_all(session.current())
    assert len(left) == 2, "of the last one alone"
    for _ in range(
        2
    ):  # the second one finds nothing, as a program does that submits at the same time as another
        _ports.forget(session.current(), left, running=set())
    assert not _ports.told_by_all(session.current())


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs tensorflow")
def test_c4_a_training_over_two_workers(hosts: dict[str, str], tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "src",
        **{
            "train.py": """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    value = tf.Variable(1.0)
@tf.function
def step():
    def replica():
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones(()))
    return strategy.run(replica)
print("sum", float(strategy.experimental_local_results(step())[0]), flush=True)
"""
        },
    )
    lines = ran(
        code=str(folder),
        command="python train.py 2>/dev/null",
        instance_count=2,
        distribution={"type": "TensorFlow", "worker_count": 2},
    )
    assert lines == ["sum 2.0", "sum 2.0"]
