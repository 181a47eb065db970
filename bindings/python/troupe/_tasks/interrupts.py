"""When processes are told once more to look whether the task they run is cancelled.

Pure: times are given.

The signal that tells them can go by unnoticed: it comes while the process has the call but has not
begun it, or in the moment before its thread blocks, where CPython notices a signal only with the
next one. So it is sent again, later and later, until the call is over. A task that has heard of its
cancellation is not interrupted by it again (TaskHost).
"""

from __future__ import annotations

import dataclasses
from typing import Any

FIRST_S = 0.01
MOST_S = 1.0


@dataclasses.dataclass
class _Reminder:
    ref: Any
    lane: int
    due: float
    pause_s: float


class Reminders:
    """Threads to signal again, and the times. One owner."""

    def __init__(self) -> None:
        self._open: list[_Reminder] = []

    def add(self, ref: Any, lane: int, now: float) -> None:
        """The process behind `lane` was signalled because of the call of `ref`."""
        self._open = [each for each in self._open if each.ref is not ref and not each.ref.done()]
        self._open.append(_Reminder(ref, lane, now + FIRST_S, FIRST_S))

    def due(self) -> float | None:
        """When to take some, if any."""
        return min((each.due for each in self._open), default=None)

    def take(self, now: float) -> list[int]:
        """Lanes whose processes are to be signalled now; the calls that are over are forgotten."""
        self._open = [each for each in self._open if not each.ref.done()]
        lanes = []
        for each in self._open:
            if each.due <= now:
                each.pause_s = min(2 * each.pause_s, MOST_S)
                each.due = now + each.pause_s
                lanes.append(each.lane)
        return lanes
