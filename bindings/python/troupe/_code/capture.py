"""Pickles what is to travel, within a limit, and says which variable is at fault when it cannot."""
from __future__ import annotations

import builtins
import types
from collections.abc import Iterator
from typing import Any

from troupe import exceptions

LIMIT_BYTES = 100 << 20


class _OverLimit(Exception):
    """Internal: the sink has more than it takes."""


class _Sink:
    """A file that keeps or only counts what is written, up to a limit."""

    def __init__(self, limit: int, *, keep: bool) -> None:
        self.size = 0
        self._limit = limit
        self.parts: list[bytes] | None = [] if keep else None

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.size += size
        if self.size > self._limit:
            raise _OverLimit
        if self.parts is not None:
            self.parts.append(bytes(data))
        return size


def _pickle_into(value: Any, sink: _Sink) -> None:
    from troupe._bridge import native
    from troupe._code.cloudpickle import Pickler

    native.pickling(lambda: Pickler(sink, protocol=5).dump(value))


def cloudpickled(value: Any) -> bytes:
    """The pickle of what the runtime carries where refs cannot go: TypeError for one inside it."""
    from troupe._bridge import native
    from troupe._code import cloudpickle

    return native.pickling(lambda: cloudpickle.dumps(value))


def goes(value: Any) -> bool:
    """Whether a value can be pickled so."""
    try:
        cloudpickled(value)
    except Exception:
        return False
    return True


def size_text(size: int) -> str:
    """`1.6 GiB`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def dumps(callable_: Any, args: tuple, kwargs: dict, *also: Any, what: str, limit: int = LIMIT_BYTES) -> bytes:
    """The pickle of (callable, args, kwargs, *also).

    Raises LaunchError, also an instance of the pickler's own exception, naming the variable or
    argument that is too large or cannot be pickled; `what` is how the text calls the callable.
    """
    sink = _Sink(limit, keep=True)
    try:
        _pickle_into((callable_, args, kwargs, *also), sink)
    except _OverLimit:
        raise _too_large(callable_, args, kwargs, what, limit) from None
    except Exception as error:
        raise _unpicklable(callable_, args, kwargs, what, error) from error
    return b"".join(sink.parts or ())


def captured(function: Any) -> Iterator[tuple[str, str, Any]]:
    """(how, name, value) of everything a function takes along: closure, globals, defaults."""
    function = getattr(function, "__func__", function)
    if isinstance(function, type):
        for name, member in vars(function).items():
            if isinstance(member, types.FunctionType):
                yield from captured(member)
            elif not name.startswith("__"):
                yield "captures", name, member
        return
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield "captures", name, cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    for name in sorted(_global_names(code)):
        if name in function.__globals__ and not hasattr(builtins, name):
            yield "captures", name, function.__globals__[name]
    for value in function.__defaults__ or ():
        yield "has a default value", type(value).__name__, value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield "has a default for", name, value


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def _parts(callable_: Any, args: tuple, kwargs: dict, what: str) -> Iterator[tuple[str, Any]]:
    """(words, value) of everything that would travel."""
    for how, name, value in captured(callable_):
        if not isinstance(value, types.ModuleType):
            yield f"{what} {how} `{name}`", value
    for position, value in enumerate(args, 1):
        yield f"argument {position} of {what}", value
    for name, value in kwargs.items():
        yield f"argument `{name}` of {what}", value


def _type_text(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _too_large(callable_: Any, args: tuple, kwargs: dict, what: str, limit: int) -> exceptions.TroupeError:
    largest, words, kind = -1, f"{what} and its arguments are", ""
    for text, value in _parts(callable_, args, kwargs, what):
        sink = _Sink(1 << 62, keep=False)
        try:
            _pickle_into(value, sink)
        except Exception:  # this part cannot be measured; another one is what is too large
            continue
        if sink.size > largest:
            largest, words, kind = sink.size, text, _type_text(value)
    if words.endswith("are"):
        described = f"{words} larger than {size_text(limit)} pickled"
    else:
        described = f"{words} ({kind}, {size_text(largest)} pickled; the limit is {size_text(limit)})"
    cause = exceptions.TooLargeError(described)
    return exceptions.with_type_of(
        exceptions.LaunchError, cause,
        f"cannot start: {described}\n  load it inside the function: every rank then reads its own part")


def _unpicklable(callable_: Any, args: tuple, kwargs: dict, what: str,
                 error: Exception) -> exceptions.TroupeError:
    named = f"{what} cannot be pickled"
    for text, value in _parts(callable_, args, kwargs, what):
        try:
            _pickle_into(value, _Sink(1 << 62, keep=False))
        except Exception:
            named = f"{text} ({_type_text(value)}), which cannot be pickled"
            if text.startswith("argument"):
                named = f"{text} ({_type_text(value)}) cannot be pickled"
            break
    return exceptions.with_type_of(
        exceptions.LaunchError, error,
        f"cannot start: {named}: {type(error).__name__}: {error}\n  make it inside the function instead of "
        "taking it along")
