"""Pure. What a sweep's engine asks of those that decide: schedulers stop, pause and go on with trials, searchers propose configurations.

Who decides has no clock, no thread and no I/O. What it answers is a function of how it was made and of the calls since, in their order;
draws come from a generator seeded when it was made. That is why a resumed sweep decides as an uninterrupted one does: the engine makes
the calls again that its journal has, and drops the answers, since these are in the journal too. So a question that is not in the journal
(`Scheduler.choose`, `Searcher.finished`) changes nothing: what comes of its answer is told by another call.

Trials are named by ids that are never used again. A trial's reports that count are numbered from 1 without gaps; after it went back to a
checkpoint the numbers from there on are used again.
"""
from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WORST = -math.inf
"""The score of a metric that is None, NaN or missing: no other is below it, and every comparison with it has an answer."""


class Mode(enum.Enum):
    """Which values of the metric are good."""

    MAX = "max"
    MIN = "min"

    def score(self, value: Any) -> float:
        """The value turned so that larger is better. None and NaN are WORST; infinities count as they are."""
        if value is None or isinstance(value, str) or math.isnan(number := float(value)):
            return WORST
        return number if self is Mode.MAX else -number


@dataclass(frozen=True, slots=True)
class Report:
    """One report of a trial, as the engine has counted it."""

    trial: str
    number: int
    metrics: Mapping[str, Any]
    """What the trial said, and what is filled in: `training_iteration`, `time_total_s`, ..."""
    score: float
    """Of the sweep's metric, by Mode.score."""
    checkpoint: bool = False
    """Whether the trial can go on from this report."""


class End(enum.Enum):
    """How a trial is over for good."""

    COMPLETED = "completed"
    """By itself, or since its `stop` condition held."""
    STOPPED = "stopped"
    """A scheduler, a stopper or a person stopped it."""
    FAILED = "failed"
    """Its last attempt failed."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The trial is over; its last report is its result. `why`: for a person, with the numbers that decided."""

    trial: str
    why: str


@dataclass(frozen=True, slots=True)
class Pause:
    """The trial gives its slot back and keeps its latest checkpoint until it goes on, or is stopped."""

    trial: str
    why: str


@dataclass(frozen=True, slots=True)
class Exploit:
    """The trial goes on from a checkpoint of another one, with another configuration, as soon as a slot is free.

    The engine pins the donor's checkpoint from this decision until the trial has loaded it. `donor_report`: the number of the donor's
    report whose checkpoint it is, which the trial's own reports follow.
    """

    trial: str
    donor: str
    donor_report: int
    config: Mapping[str, Any]
    why: str


Action = Stop | Pause | Exploit


class Choice(enum.Enum):
    """What a free slot is to be used for, where no paused trial is to have it."""

    NEW = "new"
    """A trial that is waiting for its first start, or a new one."""
    WAIT = "wait"
    """Nothing: what runs decides what is next."""


@dataclass(frozen=True, slots=True)
class Resume:
    """A free slot is for this paused trial. `why`: for a person."""

    trial: str
    why: str = ""


class Scheduler(ABC):
    """Who decides which trials run on. The engine's thread calls it, one call at a time; none may block or take time that grows with the trials.

    The default answers are those of first in, first out.
    """

    needs_checkpoints = False
    """Whether its pauses or exploits go on from checkpoints: a trial paused without one is an error that names this scheduler."""

    def added(self, trial: str, config: Mapping[str, Any]) -> None:
        """The trial is part of the sweep from now on."""

    @abstractmethod
    def reported(self, report: Report) -> Sequence[Action]:
        """What is to become of this trial and of others, now. None for the trial that has reported: it goes on.

        Of others only paused ones may be named, by Stop alone.
        """

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        """The trial is over. What is to become of paused ones: Stop alone."""
        return ()

    def went_back(self, trial: str, number: int) -> None:
        """The trial goes on from its report `number` (0: from its beginning): its later reports count no more."""

    def resumed(self, trial: str) -> None:
        """The trial that was paused, or was to exploit, has a slot again."""

    def choose(self, can_add: bool) -> Resume | Choice:
        """What the free slot is for; changes nothing. `can_add`: whether there is a trial to be started for the first time, or to be proposed."""
        return Choice.NEW if can_add else Choice.WAIT


@dataclass(frozen=True, slots=True)
class Proposal:
    """A configuration to try. `extra`: what the searcher wants back with the trial, kept in the journal; of JSON."""

    config: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)


class Searcher(ABC):
    """Who proposes configurations. Calls come one at a time, and may take long: the shell gives those that do a process of their own."""

    def total(self) -> int | None:
        """How many it will propose; None: no bound of its own. A grid of a million points says so without making them."""
        return None

    @abstractmethod
    def propose(self, trial: str) -> Proposal | None:
        """The configuration of this trial; None: not now, only once another trial has reported or ended, or never more (`finished`)."""

    def finished(self) -> bool:
        """Whether there will never be another proposal; changes nothing."""
        return False

    def proposed(self, trial: str, proposal: Proposal) -> None:
        """The trial has that configuration, as the journal says: a proposal of before a restart, or a person's."""

    def reported(self, report: Report) -> None:
        """A report of a trial that it has proposed."""

    def ended(self, trial: str, end: End, last: Report | None) -> None:
        """The trial is over; `last`: its last report that counts."""
