"""Pure. Which checkpoints of a run stay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Kept:
    """A checkpoint of a run: the name of its folder, the number of the report that brought it, and
    that report's metrics."""

    name: str
    report: int
    metrics: Mapping[str, Any] = field(default_factory=dict)


def value_of(metrics: Mapping[str, Any], attribute: str) -> float | None:
    """The number under that key, or, for "val/loss" where there is no such key, under "loss" in the
    dict "val"; None: there is none."""
    found: Any = metrics.get(attribute)
    if attribute not in metrics:
        found = metrics
        for part in attribute.split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
    is_number = (
        isinstance(found, (int, float)) and not isinstance(found, bool) and not math.isnan(found)
    )
    return found if is_number else None


def best_first(kept: Sequence[Kept], attribute: str | None, order: str) -> list[Kept]:
    """Sorted by score, of equal ones the later first; without an attribute the latest first.

    What has no number is last.
    """

    def key(one: Kept) -> tuple[Any, ...]:
        score = value_of(one.metrics, attribute) if attribute is not None else 0.0
        return (
            score is not None,
            0.0 if score is None else score if order == "max" else -score,
            one.report,
        )

    return sorted(kept, key=key, reverse=True)


def to_drop(
    kept: Sequence[Kept], num_to_keep: int | None, attribute: str | None, order: str
) -> list[Kept]:
    """Return the checkpoints to remove: all but the best `num_to_keep`, and never the latest, from
    which a restart continues."""
    if num_to_keep is None:
        return []
    latest = max((one.report for one in kept), default=0)
    return [one for one in best_first(kept, attribute, order)[num_to_keep:] if one.report != latest]
