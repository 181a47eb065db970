"""Exceptions on their way to another process.

Pickle makes an exception anew by calling its class with its `args`. One whose `__init__` gives
`Exception` something else than it takes itself, as most with several parameters do, is pickled and
cannot be loaded:

    class Refused(Exception):
        def __init__(self, code, path):
            super().__init__(f"{code} for {path}")
            self.code = code
"""

from __future__ import annotations

import contextlib
import copyreg
import types
from collections.abc import Callable
from typing import Any

from troupe import _pickled

told: set[type] = set()
"""Classes that have a serializer of the user's."""

_HEAP_TYPE = 1 << 9  # flag of a class that Python code made
_of_all, _of_groups, _of_object = vars(BaseException), vars(BaseExceptionGroup), vars(object)


def dict_of(error: BaseException) -> dict[str, Any]:
    """Return the attributes of `error`, whatever its class says of `__dict__`."""
    found: dict[str, Any] = _of_all["__dict__"].__get__(error)
    return found


def made(cls: type[BaseException], like: BaseException) -> Any:
    """Build an exception of `cls` with the contents of `like`, an instance of a base of `cls`,
    without running code of that class."""
    args = _of_all["args"].__get__(like)
    given = args
    if isinstance(like, BaseExceptionGroup):
        given = _of_groups["message"].__get__(like), list(_of_groups["exceptions"].__get__(like))
    error = _new(cls, given)
    dict_of(error).update(dict_of(like))
    _of_all["args"].__set__(error, args)
    for kind in type(like).__mro__:
        _copy_members(kind, like, error)
    return error


def _plain(cls: type, name: str = "") -> type:
    """The first of its bases that is Python's own, and defines `name`."""
    return next(
        each
        for each in cls.__mro__
        if not each.__flags__ & _HEAP_TYPE and (not name or name in vars(each))
    )


def _new(cls: type[BaseException], args: tuple[Any, ...]) -> Any:
    for kind in cls.__mro__:
        if kind.__flags__ & _HEAP_TYPE or "__new__" not in vars(kind):
            continue
        try:
            return kind.__new__(cls, *args)
        # Python makes a class of several bases by the constructor of one of them alone; never by
        # MemoryError's own
        except TypeError:
            continue
    return BaseException.__new__(cls, *args)


def _copy_members(kind: type, like: BaseException, error: BaseException) -> None:
    """Copy members kept outside of `__dict__`: OSError.errno, ImportError.name, and those in
    `__slots__`."""
    if kind is BaseException or not issubclass(kind, BaseException):
        return
    for name, member in tuple(vars(kind).items()):
        if name in ("__dict__", "__weakref__") or not isinstance(
            member, types.MemberDescriptorType | types.GetSetDescriptorType
        ):
            continue
        if member is _of_all.get(name) or member is _of_object.get(
            name
        ):  # Python's own, __class__ among them, of a class made on demand
            continue
        try:
            member.__set__(error, member.__get__(like))
        except (AttributeError, TypeError):  # the member has no value, or cannot be set
            continue


class _Carried:
    """Stands for an exception in a pickle."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self._cls, self._args, *self._state = parts

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.arrived_error, (self._cls, self._args, *self._state)


def carried(error: Any) -> Any:
    """Return the object to pickle for `error`, so that it loads whatever its class does when
    created or changed; members of a group likewise. `error` itself is returned if its class says
    how it is pickled, or runs no code, or if it is no exception."""
    kind = type(error)
    if not isinstance(error, BaseException) or _says_how(kind):
        return error
    if isinstance(error, BaseExceptionGroup):
        inside = [carried(each) for each in _of_groups["exceptions"].__get__(error)]
        return _Carried(
            (
                kind,
                (_of_groups["message"].__get__(error), inside),
                {**dict_of(error), **_in_slots(error)},
            )
        )
    slots = _in_slots(error)
    if not slots and not _has_code(kind):
        return error
    cls, args, *state = vars(_plain(kind, "__reduce__"))["__reduce__"](error)
    return _Carried((cls, args, {**(state[0] or {}), **slots} if state else slots))


def reduced(error: BaseException) -> Any:
    """How a pickler is to take an exception that is part of a value; NotImplemented: as ever.

    Its attributes come last: they may name the exception itself.
    """
    stands = carried(error)
    if stands is error:
        return NotImplemented
    make, (cls, args, *state) = stands.__reduce__()
    return (
        (make, (cls, args), state[0], None, None, _pickled.error_state)
        if state and state[0]
        else (make, (cls, args))
    )


def without(error: BaseException, goes: Callable[[Any], bool]) -> Any:
    """Return a pickleable stand-in for an exception that could not be pickled: without the
    attributes that cannot be pickled, and with such arguments as text. None for one of the
    runtime's classes that are made on demand."""
    if hasattr(type(error), "_dual_of"):
        return None
    args = tuple(each if goes(each) else str(each) for each in _of_all["args"].__get__(error))
    if isinstance(error, BaseExceptionGroup):
        inside = [without(each, goes) for each in _of_groups["exceptions"].__get__(error)]
        args = _of_groups["message"].__get__(error), inside
    attributes = {**dict_of(error), **_in_slots(error)}
    return _Carried(
        (type(error), args, {name: value for name, value in attributes.items() if goes(value)})
    )


def _says_how(kind: type) -> bool:
    by_users = kind.__reduce__ is not vars(_plain(kind, "__reduce__"))["__reduce__"] or _differs(
        kind, object, "__reduce_ex__"
    )
    return by_users or kind in told or kind in copyreg.dispatch_table


def _differs(kind: type, base: type, name: str) -> bool:
    """Return whether a class has another method of that name than its base."""
    return getattr(kind, name) is not getattr(base, name)


def _in_slots(error: BaseException) -> dict[str, Any]:
    """Return the values in `__slots__` of the user's classes, which Python does not pickle."""
    found: dict[str, Any] = {}
    for kind in type(error).__mro__:
        if not kind.__flags__ & _HEAP_TYPE:
            continue
        for name, member in vars(kind).items():
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # the slot has no value
                    found.setdefault(name, member.__get__(error))
    return found


def _has_code(kind: type) -> bool:
    """Return True if user code runs when an exception of this class is created or changed."""
    plain = _plain(kind)
    return any(_differs(kind, plain, name) for name in ("__init__", "__new__", "__setattr__"))


def set_state(error: BaseException, state: dict[str, Any]) -> None:
    """The attributes of an exception that has arrived."""
    _set_state(error, state)


def arrived(
    cls: type[BaseException], args: tuple[Any, ...], state: dict[str, Any] | None = None
) -> BaseException:
    error = _of_class(cls, args)
    if _plain(cls, "__reduce__") is BaseException and not issubclass(cls, BaseExceptionGroup):
        _of_all["args"].__set__(error, args)  # not what __init__ makes of them
    if state:
        _set_state(error, state)
    return error


def _of_class(cls: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """Create an exception by calling `cls`, or bypass its constructor if that refuses `args` or
    raises."""
    try:
        return cls(*args)
    except KeyboardInterrupt:
        raise
    except BaseException:
        error = _new(cls, args)
    plain: Any = _plain(cls)
    with contextlib.suppress(Exception):  # the class takes other arguments than Python's own class
        plain.__init__(error, *args)
    found: BaseException = error
    return found


def _set_state(error: BaseException, state: dict[str, Any]) -> None:
    if type(error).__setstate__ is not BaseException.__setstate__:
        with contextlib.suppress(Exception):
            return error.__setstate__(state)
    for name, value in state.items():
        try:
            BaseException.__setattr__(error, name, value)
        except Exception:  # a property of the class that cannot be set
            dict_of(error)[name] = value
    return None


@_pickled.maker("arrived_error")
def _arrived_error(
    cls: type[BaseException], args: tuple[Any, ...], state: dict[str, Any] | None = None
) -> BaseException:
    """An exception of the user's, of a class whose `__init__` may take something else than its
    `args`."""
    return arrived(cls, args, state)


@_pickled.maker("error_state")
def _error_state(error: BaseException, state: dict[str, Any]) -> None:
    """Set the attributes of an unpickled exception, once it exists."""
    set_state(error, state)
