"""Exceptions on their way to another process.

Pickle makes an exception anew by calling its class with its `args`. One whose `__init__` gives `Exception` something else than it
takes itself, as most with several parameters do, is pickled and cannot be loaded:

    class Refused(Exception):
        def __init__(self, code, path):
            super().__init__(f"{code} for {path}")
            self.code = code
"""
from __future__ import annotations

import copyreg
import types
from typing import Any

from troupe import _pickled

told: set[type] = set()
"""Classes that have a serializer of the user's."""


class _Carried:
    """Stands for an exception in a pickle."""

    def __init__(self, parts: tuple) -> None:
        self._cls, self._args, *self._state = parts

    def __reduce__(self) -> tuple:
        return _pickled.arrived_error, (self._cls, self._args), *self._state


def carried(error: Any) -> Any:
    """What to pickle for `error`, so that it loads without its `__init__` where that does not take its `args`; of a group each
    in it as well. Itself where its class says how it is pickled, or has no `__init__` of its own; also what is no exception."""
    kind = type(error)
    if not isinstance(error, BaseException) or _says_how(kind):
        return error
    if isinstance(error, BaseExceptionGroup):
        return _Carried((kind, (error.message, [carried(each) for each in error.exceptions]), vars(error)))
    return _Carried(error.__reduce__()) if isinstance(kind.__init__, types.FunctionType) else error


def without_what_cannot_be(error: BaseException) -> Any:
    """The same for an exception that could not be pickled: less the attributes that cannot be, with the texts of such arguments.
    None for one of the runtime's classes that are made on demand."""
    if hasattr(type(error), "_dual_of"):
        return None
    args = tuple(each if _goes(each) else str(each) for each in error.args)
    if isinstance(error, BaseExceptionGroup):
        args = error.message, [without_what_cannot_be(each) for each in error.exceptions]
    return _Carried((type(error), args, {name: value for name, value in vars(error).items() if _goes(value)}))


def _says_how(kind: type) -> bool:
    plain = kind.__reduce__ is BaseException.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__
    return not plain or kind in told or kind in copyreg.dispatch_table


def _goes(value: Any) -> bool:
    from troupe._capture import cloudpickled

    try:
        cloudpickled(value)
    except Exception:
        return False
    return True


_arrived = _pickled.arrived_error  # by this name older pickles know it
