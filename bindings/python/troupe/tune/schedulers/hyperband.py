"""Hyperband (Li et al., arXiv 1603.06560), synchronous: in each bracket all trials come to a
milestone before the best of them go on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from troupe.tune.schedulers import _said


@dataclass(slots=True, eq=False)
class _Bracket:
    """`size`: how many trials it begins with.

    `keep`: how many are to be left after the next milestone. `halvings`: how many are to come.
    """

    size: int
    milestone: float
    halvings: int
    keep: int = 0
    added: int = 0
    live: dict[str, float] = field(default_factory=dict)  # trial -> its last score
    behind: set[str] = field(default_factory=set)  # trials that have not reached the milestone
    progress: dict[str, float] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        return self.added == self.size


class HyperBandScheduler(Scheduler):
    """Trials fill brackets one after the other: bracket s of a band has more trials than s-1, which
    are halved more often, `reduction_factor`-fold.

    A trial that is at its bracket's milestone, of `time_attr`, pauses until all others of the
    bracket are there or over; then the best go on to the next milestone, and the others end. So
    trials must report checkpoints. `stop_last_trials`: whether trials end at `max_t`. What fails or
    ends counts as worst in its bracket at once. A metric that is None or NaN is worse than all
    others. ASHAScheduler does not wait, and uses slots better. Raises TypeError or ValueError.

        TuneConfig(metric="acc", mode="max", scheduler=HyperBandScheduler(max_t=27), num_samples=30)
    """

    needs_checkpoints = True

    def __init__(
        self,
        time_attr: str = "training_iteration",
        metric: str | None = None,
        mode: str | None = None,
        max_t: int = 81,
        reduction_factor: float = 3,
        stop_last_trials: bool = True,
    ) -> None:
        _said.objective("HyperBandScheduler", time_attr, metric, mode)
        _said.number("HyperBandScheduler: max_t", max_t, least=1)
        _said.number("HyperBandScheduler: reduction_factor", reduction_factor, above=1)
        self.metric, self.mode = metric, mode
        self._time_attr, self._max_t, self._eta, self._stop_last = (
            time_attr,
            max_t,
            reduction_factor,
            stop_last_trials,
        )
        self._kinds = round(math.log(max_t) / math.log(reduction_factor)) + 1
        self._kind = 0  # kind of the next bracket
        self._filling: _Bracket | None = None
        self._bracket_of: dict[str, _Bracket] = {}
        self._paused: set[str] = set()
        self._ready: dict[str, None] = {}  # paused, and to go on, in their order
        self._negated = False

    def begin(self, metric: str, mode: Mode) -> None:
        self.metric, self._negated = metric, mode is Mode.MIN

    def added(self, trial: str, config: Mapping[str, Any]) -> None:
        if self._filling is None or self._filling.is_full:
            self._filling = self._next_bracket()
        bracket = self._bracket_of[trial] = self._filling
        bracket.added += 1
        bracket.live[trial], bracket.progress[trial] = WORST, 0
        bracket.behind.add(trial)

    def _next_bracket(self) -> _Bracket:
        while True:
            kind = self._kind
            self._kind = (self._kind + 1) % self._kinds
            milestone = int(self._max_t * self._eta**-kind)
            if milestone > 0:
                size = math.ceil(self._kinds / (kind + 1) * self._eta**kind)
                return _Bracket(size, milestone, kind, keep=size)

    def reported(self, report: Report) -> Sequence[Action]:
        time = _said.progress("HyperBandScheduler", self._time_attr, report)
        if time is None:
            return ()
        trial, bracket = report.trial, self._bracket_of[report.trial]
        bracket.live[trial], bracket.progress[trial] = report.score, time
        if time < bracket.milestone or bracket.halvings == 0 and not self._stop_last:
            return ()
        bracket.behind.discard(trial)
        if bracket.behind or not bracket.is_full and report.can_add:
            self._paused.add(trial)
            return (
                Pause(
                    trial,
                    f"it waits for {len(bracket.behind) or 'more'} others of its bracket at "
                    f"{self._time_attr} {bracket.milestone:g}",
                ),
            )
        return self._halved(bracket, trial)

    def _halved(self, bracket: _Bracket, running: str | None) -> list[Action]:
        """Return the actions on a bracket whose trials are all at the milestone.

        `running`: the one that has just come there, and holds a slot.
        """
        actions: list[Action] = []
        while bracket.live and not bracket.behind:
            if bracket.halvings == 0:
                if not self._stop_last:
                    break
                actions += self._stops(
                    bracket,
                    list(bracket.live),
                    f"its bracket is done at {self._time_attr} {bracket.milestone:g}",
                )
                break
            reached, bracket.halvings = bracket.milestone, bracket.halvings - 1
            bracket.keep = math.ceil(bracket.keep / self._eta)
            bracket.milestone = int(min(bracket.milestone * self._eta, self._max_t))
            ranked = sorted(
                bracket.live, key=bracket.live.__getitem__
            )  # among equal ones, trials that were added later are better
            actions += self._stops(
                bracket,
                ranked[: -bracket.keep],
                f"it is not one of the best {bracket.keep} of {len(ranked)} in its bracket at "
                f"{self._time_attr} {reached:g}",
            )
            on = [
                trial
                for trial in bracket.live
                if bracket.progress[trial] < bracket.milestone
                or bracket.halvings == 0
                and not self._stop_last
            ]
            bracket.behind = set(on)
            self._ready.update((trial, None) for trial in on if trial in self._paused)
        if (
            running is not None
            and running in bracket.live
            and running not in bracket.behind
            and bracket.behind
        ):
            self._paused.add(running)
            actions.append(
                Pause(
                    running,
                    f"it waits for others of its bracket at {self._time_attr} "
                    f"{bracket.milestone:g}",
                )
            )
        return actions

    def _stops(self, bracket: _Bracket, trials: list[str], why: str) -> Iterator[Stop]:
        for trial in trials:
            score = _said.shown(bracket.live.pop(trial), self._negated)
            yield Stop(trial, f"its {self.metric} is {score}: {why}")

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        bracket = self._bracket_of.pop(trial)
        self._paused.discard(trial)
        self._ready.pop(trial, None)
        was_live = bracket.live.pop(trial, None) is not None
        bracket.behind.discard(trial)
        return (
            self._halved(bracket, None)
            if was_live and bracket.is_full and self._waits(bracket)
            else ()
        )

    def _waits(self, bracket: _Bracket) -> bool:
        """Return True if all trials left in the bracket are paused, and none of them is to
        continue."""
        return (
            bool(bracket.live)
            and not bracket.behind
            and all(trial in self._paused and trial not in self._ready for trial in bracket.live)
        )

    def went_back(self, trial: str, number: int) -> None:
        bracket = self._bracket_of[trial]
        self._paused.discard(trial)
        self._ready.pop(trial, None)
        if trial in bracket.live:
            bracket.live[trial], bracket.progress[trial] = WORST, 0
            bracket.behind.add(trial)

    def resumed(self, trial: str, config: Mapping[str, Any]) -> None:
        self._paused.discard(trial)
        self._ready.pop(trial, None)

    def choose(self, can_add: bool) -> Resume | Choice:
        for trial in self._ready:
            return Resume(trial, "it is one of the best of its bracket")
        return super().choose(can_add)

    def stalled(self) -> Sequence[Action]:
        return [
            action
            for bracket in dict.fromkeys(self._bracket_of.values())
            if self._waits(bracket)
            for action in self._halved(bracket, None)
        ]
