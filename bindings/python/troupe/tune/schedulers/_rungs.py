"""Pure. The rungs of one bracket of ASHA: what was recorded there, and who goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from troupe.tune._core.deciding import WORST
from troupe.tune._core.ranked import Ranked


def milestones(first: float, last: float, factor: float, bracket: int) -> list[float]:
    """Return the milestones of a bracket's rungs, the highest first: `first` times the powers of
    `factor` from `bracket` on, up to `last`."""
    number = int(math.log(last / first) / math.log(factor) - bracket + 1)
    return [first * factor ** (rung + bracket) for rung in reversed(range(number))]


@dataclass(slots=True)
class Rung:
    """`scores`: of all that were recorded, with promotion as (score, earlier ones first).

    `waiting`: those of them that are paused there.
    """

    milestone: float
    scores: Ranked = field(default_factory=Ranked)
    waiting: Ranked = field(default_factory=Ranked)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A trial is not to go on at the rung of that number.

    `cutoff`: of the `count` that were recorded before it, where it is compared.
    """

    rung: int
    cutoff: float = 0.0
    count: int = 0


class _Bracket:
    def __init__(self, where: list[float], factor: float, stop_last: bool) -> None:
        self.rungs = [Rung(milestone) for milestone in where]
        self.factor = factor
        self._stop_last = stop_last
        self._fraction = (
            (1 - 1 / factor) * 100 / 100
        )  # rounded as a percentile that is given in percent
        # Records of an unfinished trial: rung -> number of the report and the recorded value.
        self._records: dict[str, dict[int, tuple[int, Any]]] = {}

    def went_back(self, trial: str, number: int) -> None:
        """Remove the trial's records of later reports: it will reach those rungs again."""
        records = self._records.get(trial, {})
        for rung, (report, recorded) in list(records.items()):
            if report > number:
                self.rungs[rung].scores.remove(recorded)
                del records[rung]


class Stopping(_Bracket):
    """A trial that reaches a rung goes on if it is not below the best 1/factor of what was recorded
    there before it.

    A report that passes several rungs is recorded at the highest; the next one then at the highest
    that is left.
    """

    def reached(self, trial: str, number: int, time: float, score: float) -> Verdict | None:
        """A report. The Verdict: the trial is to stop."""
        records = self._records.setdefault(trial, {})
        for place, rung in enumerate(self.rungs):
            if time < rung.milestone:
                continue
            if place in records:
                if not self._stop_last:
                    return None  # the rung has already decided that the trial continues
                continue
            count, cutoff = len(rung.scores), rung.scores.quantile(self._fraction)
            rung.scores.add(score)
            records[place] = number, score
            return Verdict(place, cutoff, count) if cutoff is not None and score < cutoff else None
        return None

    def ended(self, trial: str, last: tuple[int, float, float] | None) -> None:
        """The trial is over. `last`: its last report is recorded where it was not yet."""
        if last is not None:
            self.reached(trial, *last)
        self._records.pop(trial, None)


class Promoting(_Bracket):
    """A trial that reaches a rung pauses.

    The best 1/factor of those recorded at a rung go on, one for each free slot.

    A report that passes several rungs is recorded at each of them, and the trial has gone on from
    all but the highest.
    """

    def __init__(self, where: list[float], factor: float, stop_last: bool) -> None:
        super().__init__(where, factor, stop_last)
        self._order = 0
        self._waits: dict[str, tuple[int, tuple[float, int, str]]] = {}

    def reached(self, trial: str, number: int, time: float, score: float) -> Verdict | None:
        """A report. The Verdict: the trial is to pause."""
        records = self._records.setdefault(trial, {})
        new = [
            place
            for place, rung in enumerate(self.rungs)
            if time >= rung.milestone and place not in records
        ]
        for place in new:
            self._order += 1
            records[place] = number, (score, -self._order)
            self.rungs[place].scores.add(records[place][1])
        if not new or min(records) != new[0]:
            return None
        self._waits[trial] = new[0], (*records[new[0]][1], trial)
        self.rungs[new[0]].waiting.add(self._waits[trial][1])
        return Verdict(new[0])

    def next(self) -> tuple[float, str, str] | None:
        """Return the trial to resume first: the milestone, the trial, and why; None if there is
        none yet.

        Changes nothing.
        """
        for rung in self.rungs:
            if rung.waiting:
                score, order, trial = rung.waiting.scores[-1]
                go_on, better = (
                    int(len(rung.scores) / self.factor),
                    rung.scores.above((score, order)),
                )
                if better < go_on and score != WORST:
                    return (
                        rung.milestone,
                        trial,
                        f"number {better + 1} of {len(rung.scores)}, of which {go_on} go on,",
                    )
        return None

    def resumed(self, trial: str) -> None:
        """Note that a paused trial continues."""
        if (found := self._waits.pop(trial, None)) is not None:
            self.rungs[found[0]].waiting.remove(found[1])

    def went_back(self, trial: str, number: int) -> None:
        self.resumed(trial)
        super().went_back(trial, number)

    def ended(self, trial: str, last: tuple[int, float, float] | None) -> None:
        """The trial is over; what it has recorded stays."""
        self.resumed(trial)
        self._records.pop(trial, None)

    def waiting(self) -> Iterator[tuple[str, float]]:
        """All that are paused, with their milestones."""
        for trial, (place, _) in self._waits.items():
            yield trial, self.rungs[place].milestone
