"""placement_group_capture_child_tasks: what an actor or a task in a placement group makes goes into
    the group too.

Method: a real cluster; what runs says which group it is in.
"""

from __future__ import annotations

import sys
from typing import Any

import cloudpickle
import pytest
from conftest import Home

import troupe
from troupe.util import get_current_placement_group, placement_group, remove_placement_group
from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@troupe.remote
def where(depth: int = 0) -> list:
    """The group of this task, and of a task that it starts, and so on."""
    group = troupe.get_runtime_context().get_placement_group_id()
    return [group, *(troupe.get(where.remote(depth - 1), timeout=60) if depth else ())]


@troupe.remote
class Maker:
    """Makes things that say where they are."""

    def group(self) -> Any:
        return troupe.get_runtime_context().get_placement_group_id()

    def captures(self) -> bool:
        return troupe.get_runtime_context().should_capture_child_tasks_in_placement_group

    def tasks(self, depth: int) -> list:
        return troupe.get(where.remote(depth), timeout=60)

    def outside(self) -> list:
        return troupe.get(where.options(scheduling_strategy="DEFAULT").remote(), timeout=60)

    def actors(self, levels: int) -> list:
        """The groups of an actor made here, and of one that it makes, and so on."""
        child = Maker.remote()
        below = troupe.get(child.actors.remote(levels - 1), timeout=60) if levels > 1 else []
        group = troupe.get(child.group.remote(), timeout=60)
        troupe.kill(child)
        return [group, *below]

    def current(self) -> Any:
        return get_current_placement_group()


@pytest.fixture
def group(idle: Home) -> Any:
    made = placement_group([{"CPU": 1}] * 4)
    assert made.wait(30)
    yield made
    remove_placement_group(made)


def inside(group: Any, captures: bool | None, index: int = 0) -> Any:
    return PlacementGroupSchedulingStrategy(
        group, index, placement_group_capture_child_tasks=captures
    )


def test_children_of_an_actor_go_where_it_is(group: Any) -> None:
    maker = Maker.options(scheduling_strategy=inside(group, True)).remote()
    assert troupe.get(maker.captures.remote(), timeout=60) is True
    assert troupe.get(maker.tasks.remote(2), timeout=60) == [group.id] * 3
    assert troupe.get(maker.actors.remote(2), timeout=60) == [group.id] * 2
    assert troupe.get(maker.outside.remote(), timeout=60) == [None]
    assert troupe.get(maker.current.remote(), timeout=60) == group


def test_children_of_an_actor_that_does_not_ask_for_it_go_elsewhere(group: Any) -> None:
    for captures in (None, False):
        maker = Maker.options(scheduling_strategy=inside(group, captures)).remote()
        assert troupe.get(maker.captures.remote(), timeout=60) is False
        assert troupe.get(maker.group.remote(), timeout=60) == group.id
        assert troupe.get(maker.tasks.remote(1), timeout=60) == [None] * 2
        assert troupe.get(maker.actors.remote(1), timeout=60) == [None]
        troupe.kill(maker)


def test_children_of_a_task(group: Any) -> None:
    assert (
        troupe.get(where.options(scheduling_strategy=inside(group, True, -1)).remote(2), timeout=60)
        == [group.id] * 3
    )
    plain = where.options(
        scheduling_strategy=inside(group, False, -1)
    )  # calls of the same group: other processes all the same
    assert troupe.get(plain.remote(2), timeout=60) == [group.id, None, None]


def test_outside_of_groups_there_is_nothing_to_capture(idle: Home) -> None:
    maker = Maker.remote()
    assert troupe.get(maker.captures.remote(), timeout=60) is False
    assert troupe.get_runtime_context().should_capture_child_tasks_in_placement_group is False
    assert troupe.get(maker.actors.remote(1), timeout=60) == [None]
    troupe.kill(maker)
