"""C5: DeepSpeed in command jobs, without GPUs: by the PyTorch and MPI distributions, by its own
    launcher, and what its autotuning starts.

Method: two workers by --force-tcp; a training whose losses are to be those of torchrun, by the rule
of `losses.py`; DeepSpeed's own scheduler of experiments with a script that says where it runs.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import Home
from losses import said, verdict
from runs import LIMIT_S, PROGRAMS, VARIABLES, by_torchrun

import troupe
from troupe.azure import MLClient, command

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None,
    reason="deepspeed is not installed here: ./test frameworks installs it",
)
WORDS = ("--stage", "2", "--steps", "5")
PROGRAM = f"deepspeed_zero.py {' '.join(WORDS)}"
LAUNCHER = {"type": "pytorch", "launcher": "deepspeed"}


@pytest.fixture(scope="module", autouse=True)
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for the compilers' output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path_factory.mktemp("extensions")))
        yield


def lines(line: str, distribution: dict[str, Any], **more: Any) -> list[str]:
    """Return the output of a job of two nodes; it has to succeed."""
    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(
            code=str(PROGRAMS),
            command=line,
            instance_count=2,
            distribution=distribution,
            environment_variables=VARIABLES,
            **more,
        )
    )
    handle = jobs.handle(jobs.info(job.name))
    handle.result(timeout=LIMIT_S)
    return list(handle.logs())


@pytest.fixture(scope="module")
def nodes(shared_home: Home) -> Iterator[dict[str, str]]:
    """Node ids by name, "a" and "b"; this process is connected."""
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
    yield {node["NodeName"]: node["NodeID"] for node in troupe.nodes()}
    troupe.shutdown()


@pytest.fixture(scope="module")
def torchrun() -> Any:
    return by_torchrun("deepspeed_zero", *WORDS)


HOW = {
    "pytorch": (f"python {PROGRAM}", {"type": "pytorch"}),
    "mpi": (f"python {PROGRAM}", {"type": "mpi"}),
    "launcher": (f"deepspeed --no_local_rank {PROGRAM}", LAUNCHER),
}


@pytest.mark.parametrize("how", HOW)
def test_c5_a_training_learns_what_it_learns_under_torchrun(
    nodes: dict[str, str], torchrun: Any, how: str
) -> None:
    if how == "mpi" and shutil.which("mpirun") is None:
        pytest.skip("needs Open MPI: openmpi-bin")
    found = verdict(
        torchrun,
        said("\n".join(lines(*HOW[how])), 2),
        lambda: by_torchrun("deepspeed_zero", *WORDS),
    )
    assert not found.why, found.why


def test_c5_the_launcher_reaches_the_slots_of_each_node(nodes: dict[str, str]) -> None:
    printed = "\n".join(
        lines(
            "deepspeed --include a:1@b:0,1 where.py --x 1",
            {**LAUNCHER, "process_count_per_instance": 2},
        )
    )
    found = re.findall(
        r"(\w): here (\d) of (\d) local (\d) devices (\S+) at \S+ in (\S+) words --local_rank=\d --x 1",
        printed,
    )
    assert sorted(each[:5] for each in found) == [
        ("a", "0", "3", "0", "1"),
        ("b", "1", "3", "1", "0,1"),
        ("b", "2", "3", "0", "0,1"),
    ], printed
    assert {each[0]: nodes[each[0]] in each[5] for each in found} == {"a": True, "b": True}, (
        "each in the job's directory of its node"
    )


def test_c5_each_experiment_of_an_autotuning_reaches_its_nodes(
    nodes: dict[str, str], tmp_path: Path
) -> None:
    """Experiments for one node run on different ones at the same time, and the last on both."""
    printed = "\n".join(
        lines(
            f"python experiments.py $TROUPE_HOSTFILE 2 {tmp_path} where.py",
            {**LAUNCHER, "process_count_per_instance": 2},
        )
    )
    found: dict[str, list[tuple[str, ...]]] = {}
    for name, host, rank, size, devices in re.findall(
        r"(\w+) (\w): here (\d) of (\d) local \d devices (\S+) ", printed
    ):
        found.setdefault(name, []).append((host, rank, size, devices))
    assert {"alone_1", "alone_2", "both"} <= set(found), printed
    alone = sorted(found["alone_1"] + found["alone_2"])
    assert alone == [(host, rank, "2", "0,1") for host in ("a", "b") for rank in ("0", "1")], (
        printed
    )
    assert (
        len({each[0] for each in found["alone_1"]})
        == 1
        == len({each[0] for each in found["alone_2"]})
    ), printed
    assert sorted(found["both"]) == [
        ("a", "0", "4", "0,1"),
        ("a", "1", "4", "0,1"),
        ("b", "2", "4", "0,1"),
        ("b", "3", "4", "0,1"),
    ], printed
    assert re.search(
        r"alone_1 was deepspeed --hostfile \S+ --include [ab]:0,1 --master_port 2960\d where\.py --deepspeed \S+",
        printed,
    ), printed
    assert len(re.findall(r"experiment \w+ error None", printed)) == 3, printed
