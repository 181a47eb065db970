"""How a rank or actor process ends: as a Python program does (`_process.finish`), under a deadline,
then os._exit.

Never by the interpreter's finalization: torch's Gloo groups can deadlock in their destructor, which
joins a thread that waits for the GIL (pytorch#56297). Groups that are still alive when the process
leaves are left undestroyed.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from troupe._base.checks import EXIT_GRACE_S

exit_grace_s = EXIT_GRACE_S  # here: of the launch for ranks, of the actor for actors
WATCH_DEADLINE_S = 1.0  # for the thread that watches the exit handlers to begin
_leaving = threading.Lock()
last_word: Callable[[], None] | None = None  # called when all else is done


def leave(code: int) -> NoReturn:
    """Waits for threads and children, runs the exit handlers, flushes, ends the process with
    `code`; the first caller's code counts. After `exit_grace_s` it ends all the same, and says what
    it waited for."""
    if not _leaving.acquire(blocking=False):
        threading.Event().wait()  # another thread is leaving already
    try:
        if _watched(code):
            from troupe._process import finish

            finish.run()
    finally:
        flush()
        _say_last()
        os._exit(code)


def _say_last() -> None:
    if last_word is not None:
        with contextlib.suppress(Exception):
            last_word()


def _watched(code: int) -> bool:
    """Return True if something will end this process after exit_grace_s; False if there is no
    memory for a thread.

    (`threading.Thread.start` would wait for ever for a thread that has died of that.)
    """
    begun, never = _thread.allocate_lock(), _thread.allocate_lock()
    begun.acquire()
    never.acquire()

    def watch() -> None:
        begun.release()
        never.acquire(timeout=exit_grace_s)
        with contextlib.suppress(Exception):
            _say_what_it_waited_for()
        _say_last()
        os._exit(code)

    try:
        _thread.start_new_thread(watch, ())
    except (RuntimeError, MemoryError):
        return False
    return begun.acquire(timeout=WATCH_DEADLINE_S)


def _say_what_it_waited_for() -> None:
    from troupe._process import finish

    words = (
        f"troupe: it did not end within {exit_grace_s:g} s (exit_grace=): it waited for "
        f"{finish.waits_for()}\n"
    )
    os.write(2, words.encode(errors="backslashreplace"))


def leave_now(code: int) -> NoReturn:
    """Flushes what it can and ends at once: for the control thread, while user code may run."""
    flush()
    os._exit(code)


def flush() -> None:
    """Flushes stdout and stderr; a closed or full stream is no reason to stay."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
