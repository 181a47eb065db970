"""Values for the `scheduling_strategy` option of actors (`troupe.util.scheduling_strategies`), and
strategies of bundles and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troupe import _pickled, _wire

BY_NAME: dict[str, str] = {
    name: value for name, value in vars(_wire.Strategy).items() if name.isupper()
}
"""How the bundles of a placement group, and the ranks of a launch, lie: by the name that a user
gives, that of the message."""


def check(strategy: object) -> None:
    """Raises ValueError for what is none of BY_NAME."""
    if strategy not in BY_NAME:
        raise ValueError(f"strategy must be one of {', '.join(BY_NAME)}, not {strategy!r}")


class PlacementGroupSchedulingStrategy:
    """Inside a placement group: in the bundle of that index, or in any (-1).

    With `placement_group_capture_child_tasks` what the actor or task makes goes into the group too,
    in any bundle, unless its own options say where. Without a group (None): outside of the one that
    captures what is made here, if one does.
    """

    # True if made from the options placement_group= and placement_group_bundle_index=
    of_option = False

    def __init__(
        self,
        placement_group: Any,
        placement_group_bundle_index: int = -1,
        placement_group_capture_child_tasks: bool | None = None,
    ) -> None:
        index = placement_group_bundle_index
        if placement_group is None and index != -1:
            raise ValueError(
                f"If placement group is not set, the value of bundle index must be -1, not {index}"
            )
        if placement_group is not None and (
            not isinstance(index, int) or not -1 <= index < placement_group.bundle_count
        ):
            raise ValueError(
                f"bundle index {index} is invalid: the group has {placement_group.bundle_count} "
                "bundles, "
                "0 up; -1 means any"
            )
        self.placement_group = placement_group
        self.placement_group_bundle_index = index
        self.placement_group_capture_child_tasks = bool(placement_group_capture_child_tasks)


@dataclass(frozen=True)
class NodeAffinitySchedulingStrategy:
    """On the node of this id; `soft`: elsewhere if that node cannot.

    ValueError for what is no id, and for Ray's other two.
    """

    node_id: str
    soft: bool = False
    _spill_on_unavailable: bool = False
    _fail_on_unavailable: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.node_id, str) or not self.node_id:
            raise ValueError(f"node_id is the id of a node as a string, not {self.node_id!r}")
        if self._spill_on_unavailable or self._fail_on_unavailable:
            raise ValueError(
                "_spill_on_unavailable and _fail_on_unavailable are not supported: what waits for "
                "a node waits, and "
                "troupe explain says for what; label_selector with fallback_strategy tries others"
            )


class In:
    """A label whose value is one of these."""

    def __init__(self, *values: str) -> None:
        self.term = f"in({','.join(values)})"


class NotIn:
    """A label that is missing, or whose value is none of these."""

    def __init__(self, *values: str) -> None:
        self.term = f"!in({','.join(values)})"


class Exists:
    """A label that is there, with any value."""

    term = "exists()"


class DoesNotExist:
    """A label that is not there."""

    term = "!exists()"


Condition = In | NotIn | Exists | DoesNotExist


class NodeLabelSchedulingStrategy:
    """On a node whose labels hold all of `hard`, and all of `soft` as well if such a node can take
    it."""

    def __init__(
        self,
        hard: Mapping[str, Condition] | None = None,
        *,
        soft: Mapping[str, Condition] | None = None,
    ) -> None:
        if not hard and not soft:
            raise ValueError("NodeLabelSchedulingStrategy needs hard= or soft=")
        for key, term in {**(hard or {}), **(soft or {})}.items():
            if not isinstance(term, Condition):
                raise ValueError(
                    f"label {key!r} must be In(...), NotIn(...), Exists() or DoesNotExist(), not "
                    f"{term!r}"
                )
        if set(hard or {}) & set(soft or {}):
            raise ValueError("a label is in both hard= and soft=")
        self.hard = dict(hard or {})
        self.soft = dict(soft or {})

    def selectors(self) -> tuple[dict[str, str], dict[str, str]]:
        """Both as label selectors."""
        return (
            {key: term.term for key, term in self.hard.items()},
            {key: term.term for key, term in self.soft.items()},
        )


_pickled.named_in(
    "troupe.util.scheduling_strategies",
    PlacementGroupSchedulingStrategy,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
    In,
    NotIn,
    Exists,
    DoesNotExist,
)
