"""A background thread for requests to the head that no caller should wait for: released handles,
unwanted actors.

`later` may be called anywhere, also by the garbage collector in the middle of other code: it only
queues. The thread is there once `begin` was called; a forked child has a queue and a thread of its
own.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from troupe._base import callbacks as _callbacks

_begun = threading.Lock()
_thread: threading.Thread | None = None
_queue: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.SimpleQueue()


def later(action: Callable[..., None], *given: Any) -> None:
    """Runs `action(*given)` on the thread."""
    _queue.put((action, given))


def begin() -> None:
    """From now on there is a thread that takes what was queued. Idempotent."""
    global _thread
    if _thread is not None:
        return
    with _begun:
        if _thread is None:
            _thread = threading.Thread(target=_run, name="troupe-lives", daemon=True)
            _thread.start()


def _run() -> None:
    take = _queue.get
    while True:
        action, given = take()
        _callbacks.run("what was to be told of a handle", action, *given)
        del action, given  # the last hold may be among it


def _after_fork() -> None:
    global _begun, _queue, _thread
    _begun, _queue, _thread = threading.Lock(), queue.SimpleQueue(), None


os.register_at_fork(after_in_child=_after_fork)
