"""Changes of a sweep's trials, for followers: rows of its table, as they change."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from dataclasses import dataclass

from troupe import _pickled

KEPT_MAX = 1000
"""Rows that wait for who follows; who is further behind hears how many it has missed."""
AT_ONCE_MAX = 200


@dataclass(frozen=True)
class NewRows:
    """Rows since a place, and the place after them.

    A row has the cells of the sweep's table for a trial that is another than before, or, alone, the
    words of the best so far.
    """

    place: tuple[str, int]
    rows: list[list[str]]
    missed: int = 0
    is_over: bool = False


_pickled.named_in("troupe._pickled", NewRows)


class Changes:
    """The changes of one engine; from any thread."""

    def __init__(self) -> None:
        self._life = uuid.uuid4().hex  # another engine's places mean nothing here
        self._changed = threading.Condition()
        self._rows: deque[list[str]] = deque(maxlen=KEPT_MAX)
        self._count = 0
        self._is_over = False

    def note(self, row: list[str]) -> None:
        """A trial is another than before, or the best so far is."""
        with self._changed:
            self._rows.append(row)
            self._count += 1
            self._changed.notify_all()

    def close(self) -> None:
        """The sweep is over here. Idempotent."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def since(self, place: tuple[str, int] | None) -> NewRows:
        """Waits until there is more than at that place, or it is over; None: the beginning."""
        after = place[1] if place is not None and place[0] == self._life else 0
        with self._changed:
            self._changed.wait_for(lambda: self._count > after or self._is_over)
            first = max(after, self._count - len(self._rows))
            rows = list(self._rows)[first - self._count + len(self._rows) :][:AT_ONCE_MAX]
            end = first + len(rows)
            is_over = self._is_over and end == self._count
            return NewRows((self._life, end), rows, first - after, is_over)
