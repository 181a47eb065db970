"""Waiting for the ends of processes by their descriptors (pidfd)."""

from __future__ import annotations

import os
import select
import time
from typing import Any


def drop_ended(watched: dict[int, Any], timeout_s: float) -> None:
    """Take out of `watched`, and close, the descriptors of processes that end within `timeout_s`
    seconds.

    Blocks until all have ended or the time is over. The keys are the descriptors.
    """
    deadline = time.monotonic() + timeout_s
    while watched:
        ended, _, _ = select.select(list(watched), [], [], max(0.0, deadline - time.monotonic()))
        if not ended:
            return
        for descriptor in ended:
            del watched[descriptor]
            os.close(descriptor)
