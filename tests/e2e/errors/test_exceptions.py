"""Exceptions of every kind are caught by their own type, with their attributes, wherever they come
from.

Method: every exception class that Python has, a subclass of each, and classes of every shape a
program may give one, are raised by a task, a method, a constructor and a launch, and put as plain
values; what arrives is compared with what was made.
"""

from __future__ import annotations

import abc
import asyncio
import builtins
import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Home

import troupe
from troupe import exceptions
from troupe.launch import distributed

WITHIN_S = 120.0
ENDS = (SystemExit, KeyboardInterrupt)
"""Not exceptions of calls: they end a process, or a call (tests/e2e/ends/test_sys_exit.py)."""


def of_python(kind: type[BaseException] = BaseException) -> Iterator[type[BaseException]]:
    """All that Python has."""
    yield kind
    for each in kind.__subclasses__():
        if each.__module__ == "builtins" and getattr(builtins, each.__name__, None) is each:
            yield from of_python(each)


def made(kind: type[BaseException]) -> BaseException:
    """Build an instance of a class of Python's, or below it, with something in every attribute."""
    if issubclass(kind, BaseExceptionGroup):
        return kind("several", [ValueError(1), KeyError("k")])
    if issubclass(kind, UnicodeTranslateError):
        return kind("text", 0, 1, "why")
    if issubclass(kind, UnicodeDecodeError | UnicodeEncodeError):
        return kind(
            "utf8", b"text" if issubclass(kind, UnicodeDecodeError) else "text", 0, 1, "why"
        )
    if issubclass(kind, OSError):
        return kind(11, "busy", "file.txt")
    if issubclass(kind, SyntaxError):
        return kind("bad", ("file.py", 3, 4, "text"))
    if issubclass(kind, ImportError):
        return kind("none", name="module", path="path")
    return kind("what")


KINDS = [each for each in dict.fromkeys(of_python()) if not issubclass(each, ENDS)]


def seen(error: BaseException) -> dict[str, Any]:
    """Return the visible parts of an exception of Python's: its args and members."""
    names = (
        "args",
        "errno",
        "strerror",
        "filename",
        "msg",
        "lineno",
        "text",
        "name",
        "path",
        "object",
        "reason",
        "start",
        "value",
        "message",
        "exceptions",
        "note",
    )
    return {name: repr(getattr(error, name)) for name in names if hasattr(error, name)}


@troupe.remote(max_retries=0)
def raises(kind: type[BaseException], make: Callable = made) -> None:
    """A task."""
    error = make(kind)
    vars(error)["note"] = "an attribute"
    raise error


@troupe.remote(num_cpus=0)
class Raising:
    """An actor."""

    def __init__(self, kind: type[BaseException] | None = None) -> None:
        if kind is not None:
            raise of_shape(kind)

    def call(self, kind: type[BaseException], make: Callable = made) -> None:
        error = make(kind)
        vars(error)["note"] = "an attribute"
        raise error

    def back(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize("derived", [False, True], ids=["python's", "derived"])
def test_all_that_python_has_come_as_what_they_are(idle: Home, derived: bool) -> None:
    kinds = (
        [type(f"Own{kind.__name__}", (kind,), {"__module__": __name__}) for kind in KINDS]
        if derived
        else KINDS
    )
    actor = Raising.remote()
    wrong = []
    for kind in kinds:
        was = made(kind)
        was.note = "an attribute"  # type: ignore[attr-defined]
        for ref in (raises.remote(kind), actor.call.remote(kind)):
            try:
                troupe.get(ref, timeout=WITHIN_S)
            except kind as error:
                if not isinstance(error, exceptions.TaskError) or seen(error) != seen(was):
                    wrong.append((kind.__name__, seen(error), seen(was)))
            except BaseException as error:  # noqa: BLE001
                wrong.append((kind.__name__, type(error), ""))
        value = troupe.get(actor.back.remote(was), timeout=WITHIN_S)
        if type(value) is not type(was) or seen(value) != seen(was):
            wrong.append((kind.__name__, "as a value", seen(value)))
    assert not wrong, "\n".join(map(str, wrong))


class ReadOnlyArgs(Exception):
    @property
    def args(self) -> tuple:  # type: ignore[override]
        return ("fixed",)


class InSlots(Exception):
    __slots__ = ("code", "path")

    def __init__(self, code: int, path: str) -> None:
        super().__init__(f"{code} at {path}")
        self.code, self.path = code, path


class Virtual(Exception, metaclass=abc.ABCMeta):
    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


Virtual.register(exceptions.TroupeError)


class KeywordsOnly(Exception):
    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class NoSuper(Exception):
    def __init__(self, code: int, path: str) -> None:
        self.code = code


class OwnNew(Exception):
    def __new__(cls, code: int, extra: str) -> OwnNew:
        error = super().__new__(cls)
        error.code = code
        return error

    def __init__(self, code: int, extra: str) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int
    path: str


class SeveralBases(KeyError, OSError):
    code = 4


class Basic(BaseException):
    def __init__(self, code: int, path: str) -> None:
        super().__init__(path)
        self.code = code


class OwnGroup(ExceptionGroup):
    def __new__(cls, errors: list[Exception], code: int) -> OwnGroup:
        error = super().__new__(cls, "own", errors)
        error.code = code
        return error

    def derive(self, errors: Any) -> OwnGroup:
        return OwnGroup(errors, self.code)


class Circular(Exception):
    def __init__(self, code: int, path: str) -> None:
        super().__init__(path)
        self.code, self.itself = code, self


SHAPES: dict[type[BaseException], Callable[[], BaseException]] = {
    ReadOnlyArgs: lambda: with_code(ReadOnlyArgs("x")),
    InSlots: lambda: InSlots(4, "p"),
    Virtual: lambda: Virtual(4),
    KeywordsOnly: lambda: KeywordsOnly(code=4),
    NoSuper: lambda: NoSuper(4, "p"),
    OwnNew: lambda: OwnNew(4, "p"),
    Frozen: lambda: Frozen(4, "p"),
    SeveralBases: lambda: SeveralBases(2, "none"),
    Basic: lambda: Basic(4, "p"),
    Circular: lambda: Circular(4, "p"),
    OwnGroup: lambda: OwnGroup([ValueError(1), InSlots(5, "q")], 4),
    GeneratorExit: lambda: with_code(GeneratorExit("x")),
    asyncio.CancelledError: lambda: with_code(asyncio.CancelledError("x")),
    Exception: lambda: with_code(Exception("x", 1)),
}


def with_code(error: Any) -> Any:
    """The error with an attribute that its class does not know of."""
    error.code = 4
    return error


def of_shape(kind: type[BaseException]) -> BaseException:
    """Build an instance of one of SHAPES."""
    return SHAPES[kind]()


def check(error: Any, kind: type[BaseException]) -> None:
    """Check that the exception equals the original."""
    was = of_shape(kind)
    assert error.code == 4
    if not isinstance(was, OwnGroup):
        assert repr(BaseException.args.__get__(error)) == repr(BaseException.args.__get__(was))
    else:
        assert [type(each) for each in error.exceptions] == [
            ValueError,
            InSlots,
        ] and error.exceptions[1].code == 5
        assert error.split(ValueError)[0].exceptions[0].args == (1,)


@pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: kind.__name__)
def test_classes_of_every_shape_come_as_what_they_are(
    idle: Home, kind: type[BaseException]
) -> None:
    actor, dead = Raising.remote(), Raising.remote(kind)
    for ref, base in (
        (raises.remote(kind, of_shape), exceptions.TaskError),
        (actor.call.remote(kind, of_shape), exceptions.TaskError),
        (dead.back.remote(1), exceptions.ActorDiedError),
    ):
        with pytest.raises(kind) as caught:
            troupe.get(ref, timeout=WITHIN_S)
        assert isinstance(caught.value, base) and any(
            f"raise {each}" in str(caught.value) for each in ("of_shape", "error")
        ), str(caught.value)
        check(caught.value, kind)
    for ref in (
        troupe.put(of_shape(kind)),
        actor.back.remote(of_shape(kind)),
        actor.back.remote([{"in": of_shape(kind)}]),
    ):
        value = troupe.get(ref, timeout=WITHIN_S)
        value = value[0]["in"] if isinstance(value, list) else value
        assert type(value) is kind
        check(value, kind)
        if kind is Circular:
            assert value.itself is value


@pytest.mark.parametrize(
    "kind", [Virtual, SeveralBases, Basic, OwnGroup, Exception], ids=lambda kind: kind.__name__
)
def test_they_come_out_of_launches_too(idle: Home, kind: type[BaseException]) -> None:
    @distributed(processes=1)
    def job() -> None:
        raise of_shape(kind)

    with pytest.raises(kind) as caught:
        job.distributed()
    assert isinstance(caught.value, exceptions.LaunchError)
    check(caught.value, kind)


@pytest.mark.parametrize(
    "kind",
    [Basic, GeneratorExit, asyncio.CancelledError, StopIteration],
    ids=lambda kind: kind.__name__,
)
def test_awaiting_one_that_asyncio_takes_for_its_own_is_an_error_like_others(
    idle: Home, kind: type[BaseException]
) -> None:
    async def awaits() -> str:
        try:
            await raises.remote(kind, of_shape if kind in SHAPES else made)
        except exceptions.TaskError as error:
            return str(error)
        return "nothing"

    assert (
        f"raised {'asyncio.exceptions.' if kind is asyncio.CancelledError else ''}"
        in asyncio.run(asyncio.wait_for(awaits(), WITHIN_S))
    )


class NotLoaded(Exception):
    """An exception that cannot be unpickled."""

    def __reduce__(self) -> tuple:
        return divmod, (1, 0)


class WithLock(Exception):
    """An exception with a value that cannot be pickled."""

    def __init__(self, code: int) -> None:
        super().__init__("locked")
        self.lock, self.code = threading.Lock(), code


def test_one_that_cannot_be_loaded_says_so(idle: Home) -> None:
    with pytest.raises(
        exceptions.UnserializableException, match="raised .*NotLoaded: gone"
    ) as caught:
        troupe.get(raises.remote(None, lambda _: NotLoaded("gone")), timeout=WITHIN_S)
    assert isinstance(caught.value, exceptions.TaskError)

    @troupe.remote(max_retries=0)
    def passes_on() -> None:
        troupe.get(raises.remote(None, lambda _: NotLoaded("gone")), timeout=WITHIN_S)

    with pytest.raises(exceptions.UnserializableException, match="gone"):
        troupe.get(passes_on.remote(), timeout=WITHIN_S)


def test_what_of_one_can_travel_does(idle: Home) -> None:
    with pytest.raises(WithLock) as caught:
        troupe.get(raises.remote(None, lambda _: WithLock(4)), timeout=WITHIN_S)
    assert caught.value.code == 4 and caught.value.args == ("locked",)
