"""C9: what nodes tell of their networks is read and shown, and paths that are slower than they need
    be are named with the numbers.

Method: texts as nodes tell them, of machines that are made up here.
"""

from __future__ import annotations

import pytest

from troupe._cluster import fabric
from troupe.launch import _slow_paths
from troupe.launch._slow_paths import Place

ETH = "if eth0 up {speed} 10.0.0.{number}/24;"
IB = "".join(
    f"rdma mlx5_{each}:1 InfiniBand ACTIVE 400000 4X_NDR ib{each} fe80000000000000;"
    for each in range(2)
)
ROCE = "rdma mlx5_0:1 Ethernet ACTIVE 100000 4X_EDR ens1 10.1.0.0/24;"
PEERMEM = "gpudirect nvidia_peermem;"


def places(*texts: str, host: str = "") -> list[Place]:
    """Nodes a, b, ... at 10.0.0.1, .2, ..., each of a host of its own."""
    return [
        Place(
            name,
            f"10.0.0.{number}",
            host or name,
            fabric.of_label(text.format(number=number, speed=1000)),
        )
        for number, (name, text) in enumerate(zip("abcdefgh", texts), 1)
    ]


def slow(*texts: str, gpus: bool = True) -> list[str]:
    return _slow_paths.lines(places(*texts), gpus=gpus)


def test_a_text_of_a_node_is_read_and_shown() -> None:
    told = fabric.of_label(
        "if eth0 up 1000 10.0.0.1/24 fd00::1/64;if eth1 down 0 10.2.0.1/24;"
        + IB
        + "rdma mlx5_9:1 Ethernet DOWN 100000 4X_EDR ens9;"
        "nvlink 0-7 18 26562;gpudirect dma-buf;"
    )
    assert fabric.lines(fabric.as_dict(told)) == [
        "network: eth0 10.0.0.1/24 fd00::1/64 1 Gbit/s, eth1 10.2.0.1/24 down",
        "RDMA: 2 x InfiniBand 400 Gbit/s (4X NDR): mlx5_0:1, mlx5_1:1; 1 x RoCE 100 Gbit/s (4X "
        "EDR) DOWN: mlx5_9:1",
        "NVLink: GPUs 0-7: 18 links, 478 GB/s one way",
        "GPUDirect RDMA: dma-buf",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";;;",
        "if",
        "if eth0",
        "rdma mlx5_0:1;nvlink;gpudirect",
        "later 1 2 3;",
        "nvlink 0 many lots;",
        "if eth0 up 9999999999999999999 x/y;",
    ],
)
def test_a_text_of_another_version_does_no_harm(text: str) -> None:
    told = fabric.of_label(text)
    assert (
        all(each.mbit_s == 0 and not each.addresses for each in told.interfaces)
        and not told.active()
    )
    fabric.lines(fabric.as_dict(told))


def test_nothing_is_said_where_nothing_is_slow() -> None:
    assert slow(ETH + IB + PEERMEM, ETH + IB + PEERMEM) == []
    assert slow(ETH + ROCE + PEERMEM, ETH + ROCE.replace("10.1.0.0", "10.7.0.0") + PEERMEM) == [], (
        "RoCE may be routed"
    )
    assert slow(ETH, ETH) == [] and slow("", "") == [] and slow(ETH, ETH, gpus=False) == []
    assert slow(ETH + "rdma rdmap0:1 Unspecified ACTIVE 100000 - -;", ETH) == [], (
        "what NCCL has a plug-in for"
    )


def test_another_interface_that_is_faster_is_named_with_both_speeds() -> None:
    fast = "if ens5 up 100000 10.1.0.{number}/24;"
    for gpus in (True, False):
        assert slow(ETH + fast, ETH + fast, gpus=gpus) == [
            "a, b reach each other by eth0 at 1 Gbit/s, and are all in 10.1.0.0/24 too, by ens5 at "
            '100 Gbit/s: os.environ["NCCL_SOCKET_IFNAME"] = '
            'os.environ["GLOO_SOCKET_IFNAME"] = "ens5" before the launch, or start each node with '
            "--listen and its address in that network"
        ]
    [row] = slow(ETH + fast, ETH + fast.replace("ens5", "ens6"))
    assert "by ens5, ens6 at 100 Gbit/s: start each node with --listen" in row
    assert (
        slow(ETH + fast, ETH) == [] and slow(ETH + fast, ETH + fast.replace("10.1.", "10.2.")) == []
    ), "not all are in it"
    assert slow(ETH + fast, ETH + fast.replace(" up ", " down ")) == []
    assert slow(ETH + fast.replace("100000", "1500"), ETH + fast) == [], "less than twice as fast"
    assert slow(ETH.replace("{speed}", "0") + fast, ETH + fast) == [], "a speed that is not known"
    assert slow(ETH + fast + IB + PEERMEM, ETH + fast + IB + PEERMEM) == [], (
        "NCCL's data goes by RDMA"
    )


def test_sockets_where_some_have_rdma() -> None:
    assert slow(ETH + IB, ETH) == [
        "a has 2 x InfiniBand 400 Gbit/s, and b has no RDMA port that is active: NCCL uses sockets "
        "between them"
    ]
    down = IB.replace("ACTIVE", "DOWN")
    assert slow(ETH + IB, ETH + IB, ETH + down)[0] == (
        "a, b have 2 x InfiniBand 400 Gbit/s, and c has no RDMA port that is active (c: mlx5_0:1 "
        "DOWN, mlx5_1:1 DOWN): NCCL uses sockets between them"
    )
    assert slow(ETH + down, ETH + down) == [
        "a, b have no RDMA port that is active (a: mlx5_0:1 DOWN, mlx5_1:1 DOWN; b: mlx5_0:1 DOWN, "
        "mlx5_1:1 DOWN): NCCL uses sockets between them"
    ]
    assert slow(ETH + ROCE.replace("ACTIVE", "DOWN"), ETH) == [], (
        "a port for Ethernet without a cable"
    )
    [row] = slow(ETH + IB, ETH + IB.replace("ACTIVE", "NO_VERBS_DEVICE"))
    assert "(b: its container lacks /dev/infiniband)" in row
    assert slow(ETH + IB, ETH, gpus=False) == []


def test_rdma_that_the_caller_has_switched_off() -> None:
    well = ETH + IB + PEERMEM
    assert _slow_paths.lines(places(well, well), gpus=True, off=True) == [
        "NCCL_IB_DISABLE=1, which came along from the caller: NCCL uses sockets, although a, b "
        "have 2 x InfiniBand 400 Gbit/s"
    ]
    assert (
        _slow_paths.lines(places(ETH, ETH), gpus=True, off=True)
        == []
        == _slow_paths.lines(places(well, well), gpus=False, off=True)
    )


def test_fabrics_that_differ() -> None:
    [row] = slow(ETH + IB, ETH + ROCE)
    assert row == (
        "the nodes have no kind of RDMA in common (a has 2 x InfiniBand 400 Gbit/s; b has 1 x "
        "RoCE 100 Gbit/s): NCCL cannot use it between them"
    )
    [row] = slow(ETH + IB, ETH + IB.replace("fe80000000000000", "fe80000000000001"))
    assert row.startswith(
        "the nodes are in different InfiniBand subnets (a in fe80000000000000; b in "
        "fe80000000000001)"
    )


def test_a_port_that_is_down_or_slow_on_one_node() -> None:
    well = ETH + IB + PEERMEM
    [row] = slow(well, well.replace("mlx5_1:1 InfiniBand ACTIVE", "mlx5_1:1 InfiniBand DOWN"), well)
    assert row.startswith("mlx5_1:1 is DOWN on b, and InfiniBand 400 Gbit/s elsewhere")
    [row] = slow(
        well,
        well.replace(
            "mlx5_1:1 InfiniBand ACTIVE 400000 4X_NDR", "mlx5_1:1 InfiniBand ACTIVE 200000 2X_NDR"
        ),
    )
    assert row.startswith("mlx5_1:1 runs at 200 Gbit/s (2X NDR) on b, 400 Gbit/s elsewhere")
    one_lane = well.replace(
        "mlx5_1:1 InfiniBand ACTIVE 400000 4X_NDR", "mlx5_1:1 InfiniBand ACTIVE 100000 1X_NDR"
    )
    [row] = slow(one_lane, one_lane)
    assert row.startswith(
        "mlx5_1:1 runs at 100 Gbit/s (1X NDR) on a, 100 Gbit/s (1X NDR) on b, which is one lane of "
        "four"
    )


def test_data_of_gpus_through_the_hosts_memory() -> None:
    [row] = slow(ETH + IB + PEERMEM, ETH + IB)
    assert (
        row.startswith("b: neither nvidia_peermem nor dma-buf is there")
        and "`modprobe nvidia_peermem`" in row
    )


def test_nvlinks_that_are_down_also_on_one_host() -> None:
    full, fewer = "nvlink 0-7 18 26562;", "nvlink 0-6 18 26562;nvlink 7 12 26562;"
    assert slow(ETH + full) == [] and slow(ETH + full, gpus=False) == []
    assert slow(ETH + fewer) == [
        "a: of its GPUs 0-6 have 18 NVLinks that are up, 7 12: `nvidia-smi nvlink --status` there"
    ]
    assert slow(ETH + fewer, gpus=False) == []
    assert slow(ETH + full, ETH) == [
        "the GPUs of a are joined by NVLink, those of b are not: all go at the pace of the latter"
    ]


def test_nodes_of_one_host_have_no_network_between_them() -> None:
    assert _slow_paths.lines(places(ETH + IB, ETH, host="same"), gpus=True) == []


def test_many_nodes_are_named_up_to_four() -> None:
    [row] = slow(*[ETH + IB.replace("ACTIVE", "DOWN")] * 7, ETH + IB)
    assert "and a, b, c, d and 3 more have no RDMA port that is active" in row
