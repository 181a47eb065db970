"""Stands between the leader of a run and its command, so that nothing the command started outlives
either.

Run as a program of its own, `python -I -S keeper.py LIFELINE COMMAND...`, importing as little as it
can. It is the parent of whatever the command leaves without one; it ends all of it when the command
has ended, and also when the lifeline, a pipe whose other end is the leader's, does. It ends as the
command did.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import types

_SLICE_S = 0.05
"""As troupe._cluster.signals: a signal that comes just before a wait does not end it."""


def _kernel() -> types.ModuleType:
    """troupe._process.os_calls, without the package around it."""
    here = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_process")
    sys.path.insert(0, here)
    try:
        return __import__("os_calls")
    finally:
        sys.path.remove(here)


def _start(command: list[str], lifeline: int) -> int:
    """The command's pid, its signals as a shell would leave them."""
    pid = os.fork()
    if pid:
        return pid
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.close(lifeline)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"troupe run: {command[0]} cannot be run: {error.strerror}\n".encode())
    os._exit(126)


def main(lifeline: int, command: list[str]) -> None:
    """Does not return."""
    kernel = _kernel()
    kernel.adopt_orphans()
    os.set_inheritable(lifeline, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's reaches the command by itself
    child = _start(command, lifeline)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda told, _: os.kill(child, told))
    ended = os.pidfd_open(child)
    while not (readable := select.select([ended, lifeline], [], [], _SLICE_S)[0]):
        pass
    status = os.waitpid(child, 0)[1] if ended in readable else None
    kernel.kill_children(set())
    code = os.waitstatus_to_exitcode(status) if status is not None else 1
    if code < 0:  # ends by the same signal, without a second core
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
