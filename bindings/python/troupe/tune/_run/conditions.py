"""RunConfig's `stop`, as the core asks it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe.tune._core.rules import Conditions, lookup


def of(stop: Any) -> Conditions:
    """Of a dict of metrics, a function, a Stopper, or None."""
    if stop is None:
        return Conditions()
    if isinstance(stop, Mapping):
        limits = dict(stop)

        def reached(trial: str, metrics: Mapping[str, Any]) -> bool:
            return any(_is_at(lookup(metrics, name), least) for name, least in limits.items())

        return Conditions(reached)
    all_over = getattr(stop, "stop_all", None)
    asked = lambda trial, metrics: bool(stop(trial, {**metrics, "trial_id": trial}))  # noqa: E731
    return Conditions(asked, (lambda: bool(all_over())) if callable(all_over) else Conditions.stops_all)


def _is_at(value: Any, least: Any) -> bool:
    """As Ray has it: from the number on, of a loss too; of what is true or false, the value."""
    if isinstance(least, bool):
        return bool(value) is least
    return isinstance(value, (int, float)) and value >= least
