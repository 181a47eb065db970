"""What a Python program does at its end, in Python's own order, without the interpreter's finalization (`_leave` says why).

Threads that are no daemons, and executors (threading._shutdown); exit handlers, among them those that wait for children of
multiprocessing, run finalizers and flush logging; the program's own objects are let go of; open files are flushed. What a forked
process has inherited of all this from its zygote is not its own, and left alone.
"""
from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import sys
import threading
import types
from typing import Any

FILES_NAMED_MAX = 5
_let_go: list[types.FunctionType] = []


def forget_inherited() -> None:
    """After fork: exit handlers and finalizers that the zygote's imports registered are not this process's. Those that serve
    whoever uses the modules they are of stay."""
    atexit._clear()
    logging, weakref, util = (sys.modules.get(name) for name in ("logging", "weakref", "multiprocessing.util"))
    if logging is not None:
        atexit.register(logging.shutdown)
    if weakref is not None and weakref.finalize._registered_with_atexit:
        for each in list(weakref.finalize._registry):
            each.atexit = False
        atexit.register(weakref.finalize._exitfunc)
    if util is not None:
        atexit.register(util._exit_function)


def let_go_of(function: Any) -> None:
    """At the end, what this function of the program's has as its globals is let go of, where they are no module's."""
    if isinstance(function, types.FunctionType):
        _let_go.append(function)


def run() -> None:
    """Blocks until all is done; whatever is raised by what is run is printed, as Python does."""
    with _printed("the threads' end"):
        threading._shutdown()
    with _printed("exit handlers"):
        atexit._run_exitfuncs()
    with _printed("the program's objects"):
        _release()
    with contextlib.suppress(Exception):
        flush_files()


@contextlib.contextmanager
def _printed(what: str) -> Any:
    try:
        yield
    except BaseException as error:  # nothing may keep this process from its end
        with contextlib.suppress(BaseException):
            print(f"troupe: {what} raised {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def _release() -> None:
    modules = {id(vars(module)) for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)}
    while _let_go:
        names = _let_go.pop().__globals__
        if id(names) in modules:
            continue
        for name in [each for each in names if not each.startswith("__")]:
            names.pop(name, None)
    gc.collect()


def _open_files() -> list[str]:
    """Regular files that are open for writing here, stdout and stderr aside."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        if int(descriptor) < 3:
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            with open(f"/proc/self/fdinfo/{descriptor}") as info:
                flags = int(next(line for line in info if line.startswith("flags:")).split()[1], 8)
            if path.startswith("/") and flags & (os.O_WRONLY | os.O_RDWR) and not path.startswith(("/dev/", "/memfd:")):
                found.append(path)
    return found


def flush_files() -> None:
    """Flushes what file objects have buffered. Looks for them only where a file is open for writing: that takes its time."""
    if not _open_files():
        return
    files = [each for each in gc.get_objects() if isinstance(each, (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom))]
    for kind in (io.TextIOWrapper, (io.BufferedWriter, io.BufferedRandom)):
        for each in files:
            if isinstance(each, kind):
                with contextlib.suppress(Exception):
                    each.flush()


def waits_for() -> str:
    """What this process still waits for, for whoever reads why it was ended."""
    main = threading.main_thread()
    threads = [each.name for each in list(threading._active.values()) if not each.daemon and each is not main]
    children: list[str] = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children") as file:
            children += file.read().split()
    parts = []
    if threads:
        parts.append("the threads " + ", ".join(sorted(threads)))
    if children:
        parts.append("the children " + ", ".join(children))
    with contextlib.suppress(OSError):
        files = _open_files()
        if files:
            parts.append("with these files open: " + ", ".join(files[:FILES_NAMED_MAX]))
    return "; ".join(parts) or "an exit handler"
