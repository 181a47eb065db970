"""What a process says about its own failure: the Failure fields of a message and the pickled exception."""
from __future__ import annotations

import contextlib
import linecache
import os
import re
import socket
import sys
import threading
import traceback

from troupe._exception_pickles import carried, without_what_cannot_be

TRACEBACK_BYTES_MAX = 64 << 10
WHERE_CHARS_MAX = 3000
FRAMES_TOLD_MAX = 30
_TAIL_LINES = 12
_LINES_BEFORE_FATAL = 8
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PLACE = re.compile(r'([ |]*  )File "(.*)", line ([0-9]+)')
_FRAME = re.compile(r'  File "(.*)", line ')


def type_name(error: BaseException) -> str:
    """`builtins.KeyError`: the name a Failure carries."""
    return f"{type(error).__module__}.{type(error).__qualname__}"


def words_of(error: BaseException) -> str:
    """What the exception says; where its class cannot say it, that."""
    try:
        return str(error)
    except Exception as other:  # a program's own __str__ may raise anything, and give no text
        return f"(its __str__ raised {type(other).__name__})"


def describe(error: BaseException) -> str:
    """The traceback as text, without the runtime's own frames, over which the program's was called."""
    told = traceback.TracebackException.from_exception(error)
    _drop_frames(told)
    text = "".join(told.format())
    if len(text) > TRACEBACK_BYTES_MAX:
        half = TRACEBACK_BYTES_MAX // 2
        text = f"{text[:half]}\n  ... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
    return text


def _drop_frames(told: traceback.TracebackException) -> None:
    """Takes the outermost frames that are of the runtime's files, of this error and of those it came of; of an error of the
    runtime itself, all of whose frames are, none."""
    waiting, seen = [told], {id(told)}
    while waiting:
        each = waiting.pop()
        users = next((number for number, frame in enumerate(each.stack) if not is_of_runtime(frame.filename)), 0)
        del each.stack[:users]
        for other in (each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())):
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def where() -> str:
    """Where the main thread is, as tracebacks say it, the innermost call last, without the frames of the runtime that called the
    program's code; of code that has ended, or waits to be called, that."""
    frame = sys._current_frames().get(threading.main_thread().ident)  # type: ignore[arg-type]
    stack = traceback.extract_stack(frame, limit=FRAMES_TOLD_MAX)  # of a frame: the innermost ones
    users = next((number for number, each in enumerate(stack) if not (is_of_runtime(each.filename) or _starts_it(each.filename))), None)
    if users is None:
        return "  none of the program's code was running\n"
    text = "".join(traceback.format_list(stack[users:]))
    return text if len(text) <= WHERE_CHARS_MAX else f"  ...\n{text[-WHERE_CHARS_MAX:].partition(chr(10))[2]}"


def _starts_it(filename: str) -> bool:
    """Whether this is Python's own by which `python -m troupe...` was started."""
    return filename.startswith("<frozen runpy")


def is_of_runtime(filename: str) -> bool:
    """Whether this is a file of the package, in this process or, by its folder's name, in another."""
    return filename.startswith(_PACKAGE) or "/site-packages/troupe/" in filename


def fields_of(error: BaseException, *, rank: int = -1, exit_code: int = 1, cause: str = "") -> dict:
    """A Failure message about `error`, seen in this process."""
    return {"rank": rank, "host": socket.gethostname(), "pid": os.getpid(), "exit_code": exit_code,
            "cause": cause or first_line(error), "exception_type": type_name(error),
            "traceback": describe(error), "symptom": is_symptom(error)}


_COLLECTIVES = ("DistBackendError", "DistNetworkError", "DistStoreError")
_LOST = re.compile(r"closed|reset by peer|broken pipe|timeout|timed out|remote process exited|network error|got 0 bytes", re.I)
_CHAIN_MAX = 32


def is_symptom(error: BaseException) -> bool:
    """Whether a collective lost its connection, or its patience: the cause is then likely in another rank.

    What was raised from such an error is a symptom too.
    """
    link: BaseException | None = error
    for _ in range(_CHAIN_MAX):
        if link is None:
            return False
        text = words_of(link)
        of_collective = type(link).__name__ in _COLLECTIVES or isinstance(link, RuntimeError) and "gloo/" in text
        if of_collective and _LOST.search(text):
            return True
        link = link.__cause__ or link.__context__
    return False


def with_source(told: str) -> str:
    """A traceback of another process, with the lines of code that only this one has: of a notebook's cells, of what was typed."""
    lines = told.split("\n")
    shown = []
    for number, line in enumerate(lines):
        shown.append(line)
        frame = _PLACE.match(line)
        if frame is None or (number + 1 < len(lines) and lines[number + 1].startswith(frame[1] + "  ")):
            continue
        cached = linecache.cache.get(frame[2])  # what is a file was readable there, or is not the same file here
        source = linecache.getline(frame[2], int(frame[3])).strip() if cached is not None and not os.path.exists(frame[2]) else ""
        if source:
            shown.append(f"{frame[1]}  {source}")
    return "\n".join(shown)


def last_lines(tail: str) -> list[str]:
    """The last lines that a process said. Of a crash: what it said before Python's fault handler did, and where the thread was that
    crashed, without the runtime's frames; what other threads did is of no use."""
    lines = tail.rstrip().splitlines()
    crashed = next((number for number, line in enumerate(lines) if line.startswith("Current thread 0x")), None)
    fatal = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error: ")), crashed)
    if fatal is None:
        return lines[-_TAIL_LINES:]
    before = [line for line in lines[max(fatal - _LINES_BEFORE_FATAL, 0):fatal] if line.strip()]
    kept = [*before, *lines[fatal:fatal + (fatal != crashed)]]
    if crashed is not None:
        thread = [line for line in lines[crashed:] if not _of_runtime(line)]
        ends = next((number for number, line in enumerate(thread) if number and not line.startswith("  ")), len(thread))
        kept += thread[:min(ends, _TAIL_LINES)]
    return kept


def _of_runtime(line: str) -> bool:
    frame = _FRAME.match(line)
    return frame is not None and is_of_runtime(frame[1])


def first_line(error: BaseException) -> str:
    """`KeyError: 'lr'`, on one line."""
    words = words_of(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0]}" if words else type(error).__name__


def pickled(error: BaseException) -> bytes:
    """The exception as bytes that are known to load again, less what of it cannot travel; b"" where its class cannot."""
    import cloudpickle

    from troupe._code.capture import cloudpickled

    for form in (carried, without_what_cannot_be):
        with contextlib.suppress(Exception):  # an exception's own __reduce__ or __init__ may raise anything
            data = cloudpickled(form(error))
            if isinstance(cloudpickle.loads(data), BaseException):
                return data
    return b""


def explain_import(error: ImportError, what: str) -> str:
    """One sentence for a module that the caller has and this process lacks."""
    module = error.name or "a module"
    return (f"{what} needs the module {module!r}, which cannot be imported on {socket.gethostname()}\n"
            f"  install it for the workers' Python, or put its folder on the import path there "
            f"(runtime_env={{'working_dir': ...}}), or define what is used in the launching script")
