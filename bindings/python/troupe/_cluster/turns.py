"""So many at once, the others in the order in which they came.

A semaphore of `threading` is taken by whoever runs first: who gives it back and wants it again at
once has it before those that wait, who are to be woken yet, again and again.
"""

from __future__ import annotations

import threading
from collections import deque


class Turns:
    """`with turns:` blocks until it is this thread's turn. Any thread."""

    def __init__(self, at_once: int) -> None:
        self._lock = threading.Lock()
        self._free = at_once
        self._waiting: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def __enter__(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            turn.acquire()  # until who leaves hands it over
        except BaseException:  # a signal's handler, in the main thread
            with self._lock:
                came = turn not in self._waiting
                if not came:
                    self._waiting.remove(turn)
            if came:
                self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1
