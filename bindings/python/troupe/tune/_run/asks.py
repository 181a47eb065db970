"""Requests of other threads to an engine: events that wake it."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from troupe._base import calls as _calls
from troupe.tune._core import events as ev
from troupe.tune._run.changes import Changes
from troupe.tune._run.waits import Waits

WAITING_MAX = 1000


class Asks:
    """Events of one engine, from any thread; what is asked before it listens waits for it.

    `changes`: what it says of the trials, for who follows the sweep.
    """

    def __init__(self) -> None:
        self.changes = Changes()
        self._lock = threading.Lock()
        self._asked: deque[ev.Event] = deque(maxlen=WAITING_MAX)
        self._promise: _calls.Promise | None = None
        self._waits: Waits | None = None

    def put(self, event: ev.Event) -> None:
        """The engine takes it in its turn."""
        with self._lock:
            self._asked.append(event)
            self._wake()

    def arm(self, waits: Waits) -> None:
        """On the engine's thread: the next event wakes it."""
        with self._lock:
            self._waits, self._promise = waits, _calls.Promise()
            waits.add(self._promise.ref, self._heard)
            self._wake()

    def _wake(self) -> None:
        if self._asked and self._promise is not None:
            self._promise.set_value(None)

    def _heard(self, ref: Any) -> ev.Event | None:
        with self._lock:
            event = self._asked.popleft() if self._asked else None
        assert self._waits is not None
        self.arm(self._waits)
        return event
