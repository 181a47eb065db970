"""Processes left behind by a worker that was killed, and their end.

A worker that lives ends what its processes leave (it is their subreaper). Of one that was killed,
the kernel ends its processes, but not what these have started, which nothing holds together any
more but its environment: all of it inherits a variable that names the worker
(`variables.UNDER_WORKERS`), also in sessions of its own. The zygotes, which know no user's code,
outlive their worker for this.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterable

from troupe._cluster import variables

_ZYGOTE = b"troupe._process.zygote"
_ENDED_S = 60.0


def is_left(environment: Iterable[bytes], command: bytes, worker: str) -> bool:
    """Return True if a process belongs to that worker, by its environment and command line as /proc
    has them; other zygotes look after themselves. Pure.

    >>> is_left([b"HOME=/root", b"TROUPE_UNDER_WORKERS=5c,7f"], b"sleep", "5c")
    True
    """
    before = variables.UNDER_WORKERS.encode() + b"="
    named = next((each[len(before) :] for each in environment if each.startswith(before)), b"")
    return bool(worker) and worker.encode() in named.split(b",") and _ZYGOTE not in command


def end_of(worker: str) -> None:
    """Kills all that is left of it, and returns once nothing is; what the kernel does not let go of
    within a minute is said."""
    began = time.monotonic()
    while found := _left(worker):
        waiting = select.poll()
        for descriptor in found.values():
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            waiting.register(descriptor, select.POLLIN)
        left_ms = (began + _ENDED_S - time.monotonic()) * 1000
        over = left_ms <= 0 or not waiting.poll(left_ms)
        for descriptor in found.values():
            os.close(descriptor)
        if over:
            print(
                f"{_ENDED_S:g} s after the end of the worker these processes of it still are: "
                f"{', '.join(map(str, found))}",
                file=sys.stderr,
                flush=True,
            )
            return


def _left(worker: str) -> dict[int, int]:
    """Process id -> a descriptor of that very process, which its caller closes."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            descriptor = os.pidfd_open(int(name))
        except OSError:
            continue  # the process has ended, or is a thread
        try:
            with (
                open(f"/proc/{name}/environ", "rb") as environment,
                open(f"/proc/{name}/cmdline", "rb") as command,
            ):
                below = is_left(environment.read().split(b"\0"), command.read(), worker)
        except OSError:
            below = False  # the process has ended, or is another user's
        if below:
            found[int(name)] = descriptor
        else:
            os.close(descriptor)
    return found
