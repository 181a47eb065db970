"""The order of the queue by priority, and what is ended for a higher one when the cluster's policy
says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Home, eventually

import troupe
from troupe import state
from troupe.launch import distributed
from troupe.util.placement_group import (
    placement_group,
    placement_group_table,
    remove_placement_group,
)


@troupe.remote(num_cpus=2, max_restarts=5)
class Long:
    """Holds the whole node, and may start again."""

    def ping(self) -> int:
        return 1


class Order:
    """The order of arrival."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def add(self, name: str) -> None:
        self._names.append(name)

    def names(self) -> list[str]:
        return self._names


def start(home: Home, *options: str) -> None:
    """Start a node of 2 CPUs and connect this process to it."""
    started = home.json("start", "--head", "--port", "0", "--num-cpus", "2", *options)
    troupe.init(started["address"])
    eventually(lambda: all(node["zygote_ready"] for node in state.list_nodes()), what="the zygote")


def test_the_highest_is_first_and_nothing_is_ended(home: Home) -> None:
    start(home)
    holder = placement_group([{"CPU": 2}])
    assert holder.wait(60)
    plain = placement_group([{"CPU": 2}], name="plain")
    high = placement_group([{"CPU": 2}], name="high", priority=7)
    actor = Long.options(priority=-1).remote()
    places = {
        name: placement_group_table(group)["queue_place"]
        for name, group in (("plain", plain), ("high", high))
    }
    assert places == {"plain": 2, "high": 1}
    eventually(
        lambda: "waiting (place 3, priority -1): actor" in home.run("status").stdout,
        what="the actor's place",
    )
    status = home.run("status").stdout
    assert "waiting (place 1, priority 7): placement group high: " in status, status
    assert "waiting (place 2): placement group plain: " in status, status
    remove_placement_group(holder)
    assert high.wait(60)
    assert placement_group_table(plain)["state"] == "PENDING"
    remove_placement_group(high)
    assert plain.wait(60)
    remove_placement_group(plain)
    assert troupe.get(actor.ping.remote(), timeout=60) == 1
    with pytest.raises(ValueError, match="priority must be a whole number"):
        placement_group([{"CPU": 1}], priority=1.5)


def test_tasks_of_a_higher_priority_come_first(home: Home) -> None:
    start(home)
    holder = placement_group([{"CPU": 2}])
    assert holder.wait(60)
    order = troupe.remote(num_cpus=0)(Order).remote()
    note = troupe.remote(num_cpus=2, max_calls=1)(
        lambda name, order: troupe.get(order.add.remote(name))
    )
    refs = [note.remote("plain", order)]
    eventually(
        lambda: "waiting (place 1)" in home.run("status").stdout, what="the first one's place"
    )
    refs.append(note.options(priority=5).remote("high", order))
    eventually(
        lambda: "waiting (place 1, priority 5)" in home.run("status").stdout,
        what="the other one's place",
    )
    remove_placement_group(holder)
    troupe.get(refs, timeout=60)
    assert troupe.get(order.names.remote(), timeout=20) == ["high", "plain"]
    troupe.kill(order)


def test_a_launch_makes_room_and_starts_again(home: Home, tmp_path: Path) -> None:
    start(home, "--preemption", "restartable")
    go = tmp_path / "go"

    def train(flag: str) -> str:
        import os
        import time

        while os.environ["TROUPE_EPOCH"] == "1" and not os.path.exists(flag):
            time.sleep(0.05)  # lint-ok: a rank that computes
        return os.environ["TROUPE_EPOCH"]

    once = distributed(processes=1, remote=True)(train).submit(str(go))
    again = distributed(processes=1, remote=True, max_attempts=2)(train).submit(str(go))
    eventually(
        lambda: [launch.status()["state"] for launch in (once, again)] == ["running"] * 2,
        what="both launches",
    )
    group = placement_group([{"CPU": 1}], priority=3)
    assert group.wait(60)
    told = again.status()
    assert (told["state"], told["preemptions"], told["epoch"]) == ("queued", 1, 1), told
    assert once.status()["state"] == "running", "it may start only once"
    text = home.run("explain", again.id[:12]).stdout
    assert f"last attempt: preempted by placement group {group.id[:8]} of priority 3" in text, text
    remove_placement_group(group)
    assert again.result(timeout=60) == ["2"]
    go.touch()
    assert once.result(timeout=60) == ["1"]


def test_an_actor_makes_room_and_is_created_again(home: Home) -> None:
    start(home, "--preemption", "restartable")
    actor = Long.remote()
    assert troupe.get(actor.ping.remote(), timeout=60) == 1
    group = placement_group([{"CPU": 2}], priority=1)
    assert group.wait(60)
    assert [each["restarts"] for each in state.list_actors()] == [1]
    remove_placement_group(group)

    def answers() -> bool:
        try:
            return troupe.get(actor.ping.remote(), timeout=60) == 1
        except troupe.exceptions.TroupeError:
            return False

    eventually(answers, what="the actor's second life")
