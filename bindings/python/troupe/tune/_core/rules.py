"""Pure. What a sweep was asked to do, beside what its scheduler and its searcher decide."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from troupe.tune._core.deciding import WORST, Mode

StopsTrial = Callable[[str, Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Rules:
    """`trials_max`: None: as many as the searcher proposes.

    `ahead`: how many places are asked for before there is room for them.
    """

    metric: str | None = None
    mode: Mode = Mode.MAX
    trials_max: int | None = None
    concurrent_max: int | None = None
    max_failures: int = 0
    fail_fast: bool = False
    num_to_keep: int | None = None
    keep_attribute: str | None = None
    keep_order: str = "max"
    time_budget_s: float | None = None
    reuse: bool = False
    ahead: int = 3
    grace_s: float = 5.0
    scheduler_name: str = "FIFOScheduler"
    may_be_silent: bool = False
    """Whether a trial that ends without a report has ended well, although there is a metric."""

    def score(self, metrics: Mapping[str, Any]) -> float:
        """Return the score of a report: larger is better; WORST if the metric is not a number."""
        if self.metric is None:
            return WORST
        found = lookup(metrics, self.metric)
        return self.mode.score(found) if isinstance(found, (int, float, type(None))) else WORST

    def silent(self, has_reported: bool) -> str:
        """Why a trial that ends now can never be judged; "": it can, or need not be."""
        if self.metric is None or has_reported or self.may_be_silent:
            return ""
        return (
            f"the trial has ended without a report, and {self.metric!r} is the metric of this "
            "sweep (TuneConfig(metric=...)): its function calls "
            f"tune.report({{{self.metric!r}: ...}}), or returns such a dict"
        )

    def missing(self, metrics: Mapping[str, Any]) -> str:
        """Why this report cannot be judged; "": it can."""
        if self.metric is None or found_in(metrics, self.metric):
            return ""
        return missing_text(self.metric, metrics)


@dataclass(frozen=True)
class Conditions:
    """RunConfig's `stop`.

    `stops`: of one trial, asked at each of its reports; `stops_all`: of the sweep, asked after it,
    and after each failure and end of a trial.
    """

    stops: StopsTrial = lambda trial, metrics: False
    stops_all: Callable[[], bool] = lambda: False


FILLED_IN = (
    "training_iteration",
    "time_total_s",
    "time_this_iter_s",
    "timestamp",
    "date",
    "trial_id",
    "hostname",
    "node_ip",
    "pid",
    "done",
    "config",
    "iterations_since_restore",
    "time_since_restore",
)
"""Metrics that are in every report by themselves."""


def missing_text(metric: str, metrics: Mapping[str, Any]) -> str:
    """Return the message that the metric was not reported, with the reported names and the nearest
    one."""
    there = [name for name in names_of(metrics) if name not in FILLED_IN]
    near = difflib.get_close_matches(metric, there, n=1)
    has = f"it has {', '.join(map(repr, there))}" if there else "it has no metrics"
    return (
        f"the report has no {metric!r}, the metric of this sweep (TuneConfig(metric=...)): {has}"
        + (f"; did you mean {near[0]!r}?" if near else "")
    )


def names_of(metrics: Mapping[str, Any], prefix: str = "") -> Iterable[str]:
    """Yield the names of all reported values, those inside dicts as "a/b"."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from names_of(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}"


def found_in(metrics: Mapping[str, Any], name: str) -> bool:
    """Return True if there is a value under that name, or under its parts."""
    return lookup(metrics, name, _NOTHING) is not _NOTHING


_NOTHING = object()


def lookup(metrics: Mapping[str, Any], name: str, otherwise: Any = None) -> Any:
    """Return the value under that name, or for "a/b" under "b" in the dict "a"."""
    if name in metrics:
        return metrics[name]
    found: Any = metrics
    for part in name.split("/"):
        if not isinstance(found, Mapping) or part not in found:
            return otherwise
        found = found[part]
    return found
