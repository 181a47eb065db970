"""Pickles what is to travel, within a limit, and says which variable is at fault when it cannot."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from troupe import exceptions
from troupe._code import closures
from troupe._code.closures import captured

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
    from troupe._base.bridge import native
    from troupe._code.cloudpickle import Pickler

    native.pickling(lambda: Pickler(sink, protocol=5).dump(value))


def cloudpickled(value: Any) -> bytes:
    """The pickle of what the runtime carries where refs cannot go: TypeError for one inside it."""
    from troupe._base.bridge import native
    from troupe._code import cloudpickle

    found: bytes = native.pickling(lambda: cloudpickle.dumps(value))
    return found


def goes(value: Any) -> bool:
    """Return True if `value` can be pickled by `cloudpickled`."""
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


def dumps(
    callable_: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *also: Any,
    what: str,
    limit: int = LIMIT_BYTES,
) -> bytes:
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


def _parts(
    callable_: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str
) -> Iterator[tuple[str, str, Any]]:
    """(words, name, value) of everything that would travel."""
    for how, name, value in captured(callable_):
        if not isinstance(value, types.ModuleType):
            yield f"{what} {how} `{name}`", name, value
    for position, value in enumerate(args, 1):
        yield f"argument {position} of {what}", f"argument {position}", value
    for name, value in kwargs.items():
        yield f"argument `{name}` of {what}", name, value


def _type_text(value: Any) -> str:
    kind = type(value)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def size_of(value: Any) -> int:
    """Return the size of the pickle in bytes; -1 if it cannot be pickled."""
    sink = _Sink(1 << 62, keep=False)
    try:
        _pickle_into(value, sink)
    except Exception:
        return -1
    return sink.size


def _way_to(
    words: str, name: str, value: Any, at_fault: Callable[[Any, Any], bool]
) -> tuple[str, Any]:
    """(words, part): what of a captured value or an argument is at fault itself, with the way to it
    where it lies inside."""
    way, part = closures.locate(name, value, at_fault)
    return (words if way == name else f"{words}, and in it {way}"), part


class _MostOf:
    """A search that finds the part which makes up most of a value, starting with a whole of this
    size."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, part: Any, whole: Any) -> bool:
        size = size_of(part)
        if size * 2 <= self.size:
            return False
        self.size = size
        return True


def _too_large(
    callable_: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str, limit: int
) -> exceptions.TroupeError:
    sized = [
        (size, *each)
        for each in _parts(callable_, args, kwargs, what)
        if (size := size_of(each[2])) >= 0
    ]
    described = f"{what} and its arguments are larger than {size_text(limit)} pickled"
    if sized:
        size, words, name, value = max(sized, key=lambda each: each[0])
        inside = _MostOf(size)
        words, part = _way_to(words, name, value, inside)
        described = (
            f"{words} ({_type_text(part)}, {size_text(inside.size)} pickled; the limit is "
            f"{size_text(limit)})"
        )
    cause = exceptions.TooLargeError(described)
    return exceptions.with_type_of(
        exceptions.LaunchError,
        cause,
        f"cannot start: {described}\n  load it inside the function: every rank then reads its own "
        "part",
    )


def _cannot_go(part: Any, whole: Any) -> bool:
    return size_of(part) < 0


def _unpicklable(
    callable_: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str, error: Exception
) -> exceptions.TroupeError:
    named = f"{what} cannot be pickled"
    for words, name, value in _parts(callable_, args, kwargs, what):
        if size_of(value) < 0:
            text, part = _way_to(words, name, value, _cannot_go)
            named = (
                f"{text} "
                f"({_type_text(part)}){'' if words.startswith('argument') else ', which'} "
                "cannot be pickled"
            )
            break
    return exceptions.with_type_of(
        exceptions.LaunchError,
        error,
        f"cannot start: {named}: {type(error).__name__}: {error}\n  make it inside the function "
        "instead of "
        "taking it along",
    )


def unpicklable_part(name: str, value: Any) -> str:
    """`result['log'] (_io.TextIOWrapper)`: what of a value, which is called `name`, cannot be
    pickled itself."""
    way, part = closures.locate(name, value, _cannot_go)
    return f"{way} ({_type_text(part)})"
