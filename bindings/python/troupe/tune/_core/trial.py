"""Pure. One trial of a sweep, as its rows in the journal make it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe.train._retention import Kept
from troupe.tune._core.deciding import End, Report
from troupe.tune._core.events import Base, Failure


class Phase(enum.Enum):
    """The phase of a trial."""

    WAITING = "waiting"
    """For a place: for its first start, for another attempt, or to go on from another trial's
    checkpoint."""
    RUNNING = "running"
    PAUSED = "paused"
    """Until its scheduler wants it again."""
    ENDED = "ended"

    __hash__ = object.__hash__  # each member exists once, and Enum's own hash is Python code


@dataclass(frozen=True)
class Saved(Kept):
    """A checkpoint of a trial.

    `report`: which of its checkpoints this is, in the order in which they were made; `number`: of
    the report that brought it, which is that of another one too where the trial has gone back.
    """

    number: int = 0


@dataclass(slots=True)
class Trial:
    """`number`: of its last report that counts; `sequence`: of the last one of this attempt.

    `base`: what its next attempt goes on from.
    """

    id: str
    config: Mapping[str, Any]
    shape: str = ""
    phase: Phase = Phase.WAITING
    attempt: int = 0
    sequence: int = 0
    number: int = 0
    last: Report | None = None
    kept: list[Saved] = field(default_factory=list)
    base: Base | None = None
    checkpoints: int = 0
    failures: int = 0
    fruitless: int = 0
    retry_at: float = 0.0
    end: End | None = None
    failure: Failure | None = None
    why: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Where it runs, or ran last: hostname, node_ip, pid, node, actor."""
    again: bool = False
    """Whether it goes on because its scheduler said so: it exploits, or has been wanted again after
    a pause."""
    replaced_by: str = ""
    """The trial that is tried in its place, since a person said so after it had failed."""
    seconds: float = 0.0
    """`time_total_s` of its last report that counts."""
    seconds_of_base: float = 0.0
    last_of_base: Report | None = None

    @property
    def is_new(self) -> bool:
        """True if the trial has never been started."""
        return self.attempt == 0


def filled(trial: Trial, metrics: Mapping[str, Any], elapsed_s: float) -> dict[str, Any]:
    """The metrics of the trial's next report, with those that every report has."""
    number = trial.number + 1
    total = trial.seconds + elapsed_s
    return {
        **metrics,
        "training_iteration": metrics.get("training_iteration", number),
        "time_this_iter_s": elapsed_s,
        "time_total_s": total,
        "trial_id": trial.id,
        "iterations_since_restore": trial.sequence + 1,
        "time_since_restore": total - trial.seconds_of_base,
        "done": False,
    }


def time_of(metrics: Mapping[str, Any]) -> float:
    """`time_total_s` of a report."""
    found = metrics.get("time_total_s", 0.0)
    return float(found) if isinstance(found, (int, float)) else 0.0
