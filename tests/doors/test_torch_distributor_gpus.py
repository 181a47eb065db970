"""TorchDistributor on the GPUs of a cluster, and of this machine: whose they are, how many there
are, what is said where there are none.

Method: nodes with GPUs that are only counted; ranks say which they have. No rank uses one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home, eventually
from submits import project

import troupe
from troupe import exceptions
from troupe.spark import DeepspeedTorchDistributor, DistributorError, TorchDistributor, _training

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def gpus(shared_home: Home) -> Iterator[Home]:
    """Two nodes, a and b, of two GPUs each; this process is connected."""
    started = shared_home.json(
        "start", "--head", "--port", "0", "--num-cpus", "8", "--num-gpus", "2", "--node-name", "a"
    )
    shared_home.run(
        "start",
        "--address",
        started["address"],
        "--token-file",
        shared_home.token(),
        "--num-cpus",
        "8",
        "--num-gpus",
        "2",
        "--node-name",
        "b",
    )
    troupe.init(started["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygotes"
    )
    yield shared_home
    troupe.shutdown()


def place() -> tuple[str, str, str, str]:
    """Node, LOCAL_RANK, the node's devices that are the launch's, NODE_RANK."""
    node = troupe.get_runtime_context().get_node_name()
    return (
        node,
        os.environ["LOCAL_RANK"],
        os.environ["CUDA_VISIBLE_DEVICES"],
        os.environ["NODE_RANK"],
    )


def places() -> list[tuple[str, str, str, str]]:
    """Return the places of all ranks."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    found: list = [None] * dist.get_world_size()
    dist.all_gather_object(found, place())
    return found


def test_b3_a_gpu_for_each_rank_over_the_nodes(idle_gpus: Home) -> None:
    """B1, B3: LOCAL_RANK is the number of the rank's device among those of the launch on its
    node."""
    found = TorchDistributor(num_processes=4, local_mode=False, use_gpu=True).run(places)
    assert sorted((local, number) for _, local, _, number in found) == [
        ("0", "0"),
        ("0", "1"),
        ("1", "0"),
        ("1", "1"),
    ]
    assert {each[0] for each in found} == {"a", "b"} and all(each[2] == "0,1" for each in found)
    assert TorchDistributor(2, local_mode=False, use_gpu=False).run(place)[2] == ""


def test_b3_what_one_run_has_no_other_is_given(idle_gpus: Home, tmp_path: Path) -> None:
    """GPU ownership: a second run waits while the first has the GPUs, and is given them after
    it."""
    from concurrent.futures import ThreadPoolExecutor

    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def holds() -> str:
        if os.environ["RANK"] == "0":
            gate.read_text()
        return "first"

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(TorchDistributor(3, local_mode=False, use_gpu=True).run, holds)
        eventually(
            lambda: troupe.available_resources().get("GPU", 0) == 1, what="the first run's ranks"
        )
        second = threads.submit(TorchDistributor(2, local_mode=False, use_gpu=True).run, place)
        eventually(
            lambda: any(each["state"] == "queued" for each in troupe.state.list_launches()),
            what="the second, in the queue",
        )
        assert not second.done()
        gate.write_text("")
        assert first.result(60) == "first" and second.result(60)[2] == "0,1"


def test_a_file_on_the_clusters_gpus(
    idle_gpus: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    text = (
        "import os\nprint(os.environ['RANK'], os.environ['LOCAL_WORLD_SIZE'], "
        "os.environ['CUDA_VISIBLE_DEVICES'])\n"
    )
    folder = project(tmp_path / "w", says=text)
    assert TorchDistributor(4, local_mode=False, use_gpu=True).run(str(folder / "says.py")) is None
    assert sorted(line for line in capfd.readouterr().out.splitlines() if line.startswith("[")) == [
        f"[{number}] {number} 2 0,1" for number in range(4)
    ]


def test_b6_deepspeed_has_as_many_ranks_on_each_node(
    idle_gpus: Home, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    """B6: numGpus on each of nnodes nodes, of functions and of files."""
    spread = DeepspeedTorchDistributor(
        numGpus=1, nnodes=2, localMode=False, useGpu=True, deepspeedConfig={"a": 1}
    )
    assert sorted((node, local) for node, local, _, _ in spread.run(places)) == [
        ("a", "0"),
        ("b", "0"),
    ]
    folder = project(
        tmp_path / "w",
        says="import os\nprint(os.environ['LOCAL_WORLD_SIZE'], os.environ['NODE_RANK'])\n",
    )
    spread.run(str(folder / "says.py"))
    assert sorted(
        line[4:] for line in capfd.readouterr().out.splitlines() if line.startswith("[")
    ) == ["1 0", "1 1"]


def test_more_gpus_than_the_cluster_has_are_refused(idle_gpus: Home) -> None:
    with pytest.raises(RuntimeError, match="GPUs of the cluster: 4 x") as caught:
        TorchDistributor(5, local_mode=False, use_gpu=True).run(place)
    assert isinstance(caught.value, DistributorError) and isinstance(
        caught.value, exceptions.PlacementError
    )


def test_more_ranks_than_the_machine_has_cpus_share_them() -> None:
    class Session:
        @staticmethod
        def request(kind: str, fields: dict) -> tuple:
            return (
                None,
                {"nodes": [{"resources": [{"name": "CPU", "ten_thousandths": 40_000}]}]},
                None,
            )

    many, few = (_training.of_this_machine(Session(), ranks)["cpus_per_rank"] for ranks in (5, 2))
    assert (many, few) == (0, 1)
