"""ASHA, asynchronous successive halving (Li et al., arXiv 1810.05934): at rungs of the training the
worse trials end, or wait."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from troupe.tune._core.deciding import (
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
from troupe.tune._search.domains import seed_of
from troupe.tune.schedulers import _said
from troupe.tune.schedulers._rungs import Promoting, Stopping, milestones


class AsyncHyperBandScheduler(Scheduler):
    """Asynchronous successive halving.

    `ASHAScheduler` is its other name.

    Rungs are at `grace_period` times the powers of `reduction_factor`, up to `max_t`, in units of
    `time_attr`, which is anything that grows in the reports. With `type="stopping"`, a trial that
    reaches a rung goes on if it is not below the best 1/reduction_factor of what was recorded there
    before it: the first of a rung always goes on. With `type="promotion"`, it pauses there, and a
    free slot goes to the best that wait in the highest rung of which no more than
    1/reduction_factor have gone on, else to a new trial; trials must report checkpoints at rungs.

    `brackets`: in bracket s the first rung is `reduction_factor ** s` times later; which one a
    trial is in is drawn, by `seed`. `stop_last_trials`: whether trials end at `max_t`. A metric
    that is None or NaN is worse than all others. `metric`, `mode`: where `TuneConfig` does not say
    them. Raises TypeError or ValueError.

        TuneConfig(metric="acc", mode="max", scheduler=ASHAScheduler(max_t=20), num_samples=64)
    """

    def __init__(
        self,
        time_attr: str = "training_iteration",
        metric: str | None = None,
        mode: str | None = None,
        max_t: float = 100,
        grace_period: float = 1,
        reduction_factor: float = 4,
        brackets: int = 1,
        stop_last_trials: bool = True,
        *,
        type: str = "stopping",
        seed: int | None = None,
    ) -> None:
        _said.objective("ASHAScheduler", time_attr, metric, mode)
        _said.number("ASHAScheduler: max_t", max_t, above=0)
        _said.number("ASHAScheduler: grace_period", grace_period, above=0, most=max_t)
        _said.number("ASHAScheduler: reduction_factor", reduction_factor, above=1)
        _said.count("ASHAScheduler: brackets", brackets, 1)
        if type not in ("stopping", "promotion"):
            raise ValueError(f'ASHAScheduler: type must be "stopping" or "promotion", not {type!r}')
        self.metric, self.mode = metric, mode
        self.needs_checkpoints = type == "promotion"
        self._time_attr, self._max_t, self._stop_last = time_attr, max_t, stop_last_trials
        self._generator = random.Random(seed_of(seed))
        kind = Promoting if type == "promotion" else Stopping
        self._brackets = [
            kind(
                milestones(grace_period, max_t, reduction_factor, bracket),
                reduction_factor,
                stop_last_trials,
            )
            for bracket in range(brackets)
        ]
        most = max(len(bracket.rungs) for bracket in self._brackets)
        self._weights = [math.exp(len(bracket.rungs) - most) for bracket in self._brackets]
        self._bracket_of: dict[str, Any] = {}
        self._last: dict[
            str, tuple[int, float, float]
        ] = {}  # number, progress and score of a trial's last report
        self._negated = False

    def begin(self, metric: str, mode: Mode) -> None:
        self.metric, self._negated = metric, mode is Mode.MIN

    def added(self, trial: str, config: Mapping[str, Any]) -> None:
        one = len(self._brackets) == 1
        self._bracket_of[trial] = (
            self._brackets[0] if one else self._generator.choices(self._brackets, self._weights)[0]
        )

    def reported(self, report: Report) -> Sequence[Action]:
        time = _said.progress("ASHAScheduler", self._time_attr, report)
        if time is None:
            return ()
        trial, bracket = report.trial, self._bracket_of[report.trial]
        self._last[trial] = report.number, time, report.score
        if time >= self._max_t and self._stop_last:
            return (
                Stop(
                    trial,
                    f"it has reached {self._time_attr} {time:g}, and max_t is {self._max_t:g}",
                ),
            )
        verdict = bracket.reached(trial, report.number, time, report.score)
        if verdict is None:
            return ()
        rung = bracket.rungs[verdict.rung]
        at = f"{self._time_attr} {rung.milestone:g}"
        if self.needs_checkpoints:
            return (
                Pause(
                    trial,
                    f"{len(rung.scores)} have reached {at}: it waits until it is one of the best "
                    f"1/{bracket.factor:g} of them",
                ),
            )
        return (
            Stop(
                trial,
                f"{self.metric} is {_said.shown(report.score, self._negated)} at {at}, and the "
                f"best 1/{bracket.factor:g} of "
                f"{verdict.count} before it are at {_said.shown(verdict.cutoff, self._negated)}",
            ),
        )

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        bracket = self._bracket_of.pop(trial, None)
        last = self._last.pop(trial, None)
        if bracket is not None:
            # A failed trial is not recorded any more: it has not come so far.
            bracket.ended(trial, last if end is not End.FAILED else None)
        return ()

    def went_back(self, trial: str, number: int) -> None:
        self._bracket_of[trial].went_back(trial, number)
        self._last.pop(trial, None)

    def resumed(self, trial: str, config: Mapping[str, Any]) -> None:
        self._bracket_of[trial].resumed(trial)

    def choose(self, can_add: bool) -> Resume | Choice:
        best: tuple[float, str, str] | None = None
        for bracket in self._promoting():
            found = bracket.next()
            if found is not None and (best is None or found[0] > best[0]):
                best = found
        if best is not None:
            return Resume(best[1], f"it is {best[2]} at {self._time_attr} {best[0]:g}")
        return super().choose(can_add)

    def _promoting(self) -> list[Promoting]:
        """Return the brackets in which trials wait at a rung: none with type="stopping"."""
        return [each for each in self._brackets if isinstance(each, Promoting)]

    def stalled(self) -> Sequence[Action]:
        return [
            Stop(
                trial,
                f"it is not among the best 1/{bracket.factor:g} of those at {self._time_attr} "
                f"{milestone:g}, and nothing else comes",
            )
            for bracket in self._promoting()
            for trial, milestone in bracket.waiting()
        ]


ASHAScheduler = AsyncHyperBandScheduler
