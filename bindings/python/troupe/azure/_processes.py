"""The end of a program that a rank or an actor has started, with all that it has started itself."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_GUARD = Path(__file__).with_name("_guard.py")


def guarded(words: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
    """The command line, started: it ends when this process has ended, however, with all that it has
    started itself."""
    return subprocess.Popen(
        [sys.executable, "-S", "-E", str(_GUARD), *words], stdin=subprocess.PIPE, **more
    )


def below(pid: int) -> list[int]:
    """Processes that it, or one below it, has started."""
    found: list[int] = []
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(task, encoding="ascii") as file:
            found += [int(each) for each in file.read().split()]
    return [*found, *(lower for each in found for lower in below(each))]


def send(pid: int, number: int) -> None:
    """The signal, where there still is such a process."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def end(child: subprocess.Popen[bytes], number: int, grace_s: float) -> None:
    """Sends it and all below it the signal, and SIGKILL to what is left after the grace.

    Nothing where it has ended.
    """
    if child.poll() is not None:
        return
    for pid in [child.pid, *below(child.pid)]:
        send(pid, number)
    try:
        child.wait(grace_s)
    except subprocess.TimeoutExpired:
        for pid in [*below(child.pid), child.pid]:
            send(pid, signal.SIGKILL)
