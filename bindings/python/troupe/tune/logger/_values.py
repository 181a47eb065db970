"""Values that MLflow takes of a trial: numbers as metrics, a configuration as parameters. Pure."""

from __future__ import annotations

import math
import numbers
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from troupe.tune.logger.logger import by_depth

KEY_CHARS_MAX, PARAMETER_CHARS_MAX, TAG_CHARS_MAX = 250, 6000, 5000
_NOT_METRICS = ("config", "date", "done", "hostname", "node_ip", "pid", "timestamp", "trial_id")
_REFUSED = re.compile(r"[^\w\-. :/]")  # in names


def key_of(name: str) -> str:
    """As MLflow takes it.

    >>> key_of("loss (val)")
    'loss _val_'
    """
    cleaned = posixpath.normpath(_REFUSED.sub("_", name)[:KEY_CHARS_MAX]).lstrip(
        "/"
    )  # MLflow takes names as paths, each in its only form
    return (
        cleaned.replace(".", "_")
        if not cleaned.strip("./") or cleaned.startswith("..")
        else cleaned
    )


def number_of(value: Any) -> float | None:
    """None of what is no number."""
    if isinstance(value, numbers.Real):
        return float(value)
    item = getattr(value, "item", None)
    if (
        item is not None
        and getattr(value, "ndim", None) == 0
        and isinstance(found := item(), numbers.Real)
    ):
        return float(found)
    return None


def metrics_of(result: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a report, those inside dicts as "a/b"; without what says where and when it was
    made.

    >>> metrics_of({"loss": 0.5, "by": {"class": 2}, "pid": 7, "text": "a", "config": {"lr": 1}})
    {'loss': 0.5, 'by/class': 2.0}
    """
    kept = by_depth({name: value for name, value in result.items() if name not in _NOT_METRICS})
    return {
        key_of(name): number
        for name, value in kept.items()
        if (number := number_of(value)) is not None
    }


def parameters_of(config: Mapping[str, Any]) -> dict[str, str]:
    """A configuration as texts."""
    return {
        key_of(name): str(value)[:PARAMETER_CHARS_MAX] for name, value in by_depth(config).items()
    }


def changed(before: Mapping[str, str], config: Mapping[str, Any]) -> dict[str, float]:
    """The parameters that are numbers and are not any more what they were, as metrics: of those
    MLflow takes a second value."""
    found = {}
    for name, value in by_depth(config).items():
        number = number_of(value)
        if (
            number is not None
            and not math.isnan(number)
            and before.get(key_of(name), str(value)) != str(value)
        ):
            found[f"config/{key_of(name)}"[:KEY_CHARS_MAX]] = number
    return found


def step_of(result: Mapping[str, Any]) -> int:
    """At which step its metrics are."""
    return int(result.get("timesteps_total") or result.get("training_iteration") or 0)


def time_ms_of(result: Mapping[str, Any], now_ms: int) -> int:
    """When it was made."""
    stamp = result.get("timestamp")
    return int(stamp * 1000) if isinstance(stamp, (int, float)) else now_ms
