"""How many calls of a process wait at a queue's actor at a time; the others wait here, in order.

An actor reads a process no further while thousands of its calls run there, and then it would not
see the put that those calls wait for.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import threading

AT_ONCE = 1000


class Turns:
    """Hands out `AT_ONCE` turns, for threads and for coroutines."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._left = at_once
        self._waiting: collections.deque[concurrent.futures.Future[None]] = collections.deque()
        self._lock = threading.Lock()

    def take(self, timeout: float | None) -> None:
        """Waits for a turn; TimeoutError."""
        future = self._ask()
        if future is None:
            return
        try:
            future.result(timeout)
        except BaseException:
            self._leave(future)
            raise

    async def take_async(self, timeout: float | None) -> None:
        """take(), to be awaited."""
        future = self._ask()
        if future is None:
            return
        try:
            # shielded: a cancelled wait may find that its turn has come meanwhile
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), timeout)
        except BaseException:
            self._leave(future)
            raise

    def give(self) -> None:
        """A turn is over: the next one's."""
        with self._lock:
            if not self._waiting:
                self._left += 1
                return
            following = self._waiting.popleft()
        following.set_result(None)

    def _ask(self) -> concurrent.futures.Future[None] | None:
        with self._lock:
            if self._left:
                self._left -= 1
                return None
            future: concurrent.futures.Future[None] = concurrent.futures.Future()
            self._waiting.append(future)
            return future

    def _leave(self, future: concurrent.futures.Future[None]) -> None:
        with self._lock:
            waits = future in self._waiting
            if waits:
                self._waiting.remove(future)
        if not waits:
            self.give()
