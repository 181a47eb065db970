"""Pure.

What happens to a sweep, and what is to be done about it: the events that SweepCore takes and the
effects that it returns.

Rows of the journal are dicts of JSON with a `kind`. All rows that an event makes are committed
together, before any of its effects is carried out: a crash between two effects leaves a journal
from which the rest is found again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe.tune._core.deciding import End, Proposal, Report

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Begun:
    """An engine begins with the sweep, or goes on with it.

    `epoch`: higher than any before.

    Of one that goes on: `unfinished`: whether trials that are not over go on; `errored`: what of
    those that failed: "" nothing, "resume": each is tried again from its latest checkpoint,
    "restart": from its beginning.
    """

    epoch: int
    host: str
    pid: int
    wall: float
    unfinished: bool = True
    errored: str = ""
    lets_go: bool = True
    """Whether a sweep that was held starts trials again."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """The searcher's answer to AskSearcher.

    `shape`: the key of what the trial holds; `finished`: whether this was its last answer.
    """

    trial: str
    proposal: Proposal | None
    finished: bool
    shape: str = ""


@dataclass(frozen=True, slots=True)
class Granted:
    """The process of a place that was asked for is there, and idle.

    `where`: that it is, as people look for it; JSON.
    """

    place: int
    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlaceLost:
    """The process of a place has ended without a trial in it, or was not made.

    `fatal`: asking again cannot help, since no state of this cluster has room for it.
    """

    place: int
    why: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Reported:
    """A trial waits in `report`.

    `sequence`: of this attempt, from 1; `elapsed_s`: since the report before, on the trial's own
    clock.
    """

    trial: str
    attempt: int
    sequence: int
    metrics: Mapping[str, Any]
    checkpoint: str = ""
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt failed.

    `counts`: whether it is one of `max_failures`; a lost node's is not. `final`: another attempt
    cannot help.
    """

    kind: str
    text: str
    counts: bool = True
    final: bool = False
    pickled: str = ""
    """The key of the exception itself among the journal's objects."""
    raised: BaseException | None = field(default=None, compare=False)
    """The exception, before it is among these."""


@dataclass(frozen=True, slots=True)
class Exited:
    """The trial's function is over. `clean`: its process may be used again."""

    trial: str
    attempt: int
    failure: Failure | None = None
    clean: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """A deadline that the core named has come."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Somebody wants the sweep to end here.

    `resumable`: its trials go on where it is resumed; else they are stopped.
    """

    why: str
    resumable: bool = True


@dataclass(frozen=True, slots=True)
class HoldAsked:
    """Somebody wants the sweep to start nothing more, while what runs goes on; or, without `held`,
    to start trials again."""

    held: bool


Event = HoldAsked | Begun | Proposed | Granted | PlaceLost | Reported | Exited | Tick | StopAsked


@dataclass(frozen=True, slots=True)
class Base:
    """The checkpoint that a trial goes on from: whose it is, the name of its folder there, the
    number of its report."""

    trial: str
    checkpoint: str
    number: int


@dataclass(frozen=True, slots=True)
class AskPlace:
    """A process that holds what the shape says, as soon as there is room; answered by Granted or
    PlaceLost."""

    place: int
    shape: str


@dataclass(frozen=True, slots=True)
class GiveUpPlace:
    """The process of this place is ended at once, or is not wanted any more."""

    place: int


@dataclass(frozen=True, slots=True)
class Start:
    """The trial runs in this place, whose process is idle.

    `checkpoints`: how many it has begun so far; `kept`: the names of those that are there.
    """

    place: int
    trial: str
    attempt: int
    config: Mapping[str, Any]
    base: Base | None
    number: int
    checkpoints: int
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Lets the trial's report return, or, with a reason in `stop`, raise TrialStopped.

    `at_once`: before the rows are committed, which a trial that only goes on need not wait for
    (G7).
    """

    trial: str
    attempt: int
    stop: str = ""
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class DropCheckpoint:
    """Nobody will need this checkpoint any more."""

    trial: str
    checkpoint: str


@dataclass(frozen=True, slots=True)
class AskSearcher:
    """A configuration for a new trial of this name; answered by Proposed."""

    trial: str


@dataclass(frozen=True, slots=True)
class TellSearcher:
    """A call of the searcher: `proposed`, `reported` or `ended`."""

    call: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Tell:
    """An event for callbacks and the display, once it is durable."""

    what: str
    trial: str
    report: Report | None = None
    end: End | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The sweep is over, or is left here to be resumed.

    `error`: what stood in its way; `unplaceable`: that a trial can never be placed.
    """

    error: str = ""
    resumable: bool = False
    unplaceable: bool = False


Effect = (
    AskPlace
    | GiveUpPlace
    | Start
    | Answer
    | DropCheckpoint
    | AskSearcher
    | TellSearcher
    | Tell
    | Done
)
