"""Positions of nodes and of a reservation: the tree and the picture, of data made up here."""

from __future__ import annotations

from typing import Any
from xml.dom import minidom

from troupe._cluster import fabric, topology


def node(name: str, rack: str, gpus: int = 8, **labels: str) -> dict[str, Any]:
    return {
        "node_id": f"id-{name}",
        "name": name,
        "state": "alive",
        "labels": {"rack": rack, **labels} if rack else labels,
        "resources": {"CPU": 4, "GPU": gpus, "memory": 1e9} if gpus else {"CPU": 4},
        "free": {"CPU": 1},
        "network": fabric.as_dict(fabric.of_label("")),
    }


def place(index: int, name: str, gpu_ids: list[int]) -> dict[str, Any]:
    return {
        "index": index,
        "node": f"id-{name}",
        "gpu_ids": gpu_ids,
        "resources": [{"name": "CPU", "ten_thousandths": 10000}],
    }


def texts_of(picture: str) -> list[str]:
    return [
        each.firstChild.data for each in minidom.parseString(picture).getElementsByTagName("text")
    ]


def test_the_tree_says_each_domain_once_and_leaves_out_the_dead() -> None:
    nodes = [
        node("b", "r2"),
        node("a2", "r1", block="x"),
        node("a1", "r1", block="x"),
        node("lone", "", 0),
        {**node("gone", "r1"), "state": "dead"},
    ]
    assert topology.text(nodes).splitlines() == [
        "lone  alive  1 of 4 CPU free",
        "rack r2",
        "  b  alive  1 of 4 CPU free, 0 of 8 GPU free",
        "block x",
        "  rack r1",
        "    a1  alive  1 of 4 CPU free, 0 of 8 GPU free",
        "    a2  alive  1 of 4 CPU free, 0 of 8 GPU free",
    ]


def test_how_a_node_is_connected_stands_below_it() -> None:
    told = fabric.of_label(
        "if eth0 up 1000 10.0.0.1/24;rdma mlx5_0:1 InfiniBand ACTIVE 400000 4X_NDR ib0 "
        "fe80000000000000;gpudirect dma-buf;"
    )
    assert topology.text(
        [{**node("a", "r1"), "network": fabric.as_dict(told)}, node("b", "r1")]
    ).splitlines() == [
        "rack r1",
        "  a  alive  1 of 4 CPU free, 0 of 8 GPU free",
        "      network: eth0 10.0.0.1/24 1 Gbit/s",
        "      RDMA: 1 x InfiniBand 400 Gbit/s (4X NDR): mlx5_0:1",
        "      GPUDirect RDMA: dma-buf",
        "  b  alive  1 of 4 CPU free, 0 of 8 GPU free",
    ]


def test_the_same_rack_in_another_block_is_another_domain() -> None:
    lines = topology.text([node("a", "r1", block="x"), node("b", "r1", block="y")]).splitlines()
    assert lines == [
        "block x",
        "  rack r1",
        "    a  alive  1 of 4 CPU free, 0 of 8 GPU free",
        "block y",
        "  rack r1",
        "    b  alive  1 of 4 CPU free, 0 of 8 GPU free",
    ]


def test_the_picture_has_the_domains_with_bundles_and_their_gpus() -> None:
    nodes = [node("a1", "r1"), node("a2", "r1"), node("b", "r2"), node("c", "r3")]
    info = {
        "group": "0123456789",
        "name": "<mine>",
        "places": [place(0, "a1", [6, 7]), place(1, "a1", []), place(12, "b", [0])],
    }
    picture = topology.svg(info, nodes)
    texts = texts_of(picture)
    assert texts[0] == "<mine>: 3 bundles on 2 nodes in 2 domains; 1 without any not drawn"
    assert [
        each for each in texts if each in ("rack r1", "rack r2", "rack r3", "a1", "a2", "b", "c")
    ] == ["rack r1", "a1", "a2", "rack r2", "b"]
    assert sorted(each for each in texts if each.isdigit()) == ["0", "0", "0", "1", "12", "12"]
    titles = [
        each.firstChild.data for each in minidom.parseString(picture).getElementsByTagName("title")
    ]
    assert "GPU 6: bundle 0" in titles and "GPU 5" in titles and "bundle 12: {CPU: 1}" in titles


def test_a_picture_of_many_nodes_breaks_into_rows_within_its_frame() -> None:
    nodes = [node(f"n{number:03}", "r1") for number in range(20)]
    info = {
        "group": "0123456789",
        "name": "",
        "places": [place(number, f"n{number:03}", list(range(8))) for number in range(20)],
    }
    document = minidom.parseString(topology.svg(info, nodes)).documentElement
    width, height = int(document.getAttribute("width")), int(document.getAttribute("height"))
    for box in document.getElementsByTagName("rect")[1:]:
        x, y, w, h = (int(box.getAttribute(name)) for name in ("x", "y", "width", "height"))
        assert x + w <= width and y + h <= height
