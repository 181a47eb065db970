"""Sweeps and their trials as rows of a table, for whoever shows them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe.tune._core.deciding import Mode
from troupe.tune._core.trial import Trial
from troupe.tune._journal import view
from troupe.tune._results import flat

_FILLED = {
    "training_iteration",
    "time_total_s",
    "time_this_iter_s",
    "timestamp",
    "trial_id",
    "iterations_since_restore",
    "time_since_restore",
    "done",
}


def progress(seen: view.SweepView) -> str:
    """`12/64, 2 failed`."""
    counts = seen.counts()
    planned = seen.planned
    over = counts["completed"] + counts["stopped"] + counts["failed"]
    words = [
        f"{over}/{planned}"
        if planned
        else f"{over} of any number"
        if "trials" in seen.about
        else f"{over}"
    ]
    words += [f"{counts[each]} {each}" for each in ("running", "paused", "failed") if counts[each]]
    return ", ".join(words)


def number_of(trial: str) -> str:
    """A trial as tables name it: the sweep's own part of its id is the same for all."""
    return trial.rpartition("_")[2] or trial


def best_first(seen: view.SweepView) -> list[Trial]:
    """The trials, by the number under the metric in their last report."""
    mode = Mode(seen.about.get("mode") or "max")
    return sorted(seen.current(), key=lambda each: -mode.score(seen.value_of(each)))


def head(metric: str | None) -> list[str]:
    """The names of the columns of `row`."""
    return ["TRIAL", "STATE", "REPORTS", (metric or "METRICS").upper(), "CONFIG", "HOST", "WHY"]


def row(trial: Trial, value: float | None, metric: str | None) -> list[str]:
    """A trial's cells; `value`: what its last report has under the metric."""
    shown = (
        f"{value:.6g}"
        if value is not None
        else ""
        if metric or trial.last is None
        else words(_own(trial.last.metrics))
    )
    failed = f": {trial.failure.text.partition(chr(10))[0]}" if trial.failure is not None else ""
    return [
        number_of(trial.id),
        trial.end.value if trial.end is not None else trial.phase.value,
        str(trial.number),
        shown,
        words(trial.config),
        str(trial.where.get("hostname", "")),
        trial.why + failed,
    ]


def words(values: Mapping[str, Any]) -> str:
    """`lr=0.1 layers=2`."""
    return " ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in flat(values)
    )


def _own(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if name not in _FILLED}
