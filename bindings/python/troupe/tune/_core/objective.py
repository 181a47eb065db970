"""Pure.

What a sweep optimizes, where its configuration, its scheduler and its searcher may each say so, and
its value in a report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from troupe.tune._core.deciding import Mode


def mode_of(what: str, mode: object) -> Mode:
    """Raises ValueError, which calls it `what`, for what is neither "min" nor "max"."""
    if not isinstance(mode, str) or mode not in ("min", "max"):
        raise ValueError(f'{what}: mode must be "min" or "max", not {mode!r}')
    return Mode(mode)


def objective(said: Sequence[tuple[str, Any, Any]]) -> tuple[str | None, Mode | None]:
    """The metric and the mode of a sweep; None: nobody says it.

    `said`: of each that may say so, what it is called, its metric and its mode. Two may say the
    same. Lists, a searcher's several objectives, are its own and none of the sweep's. Raises
    ValueError for two that do not agree, and for a mode that is none.
    """
    found: dict[str, tuple[str, str]] = {}
    for who, metric, mode in said:
        if isinstance(metric, (list, tuple)) or isinstance(mode, (list, tuple)):
            continue
        if mode is not None:
            mode_of(who, mode)
        for name, value in (("metric", metric), ("mode", mode)):
            if value is None:
                continue
            earlier = found.setdefault(name, (who, value))
            if earlier[1] != value:
                raise ValueError(
                    f"{earlier[0]} has {name}={earlier[1]!r} and {who} has {name}={value!r}: say "
                    "it once"
                )
    metric, mode = found.get("metric"), found.get("mode")
    return (metric[1] if metric else None), (Mode(mode[1]) if mode else None)


def found(metrics: Mapping[str, Any], name: str) -> Any:
    """Return the value reported under that name, or, for "val/loss", under "loss" in the dict
    "val"; None if there is none."""
    if name in metrics:
        return metrics[name]
    value: Any = metrics
    for part in name.split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
