"""The median stopping rule of Vizier: a trial ends where its best is worse than the median of the
others' averages."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troupe.tune._core.deciding import (
    WORST,
    Action,
    Choice,
    End,
    Mode,
    Pause,
    Report,
    Resume,
    Scheduler,
    Stop,
)
from troupe.tune._core.ranked import IntervalRanks
from troupe.tune.schedulers import _said

_TICKS = 1024  # steps in one unit of progress that is a fraction


@dataclass(slots=True)
class _Point:
    """A trial when it had made a report: its average holds from this tick on, until that of the
    next."""

    number: int
    tick: int
    total: float = 0.0
    count: int = 0
    low: float = math.inf
    high: float = -math.inf
    best: float = WORST

    @property
    def mean(self) -> float:
        """WORST as soon as one report was; equal scores have exactly themselves."""
        if self.low == WORST:
            return WORST
        return min(max(self.total / self.count, self.low), self.high)

    def then(self, number: int, tick: int, score: float, counts: bool) -> _Point:
        """The next point. `counts`: whether the report is past the grace period."""
        if not counts:
            return _Point(
                number, tick, self.total, self.count, self.low, self.high, max(self.best, score)
            )
        return _Point(
            number,
            tick,
            self.total + score,
            self.count + 1,
            min(self.low, score),
            max(self.high, score),
            max(self.best, score),
        )


class Averages:
    """The running averages of all trials, and how many hold at a tick: those of trials that have
    come as far."""

    def __init__(self) -> None:
        self._ranks = IntervalRanks()
        self._points: dict[str, list[_Point]] = {}  # points of unfinished trials

    def compared(
        self, trial: str, number: int, tick: int, score: float, counts: bool
    ) -> tuple[int, bool, float, float]:
        """Records a report: how many others there are, whether their median is above this trial's
        best, the median, and that best."""
        points = self._points.setdefault(trial, [])
        before = points[-1] if points else _Point(0, tick)
        tick = max(tick, before.tick)
        new = before.then(number, tick, score, counts)
        if before.count and tick == before.tick:
            self._ranks.remove(tick, tick, before.mean)
        count, is_above, median = self._ranks.at(tick, new.best)
        if before.count:
            self._ranks.add(before.tick + 1, tick - 1, before.mean)
        if new.count:
            self._ranks.add(tick, tick, new.mean)
        points.append(new)
        return count, is_above, median, new.best

    def went_back(self, trial: str, number: int) -> None:
        """Takes back what it has reported after that one."""
        points = self._points.get(trial, [])
        while points and points[-1].number > number:
            gone, before = points.pop(), points[-1] if points else None
            if gone.count:
                self._ranks.remove(gone.tick, gone.tick, gone.mean)
            if before is not None and before.count:
                self._ranks.remove(before.tick + 1, gone.tick - 1, before.mean)
                if gone.tick == before.tick:
                    self._ranks.add(before.tick, before.tick, before.mean)

    def ended(self, trial: str) -> None:
        """Note that a trial has ended: it will not go back, and its reports stay."""
        self._points.pop(trial, None)


class MedianStoppingRule(Scheduler):
    """A trial ends at progress t where its best so far is worse than the median, over all others
    that have come as far, of their average up to t.

    Averages begin at `grace_period`, and nothing ends before it; `min_samples_required` others must
    have come as far. Trials that are over stay in the comparison. Progress is what is reported as
    `time_attr`; where it has fractions, 1/1024 of its unit is the least difference.
    `hard_stop=False`: it is paused instead, and goes on after all others. A trial that cannot be
    compared yet gives its slot to another that waits, every `min_time_slice` at most, if it can go
    on from this report. A metric that is None or NaN is worse than all others. Raises TypeError or
    ValueError.

        rule = MedianStoppingRule(time_attr="training_iteration", grace_period=3)
        TuneConfig(metric="loss", mode="min", scheduler=rule)
    """

    def __init__(
        self,
        time_attr: str = "time_total_s",
        metric: str | None = None,
        mode: str | None = None,
        grace_period: float = 60.0,
        min_samples_required: int = 3,
        min_time_slice: float = 0,
        hard_stop: bool = True,
    ) -> None:
        _said.objective("MedianStoppingRule", time_attr, metric, mode)
        _said.number("MedianStoppingRule: grace_period", grace_period, least=0)
        _said.count("MedianStoppingRule: min_samples_required", min_samples_required, 1)
        _said.number("MedianStoppingRule: min_time_slice", min_time_slice, least=0)
        self.metric, self.mode = metric, mode
        self.needs_checkpoints = not hard_stop
        self._time_attr, self._grace, self._least = time_attr, grace_period, min_samples_required
        self._slice, self._hard_stop = min_time_slice, hard_stop
        self._ticks = 0
        self._averages = Averages()
        self._given_up: set[str] = set()
        self._paused_at: dict[str, float] = {}
        self._order: dict[str, int] = {}
        self._paused: list[tuple[int, str]] = []  # in the order in which they were added
        self._negated = False

    def begin(self, metric: str, mode: Mode) -> None:
        self.metric, self._negated = metric, mode is Mode.MIN

    def added(self, trial: str, config: Mapping[str, Any]) -> None:
        self._order[trial] = len(self._order)

    def reported(self, report: Report) -> Sequence[Action]:
        time = _said.progress("MedianStoppingRule", self._time_attr, report)
        trial = report.trial
        if time is None or trial in self._given_up:
            return ()
        self._ticks = self._ticks or (1 if isinstance(time, int) else _TICKS)
        counts = time >= self._grace
        count, is_above, median, best = self._averages.compared(
            trial, report.number, math.floor(time * self._ticks), report.score, counts
        )
        if not counts:
            return ()
        if count < self._least:
            others_wait = report.can_add or bool(self._paused)
            if (
                report.checkpoint
                and others_wait
                and time - self._paused_at.get(trial, -math.inf) > self._slice
            ):
                self._paused_at[trial] = time
                return self._pause(
                    trial,
                    f"{count} others have come to {self._time_attr} {time:g} and {self._least} "
                    "must: others first",
                )
            return ()
        if not is_above:
            return ()
        why = (
            f"the best {self.metric} up to {self._time_attr} {time:g} is "
            f"{_said.shown(best, self._negated)}, and the median of {count} others' "
            f"averages is {_said.shown(median, self._negated)}"
        )
        if self._hard_stop:
            return (Stop(trial, why),)
        self._given_up.add(trial)
        return self._pause(trial, why)

    def _pause(self, trial: str, why: str) -> Sequence[Action]:
        bisect.insort(self._paused, (self._order[trial], trial))
        return (Pause(trial, why),)

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        self._averages.ended(trial)
        self._given_up.discard(trial)
        self._paused_at.pop(trial, None)
        self._runs(trial)
        return ()

    def went_back(self, trial: str, number: int) -> None:
        self._averages.went_back(trial, number)
        self._given_up.discard(trial)

    def resumed(self, trial: str, config: Mapping[str, Any]) -> None:
        self._runs(trial)

    def _runs(self, trial: str) -> None:
        entry = self._order[trial], trial
        place = bisect.bisect_left(self._paused, entry)
        if self._paused[place : place + 1] == [entry]:
            del self._paused[place]

    def choose(self, can_add: bool) -> Resume | Choice:
        if not can_add and self._paused:
            return Resume(self._paused[0][1], "nothing else waits")
        return super().choose(can_add)
