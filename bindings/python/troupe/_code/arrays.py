"""NumPy arrays in values: their memory travels beside the pickle, and starts on 64 bytes where it
arrives."""

from __future__ import annotations

import copyreg
import pickle
import sys
from typing import Any, Literal

from troupe import _pickled
from troupe._base.bridge import native
from troupe._code.tensors import LARGE_BYTES

ALIGNED_FROM_BYTES = 1 << 10
_ALIGNMENT = 64
Order = Literal["C", "F"]


def is_array(value: Any) -> bool:
    """Return True for an instance of `numpy.ndarray` or a class derived from it.

    Does not import numpy.
    """
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, getattr(numpy, "ndarray", ()))


def reduced(array: Any, own: tuple[Any, ...], apart: bool) -> tuple[Any, ...]:
    """Return a reduction that leaves the array's memory beside the pickle.

    For arrays of which numpy's reduction `own` holds a copy: those that are not contiguous, dates,
    and classes derived from `numpy.ndarray`. The array is writable where it arrives. `own` is
    returned for arrays of objects, small ones, and classes that pickle themselves. `apart`: the
    pickler's buffers are aligned where they arrive.
    """
    state = own[2] if len(own) == 3 else None
    if (
        type(state) is not tuple
        or len(state) != 5
        or type(state[4]) is not bytes
        or len(state[4]) < ALIGNED_FROM_BYTES
    ):
        return own
    cls, ndarray = type(array), sys.modules["numpy"].ndarray
    if cls is not ndarray and not _pickles_as_numpy(cls, ndarray):
        return own
    _, shape, dtype, fortran, data = state
    order = "F" if fortran else "C"
    buffer = _buffer((array if cls is ndarray else array.view(ndarray)).copy(order))
    if len(data) >= LARGE_BYTES:
        native._take_writable(buffer)
    if apart and cls is ndarray:
        return cls, (shape, dtype, buffer, 0, None, order)
    return _pickled.array, (buffer, dtype, shape, order, cls)


def _buffer(array: Any) -> pickle.PickleBuffer:
    if array.dtype.kind in "mM":
        array = array.view("i8")  # the buffer protocol has no dates
    try:
        return pickle.PickleBuffer(array)
    except (ValueError, BufferError):  # nor what other packages add to numpy's types
        return pickle.PickleBuffer(array.reshape(-1, order="A").view("u1"))


def reduced_alone(array: Any, dispatch_table: Any, apart: bool) -> Any:
    """Return a reduction for a pickler of Python's; NotImplemented where the user has one for the
    class. `apart`: its buffers are not in the pickle."""
    if type(array) in dispatch_table or type(array) in copyreg.dispatch_table:
        return NotImplemented
    own = array.__reduce_ex__(5)
    if not isinstance(own, tuple):
        return own
    if len(own) != 2 or not own[1] or not isinstance(own[1][0], pickle.PickleBuffer):
        return reduced(array, own, apart)
    return own if apart or array.nbytes < ALIGNED_FROM_BYTES else (_pickled.array, own[1])


def made(buffer: Any, dtype: Any, shape: tuple[Any, ...], order: Order, cls: type | None) -> Any:
    """Return the array over `buffer`, or over an aligned copy of it; read-only where the buffer
    is."""
    import numpy as np

    memory = np.frombuffer(buffer, np.uint8)
    if memory.__array_interface__["data"][0] % _ALIGNMENT:
        room = np.empty(memory.nbytes + _ALIGNMENT, np.uint8)
        start = -room.__array_interface__["data"][0] % _ALIGNMENT
        aligned = room[start : start + memory.nbytes]
        aligned[:] = memory
        aligned.flags.writeable = memory.flags.writeable
        memory = aligned
    return np.ndarray.__new__(cls or np.ndarray, shape, dtype, memory, 0, None, order)


def writable(array: Any) -> Any:
    """Return a writable array over the same memory as a read-only one that came in a value, or
    None.

    None where other processes or values read that memory, and where the program itself made the
    array or its flag.
    """
    import numpy as np

    if not array.size:
        return np.empty_like(array)
    memory = array
    while isinstance(memory, np.ndarray):
        memory = memory.base
    if isinstance(memory, memoryview):
        memory = memory.obj
    alias = native._writable_memory(memory)
    if alias is None:
        return None
    start = np.frombuffer(alias, np.uint8).__array_interface__["data"][0]
    return np.ndarray(
        array.shape, array.dtype, alias, array.__array_interface__["data"][0] - start, array.strides
    )


def _pickles_as_numpy(cls: type, ndarray: type) -> bool:
    return all(
        getattr(cls, name) is getattr(ndarray, name)
        for name in ("__reduce__", "__reduce_ex__", "__setstate__")
    )


@_pickled.maker("array")
def _array(
    buffer: Any, dtype: Any, shape: tuple[Any, ...], order: Order = "C", cls: type | None = None
) -> Any:
    """A NumPy array over a buffer, whose memory starts on 64 bytes."""
    return made(buffer, dtype, shape, order, cls)
