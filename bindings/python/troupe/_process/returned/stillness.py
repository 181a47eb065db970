"""How long something has stood still, and when it is worth while to look at it again."""

from __future__ import annotations

from typing import Any


class Stillness:
    """The place where something was seen last, and since when it has been there."""

    def __init__(self, first_s: float) -> None:
        """`first_s`: how long it stands still before it is looked at for the first time."""
        self._first_s = first_s
        self._seen: Any = None
        self._since = self._next_s = 0.0

    def has_moved(self, seen: Any, now: float) -> bool:
        """Return whether it is at another place than before, or at none (None).

        Time counts anew from there.
        """
        if seen is not None and seen == self._seen:
            return False
        self._seen, self._since, self._next_s = seen, now, self._first_s
        return True

    def forget(self) -> None:
        """Forget the place: the next one is another one."""
        self._seen = None

    def still_s(self, now: float) -> float:
        """Return for how long it has been at its place."""
        return now - self._since

    def is_due(self, now: float) -> bool:
        """Return whether it is time to look at it."""
        return self.still_s(now) >= self._next_s

    def look_again(self, now: float, after_s: float) -> None:
        """Make it due once more, so many seconds from now."""
        self._next_s = self.still_s(now) + after_s
