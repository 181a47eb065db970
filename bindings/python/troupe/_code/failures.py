"""A process's report of its own failure: the Failure fields of a message and the pickled
exception."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from troupe import exceptions
from troupe._base.exception_pickles import carried, without
from troupe._base.tracebacks import is_of_runtime, words_of
from troupe._wire import FailureKind

TRACEBACK_BYTES_MAX = 64 << 10
WHERE_CHARS_MAX = 3000
FRAMES_TOLD_MAX = 30


def type_name(error: BaseException) -> str:
    """`builtins.KeyError`: the name a Failure carries."""
    return f"{type(error).__module__}.{type(error).__qualname__}"


def describe(error: BaseException) -> str:
    """The traceback as text, without the runtime's own frames, over which the program's was
    called."""
    told = traceback.TracebackException.from_exception(error)
    _drop_frames(told)
    text = "".join(told.format())
    if len(text) > TRACEBACK_BYTES_MAX:
        half = TRACEBACK_BYTES_MAX // 2
        text = (
            f"{text[:half]}\n  ... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
        )
    return text


def _drop_frames(told: traceback.TracebackException) -> None:
    """Takes the outermost frames that are of the runtime's files, of this error and of those it
    came of; of an error of the runtime itself, all of whose frames are, none."""
    waiting, seen = [told], {id(told)}
    while waiting:
        each = waiting.pop()
        users = next(
            (
                number
                for number, frame in enumerate(each.stack)
                if not is_of_runtime(frame.filename)
            ),
            0,
        )
        del each.stack[:users]
        for other in (each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())):
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def where() -> str:
    """Return the main thread's stack as text, the innermost call last, without frames of the
    runtime that called the program; if its code has ended or not begun, a sentence that says so."""
    frame = sys._current_frames().get(threading.main_thread().ident)  # type: ignore[arg-type]
    stack = traceback.extract_stack(frame, limit=FRAMES_TOLD_MAX)  # the innermost frames
    users = next(
        (
            number
            for number, each in enumerate(stack)
            if not (is_of_runtime(each.filename) or _starts_it(each.filename))
        ),
        None,
    )
    if users is None:
        return "  none of the program's code was running\n"
    text = "".join(traceback.format_list(stack[users:]))
    return (
        text
        if len(text) <= WHERE_CHARS_MAX
        else f"  ...\n{text[-WHERE_CHARS_MAX:].partition(chr(10))[2]}"
    )


def _starts_it(filename: str) -> bool:
    """Return True if this file is the part of Python by which `python -m troupe...` was started."""
    return filename.startswith("<frozen runpy")


def fields_of(
    error: BaseException, *, rank: int = -1, exit_code: int = 1, cause: str = ""
) -> dict[str, Any]:
    """A Failure message about `error`, seen in this process."""
    return {
        "rank": rank,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "exit_code": exit_code,
        "kind": _kind_of(error),
        "cause": cause or first_line(error),
        "exception_type": type_name(error),
        "traceback": describe(error),
        "symptom": is_symptom(error),
    }


def _kind_of(error: BaseException) -> str:
    if isinstance(error, exceptions.RuntimeEnvSetupError):
        return FailureKind.SETUP_FAILED
    return FailureKind.CALLED_EXIT if isinstance(error, SystemExit) else FailureKind.RAISED


BY_KIND: Mapping[str, type[Exception]] = {
    FailureKind.OUT_OF_MEMORY: exceptions.OutOfMemoryError,
    FailureKind.NODE_LOST: exceptions.NodeDiedError,
    FailureKind.NODE_UNREACHABLE: exceptions.NodeUnreachableError,
    FailureKind.TIMED_OUT: TimeoutError,
}
"""The classes of failures that are no exception of the program's: what the schema's enum calls
them, and what Python raises."""


def type_name_of(failure: Mapping[str, Any]) -> str:
    """Return the dotted name of the class for a message's Failure: of what its code raised, else of
    its kind; "" for kinds that have none."""
    kind = BY_KIND.get(failure["kind"])
    name = f"{kind.__module__}.{kind.__name__}" if kind is not None else ""
    return str(failure["exception_type"]) or name


def out_of_memory(failure: Mapping[str, Any]) -> exceptions.OutOfMemoryError | None:
    """Return the error of a message's Failure where the process ended so, and None where it did
    not."""
    if failure["kind"] != FailureKind.OUT_OF_MEMORY:
        return None
    error = exceptions.OutOfMemoryError(failure["cause"])
    error.used, error.limit = failure["peak_rss_kib"] << 10, failure["memory_limit_bytes"]
    error.requested = failure["memory_asked_bytes"]
    return error


def words_of_program(failure: Mapping[str, Any]) -> str:
    """Return what the program's own exception said, of a message's Failure; "" where it raised
    none.

    These are words of Python and of libraries, in which hints look for what is known of those.
    """
    return str(failure["cause"]) if failure["exception_type"] else ""


_COLLECTIVES = ("DistBackendError", "DistNetworkError", "DistStoreError")
_LOST = re.compile(
    r"closed|reset by peer|broken pipe|timeout|timed out|remote process exited|network error"
    r"|got 0 bytes",
    re.I,
)
_STOPPED = re.compile(
    r"group .*, rank \d+ of \d+: stopped: (?!rank \d+ (is in|has aborted) )"
)  # by the backend troupe, whose words are actors/train's
_CHAIN_MAX = 32


def is_symptom(error: BaseException) -> bool:
    """Return True if a collective lost its connection, or its patience: the cause is then likely in
    another rank.

    What was raised from such an error is a symptom too.
    """
    for link in chain_of(error):
        text = words_of(link)
        of_collective = (
            type(link).__name__ in _COLLECTIVES
            or isinstance(link, RuntimeError)
            and "gloo/" in text
        )
        if of_collective and (_LOST.search(text) or _STOPPED.match(text)):
            return True
    return False


def chain_of(error: BaseException) -> list[BaseException]:
    """Return the exception and what it was raised from, or while it was handled, the latest first;
    32 at most."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(chain) < _CHAIN_MAX and not any(link is each for each in chain):
        chain.append(link)
        link = link.__cause__ or link.__context__
    return chain


def first_line(error: BaseException) -> str:
    """`KeyError: 'lr'`, on one line."""
    words = words_of(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0]}" if words else type(error).__name__


def pickled(error: BaseException) -> bytes:
    """The exception as bytes that are known to load again, less what of it cannot travel; b"" where
    its class cannot."""
    import cloudpickle

    from troupe._code.capture import cloudpickled

    for form in (carried, without_what_cannot_be):
        with contextlib.suppress(
            Exception
        ):  # an exception's own __reduce__ or __init__ may raise anything
            data = cloudpickled(form(error))
            if isinstance(cloudpickle.loads(data), BaseException):
                return data
    return b""


def without_what_cannot_be(error: BaseException) -> Any:
    """Return a pickleable stand-in for an exception that could not be pickled as it is; None for
    one of the runtime's classes that are made on demand."""
    from troupe._code.capture import goes

    return without(error, goes)


# Packages whose modules have other names, of those that programs take along most: this process
# cannot look up what it lacks.
_PACKAGES = {
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "git": "GitPython",
    "jwt": "PyJWT",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tensorflow_datasets": "tensorflow-datasets",
    "umap": "umap-learn",
    "yaml": "PyYAML",
}


def explain_import(error: ImportError, what: str) -> str:
    """Return one sentence for a module that the caller has and this process lacks, or has without
    what the caller's has."""
    if not isinstance(error, ModuleNotFoundError):  # the module is there
        return f"{what} cannot be imported on {socket.gethostname()}: {error}"
    module = error.name or "a module"
    if "." in module:  # Python names the first module of a path that is missing
        parent, _, name = module.rpartition(".")
        return (
            f"{what} needs the module {module!r}: {socket.gethostname()} has {parent!r}, without "
            f"{name!r}\n"
            "  have the same version of it here and there, or define what is used in the launching "
            "script"
        )
    package = _PACKAGES.get(module.partition(".")[0])
    of_package = f", of the package {package}" if package else ""
    return (
        f"{what} needs the module {module!r}{of_package}, which cannot be imported on "
        f"{socket.gethostname()}\n"
        f"  install it for the workers' Python, or put its folder on the import path there "
        f"(runtime_env={{'working_dir': ...}}), or define what is used in the launching script"
    )
