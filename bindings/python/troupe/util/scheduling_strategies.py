"""Where an actor is to run, as values for its `scheduling_strategy` option."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class PlacementGroupSchedulingStrategy:
    """Inside a placement group: in the bundle of that index, or in any (-1)."""

    def __init__(self, placement_group: Any, placement_group_bundle_index: int = -1,
                 placement_group_capture_child_tasks: bool | None = None) -> None:
        index = placement_group_bundle_index
        if not isinstance(index, int) or not -1 <= index < placement_group.bundle_count:
            raise ValueError(f"bundle index {index} is invalid: the group has {placement_group.bundle_count} bundles, "
                             "0 up; -1 means any")
        if placement_group_capture_child_tasks:
            raise ValueError("placement_group_capture_child_tasks=True is not supported by this version")
        self.placement_group = placement_group
        self.placement_group_bundle_index = index


@dataclass(frozen=True)
class NodeAffinitySchedulingStrategy:
    """On the node of this id; `soft`: elsewhere if that node cannot."""

    node_id: str
    soft: bool = False
