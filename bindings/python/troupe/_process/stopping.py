"""Stopping of a rank or an actor: its code gets a signal and may print a last word.

SIGINT raises KeyboardInterrupt, as everywhere in Python; SIGTERM raises SystemExit(143) in the main
thread, unless the program has a handler of its own. Both only while code of the program's runs:
once it has returned, there is nothing left to stop. How an end is judged (`verdict_on`): whoever
was told to stop and then ended was stopped, whatever it returns or raises, except what has left its
code by itself.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from typing import Any

from troupe._cluster import status_lines
from troupe._code import failures
from troupe._process import gloo_sockets, torch_backend

EXIT_TERMINATED = 128 + signal.SIGTERM
UNHEEDED_S = 2.0  # for a call in the main thread to return to Python after another rank's failure


class _State:
    owner = 0  # the process whose handlers these are: children inherit them
    runs = False  # true if code of the program runs in the main thread
    told: dict[str, Any] | None = None  # ProcessStop's fields
    heeded = threading.Event()  # the main thread has got the signal of SIGTERM as SystemExit


def install() -> None:
    """Makes SIGTERM raise SystemExit(143) in this process's main thread; not in children that it
    forks."""
    _State.owner = os.getpid()
    _State.runs = True
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)


def finished() -> None:
    """The program's code has ended: signals that ask it to stop are ignored from now on."""
    _State.runs = False
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _terminate(number: int, _: Any) -> None:
    if (
        os.getpid() != _State.owner
    ):  # a forked child of the program's: the signal ends it, as it would without us
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    if not _State.runs:
        return
    _State.heeded.set()
    error = SystemExit(EXIT_TERMINATED)
    error.by_signal = number  # type: ignore[attr-defined]
    raise error


def tell(fields: dict[str, Any]) -> None:
    """The worker's word, for the control thread: says so on stderr, unless that is to be quiet, and
    raises the signal in the main thread.

    Not the worker does, so that whoever sees the signal's doing knows already whose word it was.
    """
    if _State.told is not None:
        return
    _State.told = fields
    name = signal.Signals(fields["signal"]).name
    words = f"troupe: told to stop by {name}, {fields['grace_ms'] / 1000:g} s: {fields['reason']}\n"
    if not status_lines.is_quiet():
        os.write(2, words.encode(errors="backslashreplace"))
    if _State.runs and _State.owner == os.getpid():
        signal.pthread_kill(
            threading.main_thread().ident or threading.get_ident(), fields["signal"]
        )
        if fields[
            "peer_lost"
            # A thread that waits in a collective returns to Python, which raises the signal's
            # exception
        ]:
            end_collectives(fields)
            with contextlib.suppress(
                RuntimeError, MemoryError
            ):  # no memory for a thread: the worker ends this process
                _thread.start_new_thread(_end_unless_heeded, ())


def _end_unless_heeded() -> None:
    """Kill this process if it has no handler for SIGTERM of its own, and a call that knows nothing
    of signals keeps Python from ours.

    The signal itself would end any other program at once. Waiting for the whole stop grace would
    only delay the launch's error.
    """
    if (
        not _State.heeded.wait(UNHEEDED_S)
        and _State.runs
        and signal.getsignal(signal.SIGTERM) is _terminate
    ):
        os.kill(os.getpid(), signal.SIGKILL)


def end_collectives(fields: dict[str, Any]) -> None:
    """Another rank has failed, as ProcessStop says: nobody waits for it in a collective any
    longer."""
    torch_backend.stop_all(fields["reason"])
    gloo_sockets.end_all()


def told() -> dict[str, Any] | None:
    """ProcessStop's fields, where this process was told to stop."""
    return _State.told


def signal_of(error: BaseException) -> int:
    """The signal that raised this exception; 0 where none did."""
    return getattr(error, "by_signal", 0) if isinstance(error, SystemExit) else 0


def program_of(error: BaseException) -> tuple[str, int] | None:
    """(name, the signal that ended it or 0) of a program that a rank ran beside it and ends as;
    None of any other exit."""
    return getattr(error, "of_program", None)


def leave_by(number: int) -> None:
    """Ends this process by the signal that asked it to: whoever waits for it sees that."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def verdict_on(error: BaseException) -> BaseException | None:
    """Return the exception that the program raised by itself; None if it only did what it was told.

    Args:
        error: the exception that has left the program's code.

    After the word to stop, a KeyboardInterrupt or SystemExit that leaves the code is that word's
    doing, and so is an exception that was raised while one of the two was handled. What the program
    was handling when the signal came (`__context__` of the stop) is not judged: it was caught, and
    has not left the code. The end of a collective whose connections were ended here is no failure
    of the program either.
    """
    if _State.told is None:
        return error
    chain = failures.chain_of(error)
    if any(_is_stop(each) for each in chain):
        return None
    if gloo_sockets.ended() and failures.is_symptom(error):
        return None
    return error


def _is_stop(error: BaseException) -> bool:
    return isinstance(error, (KeyboardInterrupt, SystemExit))
