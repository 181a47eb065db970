"""Pure. What schedulers are told, checked: their arguments, and the progress of a report."""

from __future__ import annotations

import math
from typing import Any

from troupe._base.checks import or_nearest
from troupe.tune._core.deciding import Report, ReportError
from troupe.tune._core.objective import found, mode_of


def number(
    what: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> float:
    """A finite number within these limits. Raises TypeError or ValueError, which call it `what`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} must be a number, not {value!r}")
    too_low = above is not None and not value > above or least is not None and not value >= least
    if not math.isfinite(value) or too_low or most is not None and not value <= most:
        limits = [
            f"above {above}" if above is not None else "",
            f"at least {least}" if least is not None else "",
            f"at most {most}" if most is not None else "",
        ]
        raise ValueError(
            f"{what} must be a finite number {' and '.join(filter(None, limits))}, not {value!r}"
        )
    return value


def count(what: str, value: Any, least: int) -> int:
    """A whole number. Raises TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{what} must be at least {least}, not {value}")
    return value


def objective(what: str, time_attr: Any, metric: Any, mode: Any) -> None:
    """The arguments that most schedulers have. Raises TypeError or ValueError."""
    if not isinstance(time_attr, str) or not time_attr:
        raise TypeError(
            f"{what}: time_attr must be the name of something that is reported, not {time_attr!r}"
        )
    if metric is not None and (not isinstance(metric, str) or not metric):
        raise TypeError(f"{what}: metric must be the name of a metric, not {metric!r}")
    if mode is not None:
        mode_of(what, mode)


def progress(what: str, time_attr: str, report: Report) -> float | None:
    """How far the trial is.

    None: this report does not say it. Raises ReportError where the trial's first does not, or what
    it says is no number.
    """
    value = report.metrics.get(time_attr)
    if value is None and (value := found(report.metrics, time_attr)) is None:
        if report.number == 1:
            raise ReportError(
                f"{what} asks for {time_attr!r} (time_attr), which is not "
                f"reported{or_nearest(time_attr, report.metrics)}"
            )
        return None
    if type(value) is not int and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ReportError(
            f"{what} asks for {time_attr!r} (time_attr), which is reported as {value!r} and must "
            "be a finite number"
        )
    return value


def shown(score: float, negated: bool) -> str:
    """A score as the metric's value, for a person."""
    value = -score if negated else score
    return "nothing that is a number" if score == -math.inf else f"{value:.6g}"
