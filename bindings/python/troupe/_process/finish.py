"""The end of a Python program, in Python's own order, without the interpreter's finalization
(`_process.exit` says why).

Threads that are no daemons, and executors (threading._shutdown); exit handlers, among them those
that wait for children of multiprocessing, run finalizers and flush logging; the program's own
objects are let go of; open files are flushed. What a forked process has inherited of all this from
its zygote is not its own, and left alone.
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

from troupe._code import sources

FILES_NAMED_MAX = 5
_let_go: list[types.FunctionType] = []
_held: list[list[Any]] = []


def forget_inherited() -> None:
    """After fork: exit handlers and finalizers that the zygote's imports registered are not this
    process's. Those that serve whoever uses the modules they are of stay."""
    atexit._clear()
    logging, weakref, util = (
        sys.modules.get(name) for name in ("logging", "weakref", "multiprocessing.util")
    )
    if logging is not None:
        atexit.register(logging.shutdown)
    if weakref is not None and weakref.finalize._registered_with_atexit:
        for each in list(weakref.finalize._registry):
            each.atexit = False
        atexit.register(weakref.finalize._exitfunc)
    if util is not None:
        atexit.register(util._exit_function)


def let_go_of(function: Any) -> None:
    """At the end, what this function of the program's has as its globals is let go of, where they
    are no module's."""
    function = getattr(function, "__func__", function)
    if isinstance(function, types.FunctionType):
        _let_go.append(function)


def let_go_of_all(held: list[Any]) -> None:
    """At the end, what this list holds is let go of."""
    _held.append(held)


def run() -> None:
    """Blocks until all is done; whatever is raised by what is run is printed, as Python does."""
    with _printed("the threads' end"):
        threading._shutdown()  # type: ignore[attr-defined]
    with _printed("exit handlers"):
        atexit._run_exitfuncs()
    files: list[Any] = []
    with contextlib.suppress(Exception):
        files = _files_with_an_end()
    with _printed("the program's objects"):
        _release()
    with contextlib.suppress(Exception):
        close_files(files)


@contextlib.contextmanager
def _printed(what: str) -> Any:
    try:
        yield
    except BaseException as error:  # nothing may keep this process from its end
        with contextlib.suppress(BaseException):
            print(
                f"troupe: {what} raised {type(error).__name__}: {error}",
                file=sys.stderr,
                flush=True,
            )


def _release() -> None:
    threading.excepthook = lambda said: (
        None
    )  # Python stops daemon threads here; these find their program's objects gone
    for held in _held:
        held.clear()
    spaces = [function.__globals__ for function in _let_go if not _is_of_a_module(function)]
    _let_go.clear()
    for names in [*spaces, *map(vars, sources.modules_of_the_program())]:
        for name in [
            name
            for name, value in names.items()
            if not name.startswith("__") and not isinstance(value, _PLAIN)
        ]:
            names.pop(name, None)
    gc.collect()


def _is_of_a_module(function: types.FunctionType) -> bool:
    names = (function.__module__, function.__globals__.get("__name__"))
    return any(
        function.__globals__ is getattr(sys.modules.get(name), "__dict__", None)
        for name in names
        if isinstance(name, str)
    )


_PLAIN = (
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    type,
    str,
    bytes,
    int,
    float,
    type(None),
)
"""What has no end of its own: it may stay where others look for it."""


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
            if (
                path.startswith("/")
                and flags & (os.O_WRONLY | os.O_RDWR)
                and not path.startswith(("/dev/", "/memfd:"))
            ):
                found.append(path)
    return found


_BUFFERED = (io.BufferedWriter, io.BufferedRandom)
_IN_MEMORY = (io.BytesIO, io.StringIO)


def _files_with_an_end() -> list[Any]:
    """File objects that write, and what writes by way of them (compressed ones, archives); looked
    for only where a file is open for writing, since that takes its time.

    Whoever has these keeps them open while others are let go of: of a circle that is collected
    together, the descriptor may be closed before what its buffer holds is written.
    """
    if not _open_files():
        return []
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, (io.TextIOWrapper, *_BUFFERED)) or _ends_a_file(each)
    ]


def close_files(files: list[Any]) -> None:
    """Closes what writes into files by way of other files, and flushes what file objects have
    buffered: of these, and of those that have been opened since they were looked for."""
    files = [*files, *_files_with_an_end()]
    _flush(files)
    for each in _outermost_first([each for each in files if _ends_a_file(each)]):
        with contextlib.suppress(Exception):
            each.close()
    _flush(files)


def _flush(files: list[Any]) -> None:
    for kind in (io.TextIOWrapper, _BUFFERED):
        for each in files:
            if isinstance(each, kind):
                with contextlib.suppress(Exception):
                    each.flush()


def _outermost_first(files: list[Any]) -> list[Any]:
    """Sort files so that a file comes before the one it writes through: a tar file before the gzip
    file that packs it."""
    known = {id(each) for each in files}
    depths: dict[int, int] = {}

    def depth(file: Any) -> int:
        if id(file) not in depths:
            depths[id(file)] = 0  # guards against a cycle
            inner = [
                value for value in getattr(file, "__dict__", {}).values() if id(value) in known
            ]
            depths[id(file)] = 1 + max(map(depth, inner), default=0)
        return depths[id(file)]

    return sorted(files, key=depth, reverse=True)


def _ends_a_file(thing: Any) -> bool:
    """Return True if a file is complete only once `thing` is closed: gzip.GzipFile, zipfile.ZipFile
    and the like, and users' subclasses."""
    kind = type(thing)
    archives = [
        getattr(sys.modules.get(module), name, None)
        for module, name in (("zipfile", "ZipFile"), ("tarfile", "TarFile"))
    ]
    if any(isinstance(each, type) and issubclass(kind, each) for each in archives):
        return getattr(thing, "mode", "r") != "r"
    layered = issubclass(kind, (io.BufferedIOBase, io.TextIOBase)) and kind not in (
        io.TextIOWrapper,
        *_BUFFERED,
        *_IN_MEMORY,
    )
    if not layered:
        return False
    try:
        return not thing.closed and thing.writable()
    except Exception:  # raised by a class of the program's
        return False


def waits_for() -> str:
    """Return a description of the threads that this process still waits for."""
    main = threading.main_thread()
    running: list[threading.Thread] = list(
        threading._active.values()  # type: ignore[attr-defined]  # enumerate() takes a lock
    )
    threads = [each.name for each in running if not each.daemon and each is not main]
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
