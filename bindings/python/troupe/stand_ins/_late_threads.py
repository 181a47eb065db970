"""Threads of torch that outlive Python in a program that a rank becomes end it by no abort
(`bindings/support/late_threads.cc`).

Ranks that are functions need no such thing: they end without the interpreter's finalization
(`_process.exit`).
"""

import atexit
import contextlib
import ctypes
import os
import sys

LIBRARY = "_late_threads.so"
NONE_SINCE = (3, 14)
"""Pythons of this version and later end no thread: it stands still."""


def watch(package: str) -> None:
    """To be called right after torch is imported, with the folder of the package that has the
    library."""
    if sys.version_info >= NONE_SINCE:
        return
    with contextlib.suppress(OSError):  # the C library of another system, or none was built
        library = ctypes.CDLL(os.path.join(package, LIBRARY))
        library.troupe_late_threads_watch()
        atexit.register(library.troupe_late_threads_ending)
