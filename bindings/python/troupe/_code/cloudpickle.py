"""cloudpickle, but code keeps the name of its file: an error's traceback says where it was, on
every host.

cloudpickle 3.1.3 began to write "<dynamic-code>" instead, so that the bytes of one function are the
same wherever it is defined; who reads a traceback then sees neither file nor source line.
"""

from __future__ import annotations

import io
import sys
import types
from collections import ChainMap
from collections.abc import Callable
from typing import Any

import cloudpickle

from troupe import _pickled
from troupe._base.exception_pickles import reduced
from troupe._code import arrays, tensors, user_main

_NO_FILE = "<dynamic-code>"


def _reduce_code(code: types.CodeType) -> tuple[Any, ...]:
    make, args, *more = cloudpickle.Pickler.dispatch_table[types.CodeType](code)
    named = tuple(
        code.co_filename if type(each) is str and each == _NO_FILE else each for each in args
    )
    return make, named, *more


def _inside_an_actor_class(thing: Any) -> bool:
    """Return True if `thing` is reached by its name through an actor class only, as methods are:
    such classes and their methods are pickled by value."""
    outer, dot, _ = thing.__qualname__.partition(".")
    found = getattr(sys.modules.get(thing.__module__), outer, None) if dot else None
    return found is not None and hasattr(type(found), "_shows_its_class")


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """The pickler of functions and classes; takes the arguments of cloudpickle.Pickler."""

    dispatch_table = ChainMap({types.CodeType: _reduce_code}, cloudpickle.Pickler.dispatch_table)

    def __init__(
        self,
        file: Any,
        protocol: int | None = None,
        buffer_callback: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(file, protocol=protocol, buffer_callback=buffer_callback)
        self._apart = buffer_callback is not None

    def _dynamic_function_reduce(self, func: types.FunctionType) -> tuple[Any, ...]:
        """A function of the script is, where it arrives, among its own globals by its name: plain
        pickle looks for it there."""
        reduced = super()._dynamic_function_reduce(func)
        if func.__module__ not in user_main.NAMES:
            found: tuple[Any, ...] = reduced
            return found
        if func.__globals__.get(func.__name__) is func:
            reduced[2][1]["__globals__"][func.__name__] = func
        return _pickled.function, *reduced[1:]

    def reducer_override(self, obj: Any) -> Any:
        """See pickle.Pickler: exceptions travel whatever their constructors take."""
        if isinstance(obj, BaseException):
            return reduced(obj)
        if isinstance(obj, (types.FunctionType, type)) and _inside_an_actor_class(obj):
            if isinstance(obj, type):
                return cloudpickle.cloudpickle._dynamic_class_reduce(obj)
            return self._dynamic_function_reduce(obj)
        if tensors.is_storage(obj):
            return tensors.reduce_storage(obj)
        if arrays.is_array(obj):
            return arrays.reduced_alone(obj, self.dispatch_table, self._apart)
        return super().reducer_override(obj)


def dumps(
    value: Any, protocol: int = 5, buffer_callback: Callable[[Any], Any] | None = None
) -> bytes:
    """The pickle of a value with its functions, classes and their files' names.

    Raises what cloudpickle.dumps does.
    """
    with io.BytesIO() as sink:
        Pickler(sink, protocol=protocol, buffer_callback=buffer_callback).dump(value)
        return sink.getvalue()
