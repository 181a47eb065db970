"""Runs a command line that is to end with who has started it, with all that it starts itself: also
where that one is killed.

It is executed by its path, as `_guard.py WORDS...`, without the package. Its standard input is a
pipe whose other end the starter holds and never writes to: its end is the starter's. What the
command leaves behind when it ends by itself is let be, as a shell does.
"""

from __future__ import annotations

import ctypes
import glob
import os
import select
import signal
import subprocess
import sys

_PR_SET_CHILD_SUBREAPER = 36


def _below(pid: int) -> list[int]:
    found: list[int] = []
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(task, encoding="ascii") as file:
                found += [int(each) for each in file.read().split()]
        except OSError:
            continue  # the process has ended
    return [*found, *(lower for each in found for lower in _below(each))]


def _end_all() -> None:
    """End all processes that the command left without a parent: they are this process's children.
    Blocks until there is none."""
    while True:
        for pid in _below(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.wait()
        except ChildProcessError:
            return


def main(words: list[str]) -> int:
    """The command's code, as a shell has it."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the command is told itself
    ended = select.poll()
    ended.register(0, select.POLLIN | select.POLLHUP)
    ended.register(os.pidfd_open(child.pid), select.POLLIN)
    if all(number == 0 for number, _ in ended.poll()):
        _end_all()
        return 137
    code = child.wait()
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
