"""C9, B5: a node tells how it is connected; lists show it, ranks with GPUs get NCCL's ports by it,
and a slow path is told once.

Method: nodes of which each is a host of its own, that were told another network than this machine's
by their label; GPUs that are only counted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home

import troupe
from troupe._cluster import selectors
from troupe.launch import distributed

cloudpickle.register_pickle_by_value(sys.modules[__name__])
SLOW, FAST = "if eth0 up 1000 {address}/24;", "if ens5 up 100000 10.1.0.{number}/24;"
PORT = "rdma mlx5_{number}:1 InfiniBand ACTIVE 400000 4X_NDR ib0 fe80000000000000;"
LIMIT_S = (
    300.0  # the first launches wait for the processes that theirs are forked from, on four nodes
)
PEERMEM = "gpudirect nvidia_peermem;"
NODES = {
    "a": (SLOW + FAST, "pair=sockets"),
    "b": (SLOW + FAST, "pair=sockets"),
    "c": (SLOW + PORT + PEERMEM, "pair=rdma"),
    "d": (SLOW + PORT + PEERMEM, "pair=rdma"),
}


@pytest.fixture(scope="module")
def nodes(shared_home: Home) -> Iterator[Home]:
    """Each at an address of its own: on this machine, so that they reach each other."""
    head = shared_home.json("start", "--head", "--no-worker", "--port", "0")
    for number, (name, (text, pair)) in enumerate(NODES.items(), 1):
        address = f"127.0.0.{number + 1}"
        shared_home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            shared_home.token(),
            "--num-cpus",
            "2",
            "--num-gpus",
            "1",
            "--node-name",
            name,
            "--force-tcp",
            "--listen",
            address,
            "--labels",
            f"{pair},{selectors.FABRIC}={text.format(address=address, number=number)}",
        )
    troupe.init(head["address"])
    yield shared_home
    troupe.shutdown()


def told() -> dict[str, str]:
    return {
        name: os.environ.get(name, "")
        for name in ("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "TROUPE_RDMA_PORTS")
    }


def on(pair: str, *, gpus: int = 2, **options: object) -> object:
    return distributed(
        gpus=gpus, remote=True, timeout=LIMIT_S, label_selector={"pair": pair}, **options
    )(told)


def test_c9_lists_show_how_nodes_are_connected(nodes: Home) -> None:
    found = {each["name"]: each for each in troupe.state.list_nodes()}
    assert found["c"]["network"] == {
        "interfaces": [{"name": "eth0", "up": True, "mbit_s": 1000, "addresses": ["127.0.0.4/24"]}],
        "rdma": [
            {
                "port": "mlx5_3:1",
                "kind": "InfiniBand",
                "state": "ACTIVE",
                "mbit_s": 400000,
                "width": "4X NDR",
                "interface": "ib0",
                "networks": ["fe80000000000000"],
            }
        ],
        "nvlink": [],
        "gpudirect": "nvidia_peermem",
    }
    assert all(selectors.FABRIC not in str(view) for view in (troupe.nodes(), found))
    shown = nodes.run("list", "nodes", "--topology").stdout.splitlines()
    assert "    network: eth0 127.0.0.2/24 1 Gbit/s, ens5 10.1.0.1/24 100 Gbit/s" in shown
    assert (
        "    RDMA: 1 x InfiniBand 400 Gbit/s (4X NDR): mlx5_4:1" in shown
        and "    GPUDirect RDMA: nvidia_peermem" in shown
    ), shown


def test_c9_ranks_get_the_ports_by_which_their_nodes_reach_each_other(
    nodes: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = on("rdma").distributed()
    assert [each["NCCL_IB_HCA"] for each in found] == ["=mlx5_3:1", "=mlx5_4:1"] and not any(
        each["TROUPE_RDMA_PORTS"] for each in found
    ), found
    assert [each["NCCL_IB_HCA"] for each in on("rdma", gpus=1).distributed()] == [""], "one node"
    assert [each["NCCL_IB_HCA"] for each in on("sockets").distributed()] == ["", ""]
    monkeypatch.setenv("NCCL_IB_HCA", "mlx5_7")
    assert [each["NCCL_IB_HCA"] for each in on("rdma").distributed()] == ["mlx5_7"] * 2, (
        "what the caller has said"
    )


def test_c9_a_slow_path_is_told_once_with_the_numbers(
    nodes: Home, capfd: pytest.CaptureFixture
) -> None:
    handle = on("sockets").submit()
    handle.result(timeout=LIMIT_S)
    [row] = handle.status()["slow_paths"]
    assert row.startswith(
        "a, b reach each other by eth0 at 1 Gbit/s, and are all in 10.1.0.0/24 too, by ens5 at 100 "
        "Gbit/s: "
    ), row
    capfd.readouterr()
    on("sockets", max_attempts=2).distributed()
    errors = capfd.readouterr().err
    assert errors.count(row) == 1 and "· slow network:\n" in errors, errors
    on("sockets", quiet=True).distributed()
    assert "slow" not in capfd.readouterr().err


def test_c9_nothing_is_told_where_nothing_is_slow_or_no_network_is_used(
    nodes: Home, capfd: pytest.CaptureFixture
) -> None:
    on("rdma").distributed()
    assert "slow" not in capfd.readouterr().err
    distributed(
        processes=2,
        remote=True,
        timeout=LIMIT_S,
        label_selector={"pair": "sockets"},
        strategy="STRICT_PACK",
    )(told).distributed()
    assert "slow" not in capfd.readouterr().err
    distributed(processes=4, remote=True, timeout=LIMIT_S, label_selector={"pair": "sockets"})(
        told
    ).distributed()
    assert capfd.readouterr().err.count("slow network:") == 1, "Gloo uses it too"


def test_c9_a_training_of_actors_tells_it_too(
    nodes: Home, capfd: pytest.CaptureFixture, tmp_path: Path
) -> None:
    from troupe.train import RunConfig, ScalingConfig
    from troupe.train.torch import TorchTrainer

    for pair, count in (("sockets", 1), ("rdma", 0)):
        scaling = ScalingConfig(
            num_workers=2, resources_per_worker={"CPU": 2}, label_selector={"pair": pair}
        )
        TorchTrainer(
            told, scaling_config=scaling, run_config=RunConfig(name=pair, storage_path=tmp_path)
        ).fit()
        errors = capfd.readouterr().err
        assert (
            errors.count("slow network:")
            == count
            == errors.count("a, b reach each other by eth0 at 1 Gbit/s")
        ), errors


def test_c9_rdma_that_the_caller_has_switched_off(
    nodes: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_IB_DISABLE", "1")
    handle = on("rdma").submit()
    handle.result(timeout=LIMIT_S)
    assert handle.status()["slow_paths"] == [
        "NCCL_IB_DISABLE=1, which came along from the caller: NCCL uses sockets, although c, d "
        "have 1 x InfiniBand 400 Gbit/s"
    ]


def test_c9_fabrics_that_differ(nodes: Home) -> None:
    handle = distributed(gpus=4, remote=True, timeout=LIMIT_S, quiet=True)(told).submit()
    assert [each["NCCL_IB_HCA"] for each in handle.result(timeout=LIMIT_S)] == [""] * 4
    assert handle.status()["slow_paths"][0] == (
        "c, d have 1 x InfiniBand 400 Gbit/s, and a, b have no RDMA port that is active: NCCL "
        "uses sockets between them"
    )
