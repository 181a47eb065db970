"""Ray's `node:<address>` resource: an actor, a task or a bundle goes to the node of that
address."""

from __future__ import annotations

import pytest
from conftest import TIMEOUT_S, Home

import troupe
from troupe import exceptions
from troupe.util import placement_group, placement_group_table, remove_placement_group
from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ADDRESSES = ("127.0.0.2", "127.0.0.3")


@pytest.fixture(scope="module")
def nodes(shared_home: Home):
    """Addresses by node id."""
    head = shared_home.json("start", "--head", "--no-worker", "--port", "0")
    for address in ADDRESSES:
        shared_home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            shared_home.token(),
            "--num-cpus",
            "3",
            "--memory",
            "1000000000",
            "--listen",
            address,
            "--node-name",
            address,
        )
    troupe.init(head["address"])
    yield {node["NodeID"]: node["NodeManagerAddress"] for node in troupe.nodes()}
    troupe.shutdown()


@troupe.remote
def where() -> str:
    return troupe.get_runtime_context().get_node_id()


@troupe.remote(num_cpus=0)
class Where:
    def node(self) -> str:
        return troupe.get_runtime_context().get_node_id()


def test_every_node_has_one_of_its_address(nodes: dict[str, str]) -> None:
    assert sorted(nodes.values()) == list(ADDRESSES)
    total = {"CPU": 6, "memory": 2e9, "node:127.0.0.2": 1, "node:127.0.0.3": 1}
    assert troupe.cluster_resources() == total == troupe.available_resources()
    assert all(
        node["Resources"]["node:" + node["NodeManagerAddress"]] == 1 for node in troupe.nodes()
    )


@pytest.mark.parametrize("address", ADDRESSES)
def test_tasks_and_actors_go_to_the_node_of_the_address(
    nodes: dict[str, str], address: str
) -> None:
    there = {"resources": {f"node:{address}": 0.001}}
    refs = [where.options(**there).remote() for _ in range(4)] + [
        Where.options(**there).remote().node.remote() for _ in range(3)
    ]
    assert {nodes[each] for each in troupe.get(refs, timeout=TIMEOUT_S)} == {address}


def test_bundles_go_there_too(nodes: dict[str, str]) -> None:
    bundles = [{"CPU": 1, "node:127.0.0.3": 0.001}, {"CPU": 1, "node:127.0.0.2": 0.001}, {"CPU": 1}]
    group = placement_group(bundles)
    assert group.wait(TIMEOUT_S) and group.bundle_specs == bundles
    placed = placement_group_table(group)["bundles_to_node_id"]
    assert [nodes[placed[index]] for index in (0, 1)] == ["127.0.0.3", "127.0.0.2"]
    inside = where.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, 0))
    assert nodes[troupe.get(inside.remote(), timeout=TIMEOUT_S)] == "127.0.0.3"
    remove_placement_group(group)


def test_what_cannot_be_there_is_said(nodes: dict[str, str]) -> None:
    with pytest.raises(exceptions.PlacementError, match="node_ip=192.0.2.9"):
        Where.options(resources={"node:192.0.2.9": 0.01}).remote()
    with pytest.raises(exceptions.TaskUnschedulableError, match="node_ip=192.0.2.9"):
        troupe.get(where.options(resources={"node:192.0.2.9": 0.01}).remote(), timeout=TIMEOUT_S)
    with pytest.raises(ValueError, match="nothing runs on two nodes"):
        Where.options(resources=dict.fromkeys(("node:127.0.0.2", "node:127.0.0.3"), 0.1)).remote()
    with pytest.raises(ValueError, match="above 0 and at most 1, not 2"):
        where.options(resources={"node:127.0.0.2": 2})
    with pytest.raises(ValueError, match="the head is no node here"):
        where.options(resources={"node:__internal_head__": 0.01})
    with pytest.raises(ValueError, match="ask for different nodes"):
        where.options(resources={"node:127.0.0.2": 0.01}, label_selector={"node_ip": "127.0.0.3"})
