"""C4: real trainings of TensorFlow as command jobs, over two nodes that are as other hosts.

Method: MultiWorkerMirroredStrategy over two workers; a parameter server with a training loop of the
program's own. Both learn scikit-learn's digits. A worker is killed while the others wait for it in
a collective of TensorFlow's.
"""

from __future__ import annotations

import importlib.util
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import Home, eventually

import troupe
from troupe import exceptions
from troupe.azure import MLClient, TensorFlowDistribution, command

LIMIT_S = 900.0
HERE = Path(__file__).parent
GUIDES = HERE.parents[1] / "guides"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None,
        reason="needs tensorflow: ./test long tensorflow",
    ),
]


@pytest.fixture(scope="module")
def nodes(shared_home: Home) -> Iterator[Home]:
    """Two; this process is connected."""
    head = shared_home.json("start", "--head", "--no-worker", "--port", "0")
    for name in ("a", "b"):
        shared_home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            shared_home.token(),
            "--node-name",
            name,
            "--num-cpus",
            "8",
            "--num-gpus",
            "0",
            "--force-tcp",
        )
    troupe.init(head["address"])
    yield shared_home
    troupe.shutdown()


def started(script: str, **counts: Any) -> Any:
    """The handle of a job over both nodes."""
    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(
            code=str(HERE),
            command=f"python {script}",
            instance_count=2,
            environment_variables=QUIET,
            distribution=TensorFlowDistribution(**counts),
        )
    )
    return jobs.handle(jobs.info(job.name))


def lines(script: str, **counts: Any) -> str:
    handle = started(script, **counts)
    handle.result(timeout=LIMIT_S)
    return "\n".join(handle.logs())


def test_c4_two_workers_train_one_model(nodes: Home) -> None:
    found = re.findall(
        r"worker (\d) of 2 loss (\S+) accuracy (\S+) weights (\S+)",
        lines("multi_worker.py", worker_count=2),
    )
    assert (
        sorted(each[0] for each in found) == ["0", "1"] and len({each[1:] for each in found}) == 1
    ), found
    assert float(found[0][2]) > 0.9, found


def test_c4_a_parameter_server_and_workers_end_with_the_chief(nodes: Home) -> None:
    printed = lines(
        "parameter_server.py",
        chief_count=1,
        worker_count=2,
        parameter_server_count=1,
        chief_ends_job=True,
    )
    assert sorted(re.findall(r"(worker|ps) (\d) serves", printed)) == [
        ("ps", "0"),
        ("worker", "0"),
        ("worker", "1"),
    ], printed
    found = re.search(r"chief of 2 workers: accuracy (\S+) on job:ps", printed)
    assert found is not None and float(found[1]) > 0.9, printed


def test_c4_a_worker_that_is_killed_ends_the_one_that_waits_for_it(
    nodes: Home, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("""
import os
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()

@tf.function
def step():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones(())))

while True:
    step()
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), 9)
""")
    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(
            code=str(tmp_path),
            command="python train.py",
            instance_count=2,
            environment_variables=QUIET,
            distribution=TensorFlowDistribution(worker_count=2),
        )
    )
    with pytest.raises(exceptions.LaunchError) as failed:
        jobs.handle(jobs.info(job.name)).result(timeout=LIMIT_S)
    assert (failed.value.rank, failed.value.signal) == (1, signal.SIGKILL), failed.value
    eventually(
        lambda: not [each for each in nodes.processes().values() if "train.py" in each],
        what="the end of all processes",
    )


def test_c4_the_guides_job(nodes: Home) -> None:
    """As the guide submits it, by `troupe run-as`."""
    done = nodes.run(
        "run-as",
        str(GUIDES / "azure/tensorflow_cpu.py"),
        timeout=LIMIT_S,
        env={"TROUPE_ADDRESS": troupe.get_runtime_context().gcs_address},
    )
    found = re.findall(r"accuracy ([\d.]+) of worker (\d)$", done.stdout, re.MULTILINE)
    assert (
        sorted(each[1] for each in found) == ["0", "1"]
        and len({each[0] for each in found}) == 1
        and float(found[0][0]) > 0.9
    ), done.stdout + done.stderr
