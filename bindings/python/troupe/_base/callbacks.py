"""Calling what must not end its caller: callbacks, on the threads that everybody's waits depend on.

A thread that reads pushes, watches processes or completes answers calls code that it does not know:
of other modules, and with unpickled exceptions and refs that are let go of the user's too. Whatever
that raises is said on stderr and ends nothing else, also where stderr is gone. On the main thread
nothing is held back: there signal handlers raise, and somebody waits for it.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any


def run(what: str, action: Callable[..., Any], *given: Any) -> None:
    """Calls `action(*given)`; `what` says in the report whose callback it was."""
    try:
        action(*given)
    except BaseException as error:
        if threading.current_thread() is threading.main_thread():
            raise
        report(what, error)


def run_all(what: str, actions: list[Callable[..., Any]], *given: Any) -> None:
    """Calls them all, the later ones also after one that raised; on the main thread the first error
    is raised then."""
    first: BaseException | None = None
    for action in actions:
        try:
            run(what, action, *given)
        except BaseException as error:
            first = first or error
    if first is not None:
        raise first


def report(what: str, error: BaseException) -> None:
    """Says on stderr what a callback raised. Never raises."""
    try:
        text = "".join(traceback.format_exception(error))
    # Raised by the user's code: its __str__, or objects its traceback leads to
    except BaseException:
        text = f"{type(error).__name__}, which has no text\n"
    say(f"troupe: {what} raised; the runtime goes on without it\n{text}", end="")


def say(text: str, end: str = "\n") -> None:
    """Prints a line on stderr, if there is one.

    Never raises: nobody is to hang because of a closed pipe.
    """
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except BaseException:
        return
