"""A value whose tensors stay where they are: its pickle names them, and has everything else.

Which tensors: of type Tensor or Parameter, dense, on a CPU or a CUDA device, without attributes of
their own. Others go with the value, as they go with every value.

The value is pickled by itself, with a number in each tensor's place; the tensors are put there
while it is loaded. So they may be anywhere in it, and one that stands there twice is one where it
arrives.
"""

from __future__ import annotations

import io
import pickle
import sys
import threading
from collections.abc import Sequence
from typing import Any

from troupe import _pickled, exceptions
from troupe._actors import tensors
from troupe._actors.tensors import kept, server
from troupe._base.bridge import native

TENSORS_MAX = 65_536
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_loading = threading.local()


class CarriedValue:
    """A value that `method` returned, or that was given to put(), until it is pickled: once."""

    __slots__ = ("_method", "_value")

    def __init__(self, value: Any, method: str) -> None:
        self._value, self._method = value, method

    def __reduce__(self) -> tuple[Any, ...]:
        found: list[Any] = []
        buffers: list[pickle.PickleBuffer] = []
        rest = _without_tensors(self._value, found, buffers)
        if not found:
            return _pickled.plain_value, (self._value,)
        if len(found) > TENSORS_MAX:
            raise exceptions.TooLargeError(
                f"{self._method}() returned a value with {len(found)} tensors, and one may have "
                f"{TENSORS_MAX}\n"
                "  return them in parts, or make one tensor of them with torch.cat"
            )
        life = native.new_life()
        names = native.lend_life(life)
        if names is None:  # the receiver holds no refs: the tensors are sent with the value
            return _pickled.plain_value, (self._value,)
        table = server.table()
        key = table.keep(self._method, found)
        native.when_life_over(life, lambda: table.let_go_later(key))
        place = kept.Place.here().fields()
        return _pickled.value_with_tensors, (
            rest,
            tuple(buffers),
            place,
            key,
            self._method,
            [kept.spec_of(each) for each in found],
            *names,
        )


class PassedValue:
    """A received value that is passed on unchanged: its tensors stay where they are, and are
    held."""

    __slots__ = ("_fields", "_life")

    def __init__(self, fields: tuple[Any, ...], life: Any) -> None:
        self._fields, self._life = fields, life

    def __reduce__(self) -> tuple[Any, ...]:
        names = native.lend_life(self._life)
        if names is None:
            raise exceptions.ObjectLostError(
                "a value with tensors that stay in their actor cannot be passed on: nothing holds "
                "them any more, or "
                "this process has no descriptor to spare (raise `ulimit -n`)"
            )
        rest, buffers, *more = self._fields
        return _pickled.value_with_tensors, (
            rest,
            tuple(map(pickle.PickleBuffer, buffers)),
            *more,
            *names,
        )


def carried(value: Any, method: str) -> Any:
    """The value as it is to be answered; one that cannot have tensors, as it is."""
    return (
        value
        if type(value) in _PLAIN or "torch" not in sys.modules
        else CarriedValue(value, method)
    )


def loaded(rest: Any, buffers: Sequence[Any], tensors: Sequence[Any]) -> Any:
    """The value of its pickle, with these in their places."""
    before = getattr(_loading, "tensors", None)
    _loading.tensors = tensors
    try:
        return pickle.loads(rest, buffers=buffers)
    finally:
        _loading.tensors = before


def tensor_at(number: int) -> Any:
    """Return the tensor at place `number` of the value that this thread loads."""
    return _loading.tensors[number]


def _without_tensors(value: Any, found: list[Any], buffers: list[pickle.PickleBuffer]) -> bytes:
    """The value's pickle, its tensors and its arrays' memory beside it.

    Raises what pickling does.
    """
    try:
        return _dumped(_pickler(), value, found, buffers)
    except (KeyboardInterrupt, MemoryError, RecursionError):
        raise
    except (
        BaseException
        # The C pickler refuses some values (a lambda, a class of the script) that cloudpickle
        # accepts
    ):
        found.clear()
        buffers.clear()
        return _dumped(_cloud_pickler(), value, found, buffers)


def _dumped(kind: type, value: Any, found: list[Any], buffers: list[pickle.PickleBuffer]) -> bytes:
    with io.BytesIO() as sink:
        pickler = kind(sink, protocol=5, buffer_callback=buffers.append)
        pickler.found = found
        pickler.dump(value)
        return sink.getvalue()


def _whole(tensor: Any) -> bytes:
    """Pickle a tensor that is sent with the value: its storage is kept nowhere."""
    with io.BytesIO() as sink:
        native.pickler_type()(sink, protocol=5).dump(tensor)
        return sink.getvalue()


def _taking(base: type) -> type:
    """A pickler that takes tensors out."""

    class Taking(base):  # type: ignore[misc]
        found: list[Any]

        def reducer_override(self, obj: Any) -> Any:
            """See pickle.Pickler."""
            if kept.stays(obj):
                self.found.append(obj)
                return _pickled.tensor_place, (len(self.found) - 1,)
            if kept.is_tensor(obj):
                return _pickled.whole_tensor, (_whole(obj),)
            return super().reducer_override(obj)

    return Taking


_picklers: dict[str, type] = {}


def _pickler() -> type:
    made = _picklers.get("c")
    if made is None:
        made = _picklers["c"] = _taking(native.pickler_type())
    return made


def _cloud_pickler() -> type:
    made = _picklers.get("cloud")
    if made is None:
        from troupe._code import cloudpickle

        made = _picklers["cloud"] = _taking(cloudpickle.Pickler)
    return made


@_pickled.maker("plain_value")
def _plain_value(value: Any) -> Any:
    """A value of which no tensor stays where it was returned."""
    return value


@_pickled.maker("value_with_tensors")
def _value_with_tensors(
    rest: Any,
    buffers: Sequence[Any],
    place: Sequence[Any],
    key: str,
    method: str,
    specs: Sequence[tuple[Any, ...]],
    *life: Any,
) -> Any:
    """Rebuild a value whose tensors stayed in an actor's process, which sends them now; `life`
    keeps them there meanwhile."""
    from troupe._actors.tensors import fetch

    held = native.borrow_life(life)
    if tensors.are_left():
        return PassedValue((rest, buffers, place, key, method, specs), held)
    made = loaded(rest, buffers, fetch.tensors(kept.Place.of(place), key, method, specs))
    del held
    return made


@_pickled.maker("tensor_place")
def _tensor_place(number: int) -> Any:
    """In the pickle of such a value: where one of its tensors belongs."""
    return tensor_at(number)


@_pickled.maker("whole_tensor")
def _whole_tensor(data: bytes) -> Any:
    """Rebuild a tensor that cannot stay in a process: sparse, quantized, or of a class of its
    own."""
    return pickle.loads(data)
