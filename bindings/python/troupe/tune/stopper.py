"""Stoppers by the names of `ray.tune.stopper`: when a trial is done, and when a whole sweep is.

For `RunConfig(stop=...)`.

Their state is a function of the calls that they had. After a restart the same results are shown to
them again, so a stopper of one's own should look at results alone, not at clocks.
"""

from __future__ import annotations

import datetime
import math
import statistics
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from troupe._base.checks import or_nearest
from troupe.tune._core.deciding import ReportError
from troupe.tune._core.objective import found, mode_of
from troupe.tune._core.ranked import Ranked
from troupe.tune.schedulers import _said

__all__ = [
    "CombinedStopper",
    "ExperimentPlateauStopper",
    "FunctionStopper",
    "MaximumIterationStopper",
    "NoopStopper",
    "Stopper",
    "ThresholdStopper",
    "TimeoutStopper",
    "TrialPlateauStopper",
]


class Stopper(ABC):
    """Base of stoppers of one's own.

    class NoProgress(tune.Stopper):
        def __call__(self, trial_id, result): return result["loss"] > 100     # this trial is done
        def stop_all(self): return False                                      # the whole sweep is
    """

    @abstractmethod
    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return True if the trial is done, judged by one of its results."""

    @abstractmethod
    def stop_all(self) -> bool:
        """Return True if the sweep is done: running trials are stopped, and none begins.

        Asked after each result, and after each trial's failure or end.
        """


class NoopStopper(Stopper):
    """Stops nothing."""

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return False


class MaximumIterationStopper(NoopStopper):
    """A trial is done after `max_iter` results. Raises TypeError or ValueError.

    RunConfig(stop=MaximumIterationStopper(max_iter=10))
    """

    def __init__(self, max_iter: int) -> None:
        self._max_iter = _said.count("MaximumIterationStopper: max_iter", max_iter, 1)
        self._counts: dict[str, int] = {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        self._counts[trial_id] = self._counts.get(trial_id, 0) + 1
        return self._counts[trial_id] >= self._max_iter


class TimeoutStopper(NoopStopper):
    """The sweep is done after `timeout` seconds, or a timedelta, of running: the time in which it
    does not run does not count.

    A sweep knows it and measures by itself (`timeout_s`); asked by others, it measures from the
    first time that it is. Raises TypeError or ValueError.

        RunConfig(stop=TimeoutStopper(datetime.timedelta(hours=2)))
    """

    def __init__(self, timeout: float | datetime.timedelta) -> None:
        seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
        self.timeout_s = float(_said.number("TimeoutStopper: timeout", seconds, above=0))
        self._since: float | None = None

    def stop_all(self) -> bool:
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        return now - self._since >= self.timeout_s

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_since": None}


class TrialPlateauStopper(NoopStopper):
    """A trial is done when the standard deviation of `metric` in its last `num_results` results is
    below `std`.

    Not before `grace_period` results, and with `metric_threshold` not before the metric is past it:
    above it with mode="max", below it with mode="min". Raises TypeError or ValueError.

        RunConfig(stop=TrialPlateauStopper("loss", std=0.001, num_results=5))
    """

    def __init__(
        self,
        metric: str,
        std: float = 0.01,
        num_results: int = 4,
        grace_period: int = 4,
        metric_threshold: float | None = None,
        mode: str | None = None,
    ) -> None:
        self._metric, self._threshold = metric, metric_threshold
        self._std = _said.number("TrialPlateauStopper: std", std, least=0)
        self._number = _said.count("TrialPlateauStopper: num_results", num_results, 1)
        self._grace = _said.count("TrialPlateauStopper: grace_period", grace_period, 0)
        self._mode = (
            mode_of("TrialPlateauStopper with metric_threshold", mode).value
            if metric_threshold is not None
            else None
        )
        self._last: dict[str, tuple[int, deque[Any]]] = {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        count, last = self._last.get(trial_id, (0, deque(maxlen=self._number)))
        value = found(result, self._metric)
        last.append(value)
        self._last[trial_id] = count + 1, last
        if count + 1 < self._grace or len(last) < self._number or not all(map(_is_finite, last)):
            return False
        if (
            self._mode == "min"
            and value > self._threshold
            or self._mode == "max"
            and value < self._threshold
        ):
            return False
        return bool(statistics.pstdev(last) < self._std)


class ExperimentPlateauStopper(Stopper):
    """The sweep is done when the standard deviation of the `top` best values of `metric` is at most
    `std`, for more than `patience` results.

    Raises TypeError or ValueError.

        RunConfig(stop=ExperimentPlateauStopper("acc", mode="max", top=10, patience=20))
    """

    def __init__(
        self, metric: str, std: float = 0.001, top: int = 10, mode: str = "min", patience: int = 0
    ) -> None:
        self._metric, self._mode = metric, mode_of("ExperimentPlateauStopper", mode)
        self._std = _said.number("ExperimentPlateauStopper: std", std, above=0)
        self._top_count = _said.count("ExperimentPlateauStopper: top", top, 2)
        self._patience = _said.count("ExperimentPlateauStopper: patience", patience, 0)
        self._top = Ranked()
        self._since = 0

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        value = found(result, self._metric)
        if _is_finite(value):
            self._top.add(self._mode.score(value))
            del self._top.scores[: -self._top_count]
        self._since = self._since + 1 if self._is_flat() else 0
        return self.stop_all()

    def _is_flat(self) -> bool:
        return (
            len(self._top) == self._top_count and statistics.pstdev(self._top.scores) <= self._std
        )

    def stop_all(self) -> bool:
        return self._is_flat() and self._since >= self._patience


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


class FunctionStopper(NoopStopper):
    """A trial is done when `function(trial_id, result)` says so; `RunConfig(stop=function)` is the
    same.

    RunConfig(stop=lambda trial_id, result: result["acc"] > 0.99)
    """

    def __init__(self, function: Callable[[str, dict[str, Any]], bool]) -> None:
        if not callable(function):
            raise TypeError(
                f"FunctionStopper takes a function of a trial's id and a result, not {function!r}"
            )
        self._function = function

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return bool(self._function(trial_id, result))


class ThresholdStopper(NoopStopper):
    """A trial is done when one of these metrics is at its value or above it, losses too;
    `RunConfig(stop={...})` is the same.

    RunConfig(stop={"training_iteration": 10, "acc": 0.99})
    """

    def __init__(self, thresholds: Mapping[str, float]) -> None:
        for name, value in thresholds.items():
            if (
                not isinstance(name, str)
                or isinstance(value, bool)
                or not isinstance(value, (int, float))
                or math.isnan(value)
            ):
                raise TypeError(
                    f"stop takes metrics and the numbers at which a trial is done, not {name!r}: "
                    f"{value!r}"
                )
        self._thresholds = dict(thresholds)
        self._seen: set[str] = set()

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        values = {name: found(result, name) for name in self._thresholds}
        for name, value in values.items():
            if value is None and name not in result and trial_id not in self._seen:
                raise ReportError(
                    f"stop has {name!r}, which is not reported{or_nearest(name, result)}"
                )
        self._seen.add(trial_id)
        return any(
            isinstance(value, (int, float)) and value >= self._thresholds[name]
            for name, value in values.items()
        )


class CombinedStopper(Stopper):
    """A stopper that stops whatever one of these stops. Each of them sees every result. Raises
    TypeError.

    RunConfig(stop=CombinedStopper(MaximumIterationStopper(10), TrialPlateauStopper("loss")))
    """

    def __init__(self, *stoppers: Stopper) -> None:
        for stopper in stoppers:
            if not isinstance(stopper, Stopper):
                raise TypeError(f"CombinedStopper takes stoppers, not {stopper!r}")
        self.stoppers = stoppers

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        answers = [
            stopper(trial_id, result) for stopper in self.stoppers
        ]  # all of them count, also after one that says yes
        return any(answers)

    def stop_all(self) -> bool:
        answers = [stopper.stop_all() for stopper in self.stoppers]
        return any(answers)


def made(stop: Any) -> Stopper:
    """A stopper, of what `RunConfig(stop=...)` may be: a dict of thresholds, a function, a stopper,
    a list of these, or None. Raises TypeError."""
    if stop is None:
        return NoopStopper()
    if isinstance(stop, Stopper):
        return stop
    if isinstance(stop, Mapping):
        return ThresholdStopper(stop)
    if isinstance(stop, (list, tuple)):
        return CombinedStopper(*map(made, stop))
    if callable(stop):
        if hasattr(stop, "stop_all"):
            raise TypeError(f"stop={stop!r} has stop_all() and is no tune.Stopper: make it one")
        return FunctionStopper(stop)
    raise TypeError(
        "stop takes a dict of metrics and thresholds, a function of a trial's id and a result, or "
        f"a tune.Stopper, not {stop!r}"
    )


def timeout_s(stopper: Stopper) -> float | None:
    """The seconds of the shortest TimeoutStopper in it; None: there is none."""
    inside = stopper.stoppers if isinstance(stopper, CombinedStopper) else ()
    own = [stopper.timeout_s] if isinstance(stopper, TimeoutStopper) else []
    return min(
        own + [found for each in inside if (found := timeout_s(each)) is not None], default=None
    )
