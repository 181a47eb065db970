"""The waits of an engine: for answers of trials, places and searchers, all at once, on its own
thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import troupe
from troupe._cluster import signals
from troupe.tune._core import events as ev

Heard = Callable[[Any], ev.Event | None]


class Interrupted(BaseException):
    """Raised by a signal's handler to end a wait."""


class Waits:
    """Refs, each with what its answer means. Of one thread."""

    def __init__(self) -> None:
        self._meanings: dict[Any, Heard] = {}
        self.interruptible = False
        """Whether a signal's handler may raise just now, and nothing is lost."""

    def add(self, ref: Any, heard: Heard) -> None:
        """Once the ref has its answer, or its error, `heard(ref)` says what has happened."""
        self._meanings[ref] = heard

    def drop(self, ref: Any) -> None:
        """Ignore the answer of `ref` from now on."""
        self._meanings.pop(ref, None)

    @contextlib.contextmanager
    def interrupted_by_signals(self) -> Iterator[None]:
        """Let a signal's handler raise Interrupted inside."""
        self.interruptible = True
        try:
            yield
        finally:
            self.interruptible = False

    def events(self, timeout: float | None) -> list[ev.Event]:
        """Return new events, waiting at most `timeout` seconds for the first; on the main thread at
        most a slice, so that signals are handled."""
        try:
            with self.interrupted_by_signals():
                if not self._meanings:
                    threading.Event().wait(signals.at_most(timeout))
                    return []
                ready, _ = troupe.wait(list(self._meanings), num_returns=1, timeout=timeout)
        except Interrupted:
            return []
        if not ready:
            return []
        done = ready if len(self._meanings) == 1 else [ref for ref in self._meanings if ref.done()]
        return [event for ref in done if (event := self._meanings.pop(ref)(ref)) is not None]
