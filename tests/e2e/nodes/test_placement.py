"""Placement on a cluster of four labelled nodes: selectors, levels, the queue, and why something
waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from conftest import Home, all_returned, eventually

import troupe
from troupe import exceptions, state
from troupe.util.placement_group import (
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from troupe.util.scheduling_strategies import (
    DoesNotExist,
    Exists,
    In,
    NodeLabelSchedulingStrategy,
    NotIn,
    PlacementGroupSchedulingStrategy,
)

LABELS = {
    "a1": "rack=r1,disk=ssd",
    "a2": "rack=r1,disk=hdd",
    "b1": "rack=r2,disk=ssd",
    "b2": "rack=r2",
}


@troupe.remote(num_cpus=1)
class Here:
    """Says on which node it is."""

    def node(self) -> str:
        return troupe.get_runtime_context().get_node_id()

    def labels(self) -> dict[str, str]:
        return troupe.get_runtime_context().get_node_labels()


@pytest.fixture(scope="module")
def racks(shared_home: Home) -> Iterator[Home]:
    """Four nodes of 2 CPUs in two racks, this process connected to them."""
    started = shared_home.json(
        "start",
        "--head",
        "--port",
        "0",
        "--num-cpus",
        "2",
        "--node-name",
        "a1",
        "--labels",
        LABELS["a1"],
        "--keep-place-after",
        "0",
    )
    token = shared_home.token()
    for name in ("a2", "b1", "b2"):
        shared_home.run(
            "start",
            "--address",
            started["address"],
            "--token-file",
            token,
            "--num-cpus",
            "2",
            "--labels",
            LABELS[name],
            "--node-name",
            name,
        )
    troupe.init(started["address"])
    eventually(
        lambda: (
            len(state.list_nodes()) == 4
            and all(node["zygote_ready"] for node in state.list_nodes())
        ),
        what="four nodes",
    )
    yield shared_home
    troupe.shutdown()


@pytest.fixture
def idle(racks: Home) -> Iterator[Home]:
    """The cluster; asserts that all its resources are free again after the test."""
    yield racks
    all_returned(timeout=20)


def names_of(group: troupe.util.PlacementGroup) -> list[str]:
    """The node of each bundle, by name."""
    names = {node["node_id"]: node["name"] for node in state.list_nodes()}
    places = placement_group_table(group)["bundles_to_node_id"]
    return [names[places[index]] for index in sorted(places)]


def where(actor: object) -> str:
    """The name of the node an actor is on."""
    names = {node["node_id"]: node["name"] for node in state.list_nodes()}
    return names[troupe.get(actor.node.remote(), timeout=60)]


def test_each_bundle_has_a_selector_of_its_own(idle: Home) -> None:
    group = placement_group(
        [{"CPU": 1}] * 3,
        bundle_label_selector=[
            {"disk": "hdd"},
            {"disk": "!in(ssd,hdd)"},
            {"rack": "r2", "disk": "ssd"},
        ],
    )
    assert group.wait(60) and names_of(group) == ["a2", "b2", "b1"]
    remove_placement_group(group)
    group = placement_group(
        [{"CPU": 1}] * 2, "STRICT_SPREAD", bundle_label_selector=[{"rack": "r1"}]
    )
    assert group.wait(60) and sorted(names_of(group)) == ["a1", "a2"]
    remove_placement_group(group)


def test_a_node_by_its_id_as_a_label_and_as_a_wish(idle: Home) -> None:
    ids = {node["NodeName"]: node["NodeID"] for node in troupe.nodes()}
    assert all(node["Labels"]["ray.io/node-id"] == node["NodeID"] for node in troupe.nodes())
    actor = Here.options(label_selector={"ray.io/node-id": ids["b1"]}).remote()
    assert where(actor) == "b1"
    assert troupe.get(actor.labels.remote(), timeout=60) == {
        "rack": "r2",
        "disk": "ssd",
        "ray.io/node-id": ids["b1"],
    }
    groups = [
        placement_group([{"CPU": 1}], "STRICT_PACK", _soft_target_node_id=ids["b1"])
        for _ in range(2)
    ]
    assert all(group.wait(60) for group in groups)
    assert names_of(groups[0]) == ["b1"] and names_of(groups[1]) != ["b1"], (
        "the second does not fit beside the actor"
    )
    for group in groups:
        remove_placement_group(group)
    troupe.kill(actor)
    with pytest.raises(
        ValueError, match="_soft_target_node_id is for the strategy STRICT_PACK, not PACK"
    ):
        placement_group([{"CPU": 1}], _soft_target_node_id=ids["b1"])
    amounts: list[tuple[dict, type[Exception], str]] = [
        (
            {"GPU": -1},
            ValueError,
            "bundle 1: GPU must be a number of at least 0, and at most 1e+14, not -1",
        ),
        (
            {"GPU": 1.5},
            ValueError,
            "bundle 1: GPU must be a fraction of one GPU or whole GPUs, not 1.5",
        ),
        ({"CPU": "1"}, TypeError, "bundle 1: CPU must be a number of at least 0, not '1'"),
    ]
    for bundle, kind, words in amounts:
        with pytest.raises(kind) as caught:
            placement_group([{"CPU": 1}, bundle])
        assert str(caught.value) == words


def test_rays_topology_strategy(idle: Home) -> None:
    for strategy, level in ((None, {"rack": "STRICT_PACK"}), (None, {"rack": "PACK"})):
        group = placement_group([{"CPU": 1}] * 4, strategy, topology_strategy=level)
        assert group.wait(60) and {name[0] for name in names_of(group)} in ({"a"}, {"b"})
        remove_placement_group(group)
    with pytest.raises(exceptions.PlacementError):
        placement_group([{"CPU": 1}] * 5, topology_strategy={"rack": "STRICT_PACK"})
    for wrong, words in (
        ({"rack": "SPREAD"}, "with STRICT_PACK or PACK"),
        ({"shelf": "PACK"}, "ray.io/gpu-domain"),
        ({}, "a dict of one level"),
    ):
        with pytest.raises(ValueError, match=words):
            placement_group([{"CPU": 1}], topology_strategy=wrong)
    with pytest.raises(ValueError, match="both say how bundles lie"):
        placement_group([{"CPU": 1}], "PACK", topology_strategy={"rack": "PACK"})


def test_within_a_rack_and_near(idle: Home) -> None:
    for _ in range(3):
        group = placement_group([{"CPU": 1}] * 4, within="rack")
        assert group.wait(60) and len({name[0] for name in names_of(group)}) == 1
        remove_placement_group(group)
        eventually(
            lambda: troupe.available_resources() == troupe.cluster_resources(), what="its end"
        )
    with pytest.raises(
        exceptions.PlacementError, match="no rack holds all: the roomiest, r1, has room for 4 of 5"
    ):
        placement_group([{"CPU": 1}] * 5, within="rack")
    group = placement_group([{"CPU": 1}] * 5, near="rack")
    assert group.wait(60) and sorted(names_of(group))[:4] in (
        ["a1", "a1", "a2", "a2"],
        ["a1", "b1", "b1", "b2"],
        ["a2", "b1", "b1", "b2"],
    )
    remove_placement_group(group)


def test_what_no_selector_is(idle: Home) -> None:
    for selector in ({"disk": "in(a"}, {"disk": ""}, {"": "x"}):
        with pytest.raises(
            exceptions.TroupeError,
            match=r"write a value, !value, in\(a,b\), !in\(a,b\), exists\(\) or !exists\(\)",
        ):
            placement_group([{"CPU": 1}], bundle_label_selector=[selector])
    with pytest.raises(
        exceptions.TroupeError,
        match="'floor' is no level of where nodes stand; there are: block, rack",
    ):
        placement_group([{"CPU": 1}], within="floor")
    with pytest.raises(ValueError, match="2 selectors for 3 bundles"):
        placement_group([{"CPU": 1}] * 3, bundle_label_selector=[{}, {}])
    with pytest.raises(
        ValueError,
        match=r"'disk' must be In\(...\), NotIn\(...\), Exists\(\) or DoesNotExist\(\), not 'ssd'",
    ):
        NodeLabelSchedulingStrategy({"disk": "ssd"})
    with pytest.raises(
        exceptions.PlacementError, match="floor present, rack=r2 can never be placed"
    ):
        troupe.get(
            Here.options(label_selector={"floor": "exists()", "rack": "r2"}).remote().node.remote(),
            timeout=60,
        )
    with pytest.raises(
        exceptions.PlacementError, match="a1, b1: 2 CPU free; disk is ssd, not nvme"
    ):
        troupe.get(Here.options(label_selector={"disk": "nvme"}).remote().node.remote(), timeout=60)


def test_actors_go_where_their_labels_say(idle: Home) -> None:
    actors = [
        Here.options(label_selector={"disk": "hdd"}).remote(),
        Here.options(
            label_selector={"disk": "tape"},
            fallback_strategy=[{"label_selector": {"disk": "!in(ssd,hdd)"}}],
        ).remote(),
        Here.options(
            scheduling_strategy=NodeLabelSchedulingStrategy(
                {"rack": NotIn("r1")}, soft={"disk": In("ssd")}
            )
        ).remote(),
        Here.options(num_cpus=0, label_selector={"rack": "r1", "disk": "ssd"}).remote(),
        Here.options(
            num_cpus=0,
            scheduling_strategy=NodeLabelSchedulingStrategy(
                {"disk": DoesNotExist()}, soft={"rack": Exists()}
            ),
        ).remote(),
        Here.options(num_cpus=0, label_selector={"disk": "exists()", "rack": "!r1"}).remote(),
    ]
    assert [where(actor) for actor in actors] == ["a2", "b2", "b1", "a1", "b2", "b1"]
    for actor in actors:
        troupe.kill(actor)
    group = placement_group([{"CPU": 1}])
    with pytest.raises(ValueError, match="bundle_label_selector"):
        Here.options(
            label_selector={"disk": "ssd"},
            scheduling_strategy=PlacementGroupSchedulingStrategy(group),
        ).remote()
    remove_placement_group(group)


def test_tasks_go_where_their_labels_say(idle: Home) -> None:
    names = {node["node_id"]: node["name"] for node in state.list_nodes()}
    here = troupe.remote(lambda: troupe.get_runtime_context().get_node_id())
    refs = [
        here.options(label_selector={"disk": "hdd"}).remote(),
        here.options(
            label_selector={"disk": "tape"},
            fallback_strategy=[{"label_selector": {"disk": "!in(ssd,hdd)"}}],
        ).remote(),
        here.options(num_cpus=0, label_selector={"rack": "r1", "disk": "ssd"}).remote(),
    ]
    assert [names[node] for node in troupe.get(refs, timeout=60)] == ["a2", "b2", "a1"]
    with pytest.raises(exceptions.TaskUnschedulableError, match="disk is ssd, not nvme"):
        troupe.get(here.options(label_selector={"disk": "nvme"}).remote(), timeout=60)
    group = placement_group([{"CPU": 1}])
    with pytest.raises(ValueError, match="bundle_label_selector"):
        here.options(
            label_selector={"disk": "ssd"},
            scheduling_strategy=PlacementGroupSchedulingStrategy(group),
        ).remote()
    remove_placement_group(group)


def test_groups_like_those_before_are_not_waited_for(idle: Home) -> None:
    groups = [placement_group([{"CPU": 0.1}] * 2, "STRICT_SPREAD") for _ in range(30)]
    assert all(group.wait(60) for group in groups)
    assert troupe.available_resources()["CPU"] == pytest.approx(2)
    for group in groups:
        remove_placement_group(group)
        assert not group.wait(60)
    assert {placement_group_table(group)["state"] for group in groups} == {"REMOVED"}
    with pytest.raises(exceptions.TaskPlacementGroupRemoved):
        troupe.get(groups[0].ready(), timeout=60)


def test_tasks_of_a_group_that_is_removed_say_so(idle: Home) -> None:
    group = placement_group([{"CPU": 1}])
    strategy = PlacementGroupSchedulingStrategy(group)

    @troupe.remote(num_cpus=1, max_retries=0, scheduling_strategy=strategy)
    def endless() -> None:
        threading.Event().wait()

    running, waiting = endless.remote(), endless.remote()
    eventually(
        lambda: [each for each in state.list_tasks() if each["state"].lower() == "running"],
        what="the start of a task",
    )
    remove_placement_group(group)
    for ref in (running, waiting, endless.remote()):
        with pytest.raises(exceptions.WorkerCrashedError) as caught:
            troupe.get(ref, timeout=60)
        assert isinstance(caught.value, exceptions.TaskPlacementGroupRemoved) == (
            ref is not running
        ), caught.value
        assert "placement group" in str(caught.value)


def test_p6_a_large_group_is_not_passed_and_says_why_it_waits(idle: Home) -> None:
    first = placement_group([{"CPU": 1}], name="first")
    assert first.wait(60)
    large = placement_group([{"CPU": 2}] * 4, name="large")
    small = placement_group([{"CPU": 1}], name="small")
    assert [placement_group_table(group)["state"] for group in (large, small)] == [
        "PENDING",
        "PENDING",
    ]
    text = idle.run("explain", large.id[:12]).stdout
    assert text.startswith("pending: 4 x {CPU: 2} must wait\n"), text
    assert "in use: 1 more CPU needed" in text and "2 CPU free; fits 1 each" in text, text
    assert "a place is kept for it" in text, text
    text = state.explain(small.id)
    assert "before it in the queue: 1; what would do is kept for the first of them" in text, text
    assert state.explain(first.id).startswith("created\n  bundle 0 {CPU: 1} on ")
    with pytest.raises(
        ValueError, match="no launch, actor or placement group has an id that starts with 'zz'"
    ):
        state.explain("zz")
    remove_placement_group(first)
    assert large.wait(60)
    remove_placement_group(get_placement_group("large"))
    assert small.wait(60)
    remove_placement_group(small)


def test_the_nodes_by_where_they_stand_and_a_picture_of_a_placement(idle: Home) -> None:
    lines = [
        line
        for line in idle.run("list", "nodes", "--topology").stdout.splitlines()
        if not line.startswith("      ")
    ]  # prefixes of the networks
    assert lines[:3] == ["rack r1", "  a1  alive  2 of 2 CPU free", "  a2  alive  2 of 2 CPU free"]
    group = placement_group([{"CPU": 1}] * 4, within="rack", name="drawn")
    assert group.wait(60)
    picture = idle.run("explain", group.id[:8], "--svg", "-").stdout
    assert (
        picture.startswith("<svg")
        and "drawn: 4 bundles on 2 nodes in 1 domain; 1 without any not drawn" in picture
    )
    assert picture == state.placement_svg(group.id)
    remove_placement_group(group)
    with pytest.raises(ValueError, match="nothing is reserved"):
        state.placement_svg(group.id)
