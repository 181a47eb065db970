"""The asyncio loop of an actor with coroutines: asyncio's own, which asks for calls before it
waits.

A loop with nothing to run would sleep in epoll_wait, and waking it costs more than a whole call
between processes that do not sleep. So it polls the last caller first, for some microseconds, by
the same rules as an actor with plain methods.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable

_SOON_S = 0.0001  # a timer that is due by then is not to wait for a poll


class _PollingSelector(selectors.DefaultSelector):
    """Calls `poll` before it waits; where that ran something there are no events yet.

    A caller without pause must not hide the other sockets: between two polls that ran something it
    looks at them, without waiting, since a wait here is what polling saves.
    """

    poll: Callable[[], bool] | None = None
    _unseen = False  # answered by a poll since the last look

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.poll is not None and (timeout is None or timeout > _SOON_S):
            if self._unseen:
                self._unseen = False
                if events := super().select(0):
                    return events
            if self.poll():
                self._unseen = True
                return []
        self._unseen = False
        return super().select(timeout)


class _PollingLoop(asyncio.SelectorEventLoop):
    """asyncio's, with what it polls first."""

    def __init__(self) -> None:
        self._polling = _PollingSelector()
        super().__init__(self._polling)

    def poll_first(self, poll: Callable[[], bool] | None) -> None:
        """Before it waits it calls `poll()`, on its thread; True: something came, so it does not
        wait."""
        self._polling.poll = poll


def new() -> asyncio.AbstractEventLoop:
    """A loop for an actor: of the policy that the program has set, if it has set one."""
    loop = asyncio.new_event_loop()
    if type(loop) is not asyncio.SelectorEventLoop:
        return loop
    loop.close()
    return _PollingLoop()


def apart() -> asyncio.AbstractEventLoop:
    """A loop that runs on a thread of its own until it is stopped; the thread keeps nothing from
    its end."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    threading.Thread(target=run, name="actor", daemon=True).start()
    return loop
