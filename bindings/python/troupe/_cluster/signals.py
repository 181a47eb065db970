"""Waits of the main thread in which no signal is lost.

A signal that comes between Python's last look for signals and the system call that waits does not
end that call, nor does one that another thread took: its handler runs at the next look. So what
waits for long on the thread that runs handlers waits SLICE_S at a time. The native waits do the
same (`WaitHost::HandlesSignals`).
"""

from __future__ import annotations

import threading

SLICE_S = 0.05


def at_most(timeout: float | None) -> float | None:
    """How long this thread may wait at once, of `timeout` seconds (None: without end)."""
    if threading.current_thread() is not threading.main_thread():
        return timeout
    return SLICE_S if timeout is None else min(timeout, SLICE_S)


def wait(event: threading.Event) -> None:
    """Blocks until the event is set. What a signal's handler raises ends it within SLICE_S."""
    while not event.wait(at_most(None)):
        pass
