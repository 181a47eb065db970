"""Parts shared by tests of actors' handles: when a process has ended, and when released handles
have been processed."""

from __future__ import annotations

import os
import select
import threading
from typing import Any

import troupe
from troupe._base import background as _background

WITHIN_S = 30.0


class Watched:
    """The process of an actor."""

    def __init__(self, actor: Any) -> None:
        self.pid = troupe.get(actor.__ray_call__.remote(lambda self: os.getpid()), timeout=WITHIN_S)
        self._descriptor = os.pidfd_open(self.pid)

    def __del__(self) -> None:
        os.close(self._descriptor)

    def lives(self) -> bool:
        """Return True if the process has not ended."""
        return not select.select([self._descriptor], [], [], 0)[0]

    def ends(self, within_s: float = WITHIN_S) -> None:
        """Waits for its end."""
        assert select.select([self._descriptor], [], [], within_s)[0], (
            f"it did not end within {within_s:g} s"
        )


def all_looked_at() -> None:
    """Wait until this process has handled all releases so far; effects in other processes were not
    waited for."""
    done = threading.Event()
    _background.later(done.set)
    assert done.wait(WITHIN_S), f"that took more than {WITHIN_S:g} s"
