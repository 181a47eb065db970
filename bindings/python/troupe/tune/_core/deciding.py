"""Pure.

What a sweep's engine asks of those that decide: schedulers stop, pause and go on with trials,
searchers propose configurations.

Who decides has no clock, no thread and no I/O. What it answers is a function of how it was made and
of the calls since, in their order; draws come from a generator seeded when it was made. That is why
a resumed sweep decides as an uninterrupted one does: the engine makes the calls again that its
journal has, and drops the answers, since these are in the journal too. So a question that is not in
the journal (`Scheduler.choose`, `Searcher.finished`) changes nothing: what comes of its answer is
told by another call.

Trials are named by ids that are never used again. A trial's reports that count are numbered from 1
without gaps; after it went back to a checkpoint the numbers from there on are used again.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class ReportError(ValueError):
    """A report that nobody can decide upon, raised by a scheduler or stopper that is told of it:
    the trial fails with this text."""


WORST = -math.inf
"""The score of a metric that is None, NaN or missing: no other is below it, and every comparison
with it has an answer."""


class Mode(enum.Enum):
    """The direction in which values of the metric are better."""

    MAX = "max"
    MIN = "min"

    def score(self, value: Any) -> float:
        """The value turned so that larger is better.

        None and NaN are WORST; infinities count as they are.
        """
        if value is None or isinstance(value, str) or math.isnan(number := float(value)):
            return WORST
        return number if self is Mode.MAX else -number


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a trial, as the engine has counted it."""

    trial: str
    number: int
    metrics: Mapping[str, Any]
    """What the trial said, and what is filled in: `training_iteration`, `time_total_s`, ..."""
    score: float
    """Of the sweep's metric, by Mode.score."""
    checkpoint: bool = False
    """Whether the trial can go on from this report."""
    can_add: bool = False
    """As `Scheduler.choose` would be asked now: whether there is a trial to be started for the
    first time, or to be proposed."""


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
    """The trial is over; its last report is its result.

    `why`: for a person, with the numbers that decided.
    """

    trial: str
    why: str


@dataclass(frozen=True, slots=True)
class Pause:
    """The trial gives its slot back and keeps its latest checkpoint until it goes on, or is
    stopped."""

    trial: str
    why: str


@dataclass(frozen=True, slots=True)
class Exploit:
    """The trial is paused, and has a checkpoint of another one and another configuration when
    `Scheduler.choose` gives it a slot again.

    It may have been paused before; the checkpoint that it kept is not needed any more. Its donor
    may be itself. The engine pins the donor's checkpoint from this decision until the trial has
    loaded it. `donor_report`: the number of the donor's report whose checkpoint it is, which the
    trial's own reports follow.
    """

    trial: str
    donor: str
    donor_report: int
    config: Mapping[str, Any]
    why: str


Action = Stop | Pause | Exploit


class Choice(enum.Enum):
    """The use of a free slot that no paused trial is to have."""

    NEW = "new"
    """A trial that is waiting for its first start, or a new one."""
    WAIT = "wait"
    """Nothing: what runs decides what is next.

    Where nothing runs, `Scheduler.stalled` is told so.
    """


@dataclass(frozen=True, slots=True)
class Resume:
    """A free slot is for this paused trial. `why`: for a person."""

    trial: str
    why: str = ""


class Scheduler(ABC):
    """A scheduler: decides which trials continue.

    The engine's thread calls it, one call at a time; none may block or take time that grows with
    the trials.

    The default answers are those of first in, first out.
    """

    needs_checkpoints = False
    """Whether its pauses or exploits go on from checkpoints: a trial paused without one is an error
    that names this scheduler."""
    metric: str | None = None
    mode: str | None = None
    """The objective that it was made with: None is the sweep's.

    `objective` says what holds where several say one.
    """

    def begin(self, metric: str, mode: Mode) -> None:
        """The sweep's objective, before all other calls; also that of one that was made without."""

    def completed(self, space: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters that are searched, with those that this scheduler adds; changes
        nothing."""
        return space

    def added(self, trial: str, config: Mapping[str, Any]) -> None:
        """The trial is part of the sweep from now on."""

    @abstractmethod
    def reported(self, report: Report) -> Sequence[Action]:
        """Return the actions on this trial and others after a report.

        None for the trial that has reported: it goes on.

        Of others only paused ones may be named, by Stop or Exploit. Raises ReportError; whatever
        else it raises ends the sweep.
        """

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        """The trial is over. What is to become of paused ones: Stop or Exploit."""
        return ()

    def went_back(self, trial: str, number: int) -> None:
        """The trial goes on from its report `number` (0: from its beginning): its later reports
        count no more."""

    def resumed(self, trial: str, config: Mapping[str, Any]) -> None:
        """The trial that was paused, or was to exploit, has a slot again, with this configuration:
        what the journal says, which after a restart may be another than what functions of the
        user's would draw now."""

    def stalled(self) -> Sequence[Action]:
        """Nothing runs, nothing can be added, and `choose` has answered WAIT: what is to become of
        paused ones, by Stop or Exploit.

        Where `choose` answers WAIT still, the engine stops what is paused.
        """
        return ()

    def choose(self, can_add: bool) -> Resume | Choice:
        """Choose the use of a free slot; changes nothing.

        `can_add`: whether there is a trial to be started for the first time, or to be proposed.
        """
        return Choice.NEW if can_add else Choice.WAIT


@dataclass(frozen=True, slots=True)
class Proposal:
    """A configuration to try.

    `extra`: what the searcher wants back with the trial, kept in the journal; of JSON.
    """

    config: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)


class Where(enum.Enum):
    """The place where a searcher is asked."""

    HERE = "here"
    """By the engine's thread: its answers take microseconds."""
    THREAD = "thread"
    """By a thread of its own in the engine's process: it may take long, and is an object of the
    user's."""
    PROCESS = "process"
    """In a process of its own, asked ahead for as many as there are slots: it may take long, and
    computes."""


class Searcher(ABC):
    """A searcher: proposes configurations.

    Calls come one at a time; `where` says who makes them, so that none of them holds up a decision.
    """

    where: Where = Where.HERE

    def total(self) -> int | None:
        """How many it will propose; None: no bound of its own.

        A grid of a million points says so without making them.
        """
        return None

    @abstractmethod
    def propose(self, trial: str) -> Proposal | None:
        """The configuration of this trial; None: not now, only once another trial has reported or
        ended, or never more (`finished`)."""

    def finished(self) -> bool:
        """Return True if there will never be another proposal; changes nothing."""
        return False

    def proposed(self, trial: str, proposal: Proposal) -> None:
        """The trial has that configuration, as the journal says: a proposal of before a restart, or
        a person's.

        Said of no proposal that this object has made itself. After it, the next `propose` is what
        it would have been without a restart.
        """

    def reported(self, report: Report) -> None:
        """A report of a trial that it has proposed."""

    def ended(self, trial: str, end: End, last: Report | None) -> None:
        """The trial is over; `last`: its last report that counts."""

    def over(self) -> None:
        """The engine makes no more calls.

        What was held back, of a batch that is not full for one, is worked on now.
        """
