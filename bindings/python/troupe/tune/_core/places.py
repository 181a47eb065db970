"""Pure.

The places of a sweep: processes that hold what a trial holds, asked for, idle, busy, or being left.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class State(enum.Enum):
    """The state of a place."""

    ASKED = "asked"
    IDLE = "idle"
    BUSY = "busy"
    LEAVING = "leaving"
    """Its trial was told to end and has until the deadline for its clean-up."""

    __hash__ = object.__hash__  # each member exists once, and Enum's own hash is Python code


@dataclass(slots=True)
class Place:
    """`trial`, `attempt`: of what runs in it, or is leaving it."""

    number: int
    shape: str
    state: State = State.ASKED
    trial: str = ""
    attempt: int = 0
    deadline: float = 0.0
    where: Mapping[str, Any] = field(default_factory=dict)


class Places:
    """The places of this engine: none of them is in the journal, for the processes end with their
    engine."""

    def __init__(self) -> None:
        self._all: dict[int, Place] = {}
        self._by_trial: dict[tuple[str, int], Place] = {}
        self._count = dict.fromkeys(State, 0)
        self._next = 0
        self._leaving: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def count(self, state: State) -> int:
        """How many are in that state."""
        return self._count[state]

    def ask(self, shape: str) -> Place:
        """A new one."""
        self._next += 1
        place = self._all[self._next] = Place(self._next, shape)
        self._count[State.ASKED] += 1
        return place

    def get(self, number: int) -> Place | None:
        """None: it was given up."""
        return self._all.get(number)

    def of(self, trial: str, attempt: int) -> Place | None:
        """Return the place where this attempt runs, or is leaving."""
        return self._by_trial.get((trial, attempt))

    def idle(self) -> list[Place]:
        """Return the places that could run something."""
        return self._in(State.IDLE) if self._count[State.IDLE] else []

    def asked(self) -> list[Place]:
        """Return the places that have been asked for and are not there yet."""
        return self._in(State.ASKED) if self._count[State.ASKED] else []

    def granted(self, place: Place, where: Mapping[str, Any]) -> None:
        """Note that the process of a place is there."""
        place.where = where
        self._set(place, State.IDLE)

    def occupy(self, place: Place, trial: str, attempt: int) -> None:
        """The attempt runs in it."""
        place.trial, place.attempt = trial, attempt
        self._by_trial[trial, attempt] = place
        self._set(place, State.BUSY)

    def leave(self, place: Place, deadline: float) -> None:
        """Note that the place's attempt was told to end by `deadline`."""
        place.deadline = deadline
        self._leaving[place.number] = None
        self._set(place, State.LEAVING)

    def vacate(self, place: Place) -> None:
        """Mark a place as idle: its attempt has ended, and left the process clean."""
        self._forget_trial(place)
        self._set(place, State.IDLE)

    def give_up(self, place: Place) -> None:
        """Remove a place from the sweep."""
        self._forget_trial(place)
        self._count[place.state] -= 1
        del self._all[place.number]

    def overdue(self, now: float) -> list[Place]:
        """Return the places whose attempts should have ended by now."""
        return [self._all[number] for number in self._leaving if self._all[number].deadline <= now]

    def deadline(self) -> float | None:
        """When the next one is to be left."""
        return min((self._all[number].deadline for number in self._leaving), default=None)

    def _in(self, state: State) -> list[Place]:
        return [place for place in self._all.values() if place.state is state]

    def _set(self, place: Place, state: State) -> None:
        self._count[place.state] -= 1
        place.state = state
        self._count[state] += 1

    def _forget_trial(self, place: Place) -> None:
        self._leaving.pop(place.number, None)
        if place.trial:
            del self._by_trial[place.trial, place.attempt]
            place.trial, place.attempt = "", 0
