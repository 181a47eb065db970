"""Columns: Arrow arrays made of what functions return, and NumPy arrays made of Arrow's.

Lists, structs and maps stay Arrow's own. A column of arrays of one shape is Arrow's fixed-shape
tensor; one of arrays of several shapes and at least two dimensions, images say, a struct of bytes
and shape with a mark of ours in the field's metadata.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

RAGGED = {b"troupe.data": b"arrays"}
"""Metadata of a field of arrays of several shapes."""
_NUMBERS = "biuf"
REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""Types of exceptions that pyarrow raises for values it has no column for."""


class NoBatch(TypeError):
    """The TypeError for a function's result that is not a batch; the text says what it is."""


def is_ragged(field: pa.Field) -> bool:
    """Return True for a column of arrays of several shapes."""
    return bool(field.metadata) and field.metadata.get(b"troupe.data") == b"arrays"


def is_special(field: pa.Field) -> bool:
    """Return True for a column whose values are NumPy arrays in rows and DataFrames, too."""
    return is_ragged(field) or isinstance(field.type, pa.FixedShapeTensorType)


def one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the column in one piece, copied only where it is in several."""
    if isinstance(column, pa.Array):
        return column
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else column.combine_chunks()
        if column.num_chunks
        else pa.array([], column.type)
    )


def objects(values: Sequence[Any]) -> np.ndarray:
    """Return an array of objects, one for each value, whatever the values are."""
    found: np.ndarray = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        found[index] = value
    return found


def numpy_of(column: pa.ChunkedArray | pa.Array, field: pa.Field) -> np.ndarray:
    """Return the column as Ray does: a read-only view where its memory is one of numbers without
    nulls, else a copy; lists are an array of arrays."""
    array = one_chunk(column)
    if isinstance(array.type, pa.FixedShapeTensorType):
        return _tensors_of(array)
    if is_ragged(field):
        return _ragged_arrays(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if (
        pa.types.is_fixed_size_list(array.type)
        and not array.null_count
        and pa.types.is_primitive(array.type.value_type)
    ):
        return numpy_of(array.flatten(), field).reshape(len(array), array.type.list_size)
    try:
        found: np.ndarray = array.to_numpy(zero_copy_only=False)
        return found
    # pyarrow has no NumPy form of lists of fixed-size binaries, nor of structs with an empty
    # dictionary
    except pa.ArrowException:
        return objects(array.to_pylist())


def _tensors_of(array: pa.Array) -> np.ndarray:
    if array.null_count:
        rows = iter(_tensors_of(array.drop_null()))
        return objects([next(rows) if there else None for there in array.is_valid().to_pylist()])
    kind = array.type
    if not len(array):
        found: np.ndarray = np.empty((0, *kind.shape), kind.value_type.to_pandas_dtype())
        return found
    if pa.types.is_boolean(kind.value_type):  # pyarrow refuses tensors of them
        found = array.storage.flatten().to_numpy(zero_copy_only=False).reshape(-1, *kind.shape)
        return found
    found = array.to_numpy_ndarray()
    return found


def _ragged_arrays(array: pa.Array) -> np.ndarray:
    """Return one array of all where they have one shape, else an array of arrays, with None for
    nulls."""
    there = array.is_valid().to_pylist()
    names, shapes, data = (array.field(name) for name in ("dtype", "shape", "data"))
    made = [
        np.frombuffer(memory.as_buffer(), name.as_py()).reshape(shape.as_py()) if valid else None
        for name, shape, memory, valid in zip(names, shapes, data, there, strict=True)
    ]
    return np.stack(made) if _are_alike(made) else objects(made)


def _are_alike(arrays: Sequence[np.ndarray | None]) -> bool:
    """Return True for arrays of one shape and type, which can be stacked."""
    return (
        bool(arrays)
        and arrays[0] is not None
        and all(
            each is not None and each.shape == arrays[0].shape and each.dtype == arrays[0].dtype
            for each in arrays
        )
    )


def column_of(
    values: Any, name: str, before: pa.Field | None = None
) -> tuple[pa.Array | pa.ChunkedArray, pa.Field]:
    """Return a column of what a function gave for it.

    Args:
        values: an array, or a list with one value for each row.
        name: the column's name.
        before: the field of that name which the function was given. Its type is kept where that of
            the values differs from it only by what NumPy and Python do not tell apart, such as the
            kinds of lists, texts and decimals.

    Raises:
        NoBatch: Arrow has no column for the values.
    """
    if _is_torch(values):
        values = values.detach().cpu().numpy()
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values, pa.field(name, values.type)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _array_column(values, name, before)
    if (
        isinstance(values, (str, bytes, Mapping))
        or not isinstance(values, Iterable)
        or isinstance(values, np.ndarray)
        and not values.ndim
    ):
        raise NoBatch(
            f"column {name!r} is {kind_of(values)}, where an array or a list with one value for "
            "each row is wanted"
        )
    listed = list(values)
    if not _has_inner(listed):
        return _listed_column(listed, name, before)
    if any(issubclass(kind, np.ndarray) or _is_torch_type(kind) for kind in set(map(type, listed))):
        listed = [_unwrapped(each) for each in listed]
        if all(each is None or isinstance(each, np.ndarray) for each in listed):
            return _arrays_column(listed, name, before)
    filled = any(isinstance(each, np.ndarray) and each.size for each in listed)
    return _listed_column([_plain(each, filled=filled) for each in listed], name, before)


def _is_torch(value: Any) -> bool:
    return _is_torch_type(type(value))


def _is_torch_type(kind: type) -> bool:
    return kind.__module__.startswith("torch") and hasattr(kind, "detach")


def _has_inner(values: Iterable[Any]) -> bool:
    """Return True if some of the values may be arrays, or have arrays in them."""
    return any(map(_is_container, set(map(type, values))))


@functools.lru_cache(maxsize=1024)
def _is_container(kind: type) -> bool:
    return issubclass(kind, (np.ndarray, Mapping, list, tuple)) or _is_torch_type(kind)


def _unwrapped(value: Any) -> Any:
    """Return torch tensors as arrays, and arrays without dimensions as the value in them."""
    if _is_torch(value):
        value = value.detach().cpu().numpy()
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


def _array_column(
    values: np.ndarray, name: str, before: pa.Field | None
) -> tuple[pa.Array, pa.Field]:
    if values.ndim == 0:
        raise NoBatch(
            f"column {name!r} is a single value, {values!r}, where an array with one value for "
            "each row is wanted"
        )
    if values.ndim == 1 or values.dtype.kind not in _NUMBERS:
        return _listed_column(values if values.ndim == 1 else _plain(values), name, before)
    if before is not None and is_ragged(before):
        return ragged_column(list(values), name)
    inner, shape = pa.array(np.ascontiguousarray(values).reshape(-1)), values.shape[1:]
    length = int(np.prod(shape, dtype=np.int64))
    kept = None if before is None else before.type
    if (
        kept is not None
        and pa.types.is_fixed_size_list(kept)
        and kept.value_type == inner.type
        and shape == (kept.list_size,)
        and length
    ):
        column: pa.Array = pa.FixedSizeListArray.from_arrays(inner, type=kept)
    elif kept is not None and _is_list(kept) and len(shape) == 1 and kept.value_type == inner.type:
        return _listed_column(_plain(values), name, before)
    else:
        kind = pa.fixed_shape_tensor(inner.type, shape)
        storage = (
            pa.FixedSizeListArray.from_arrays(inner, length)
            if len(inner)
            else pa.array([[]] * len(values), kind.storage_type)
        )
        column = pa.ExtensionArray.from_storage(kind, storage)
    return column, pa.field(name, column.type)


def _arrays_column(
    arrays: Sequence[np.ndarray | None], name: str, before: pa.Field | None
) -> tuple[pa.Array | pa.ChunkedArray, pa.Field]:
    """Return a column of arrays, some of which may be missing."""
    there = [each for each in arrays if each is not None]
    filled = any(each.size for each in there)
    kind = None if before is None else before.type
    if (
        kind is not None
        and _is_list(kind)
        or not all(each.dtype.kind in _NUMBERS for each in there)
    ):
        return _listed_column([_plain(each, filled=filled) for each in arrays], name, before)
    if _are_alike(arrays):
        return _array_column(np.stack(arrays), name, before)
    if (
        isinstance(kind, pa.FixedShapeTensorType)
        and kind.permutation is None
        and all(
            list(each.shape) == list(kind.shape)
            and pa.from_numpy_dtype(each.dtype) == kind.value_type
            for each in there
        )
    ):
        storage = pa.array(
            [None if each is None else each.reshape(-1) for each in arrays], kind.storage_type
        )
        return pa.ExtensionArray.from_storage(kind, storage), pa.field(name, kind)
    if before is not None and is_ragged(before) or any(each.ndim > 1 for each in there):
        return ragged_column(arrays, name)
    return _listed_column([_plain(each, filled=filled) for each in arrays], name, before)


def ragged_column(arrays: Sequence[np.ndarray | None], name: str) -> tuple[pa.Array, pa.Field]:
    """Return a column of arrays of numbers that have several shapes; None is a null."""
    column = pa.StructArray.from_arrays(
        [
            pa.array([None if each is None else each.dtype.str for each in arrays], pa.string()),
            pa.array(
                [None if each is None else list(each.shape) for each in arrays],
                pa.list_(pa.int64()),
            ),
            pa.array(
                [None if each is None else np.ascontiguousarray(each).tobytes() for each in arrays],
                pa.large_binary(),
            ),
        ],
        ["dtype", "shape", "data"],
        mask=pa.array([each is None for each in arrays], pa.bool_()),
    )
    return column, pa.field(name, column.type, metadata=RAGGED)


def _listed_column(
    values: Any, name: str, before: pa.Field | None
) -> tuple[pa.Array | pa.ChunkedArray, pa.Field]:
    """Return a column of values as `_plain` leaves them: the type is what Arrow infers, or `before`
    where that differs in nothing that they tell."""
    try:
        column = pa.array(values)
    except REFUSED as error:
        made = (
            _made(values, before.type)
            if before is not None and pa.types.is_nested(before.type)
            else None
        )
        if made is None:
            kinds = sorted({type(each).__name__ for each in values})
            raise NoBatch(
                f"column {name!r} has values of {', '.join(kinds)}, which Arrow has no column for: "
                f"{error}"
            ) from None
        column = made
    if before is not None:
        column = as_before(column, before.type, values)
    return column, pa.field(name, column.type)


def _plain(value: Any, *, filled: bool = False) -> Any:
    """Return the value with arrays in it as pyarrow takes them: of one dimension, or lists of
    these. `filled`: others tell the type of an empty one."""
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value)) if _has_inner(value) else value
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and value.dtype != object:
            return (
                value.tolist()
                if value.dtype == "datetime64[D]" or filled and not value.size
                else value
            )
        return [_plain(each) for each in value] if value.ndim else value[()]
    if isinstance(value, Mapping):
        return (
            {key: _plain(each) for key, each in value.items()}
            if _has_inner(value.values())
            else value
        )
    return _unwrapped(value)


def as_before(column: Any, before: pa.DataType, values: Any = None) -> Any:
    """Return the column with the type `before` where that differs in nothing that its values tell,
    else as it is.

    It is made of the `values` again, where they are given: what was inferred may have lost
    nanoseconds.
    """
    if column.type == before or not _fits(column.type, before):
        return column
    made = None if values is None else _made(values, before)
    if made is not None:
        return made
    try:
        return column.cast(before)
    except REFUSED:
        again = _made(column.to_pylist(), before)
        return column if again is None else again


def _made(values: Any, kind: pa.DataType) -> Any:
    try:
        return pa.array(values, kind)
    except REFUSED:
        return None


def _is_list(kind: pa.DataType) -> bool:
    found: bool = (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )
    return found


def _is_text(kind: pa.DataType) -> bool:
    found: bool = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
    return found


def _is_bytes(kind: pa.DataType) -> bool:
    found: bool = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    return found


def _fits(inferred: pa.DataType, before: pa.DataType) -> bool:
    """Return True where values of type `inferred` are what those of type `before` look like in
    NumPy or Python. It depends on types alone, so that all blocks of a dataset are treated alike.
    """
    if inferred == before or pa.types.is_null(inferred):
        return True
    if pa.types.is_dictionary(inferred):
        return _fits(inferred.value_type, before)
    if pa.types.is_dictionary(before):
        return _fits(inferred, before.value_type)
    for alike in (_is_text, _is_bytes, pa.types.is_decimal):
        if alike(before):
            return alike(inferred)
    if pa.types.is_map(before):
        return _is_list(inferred)
    if _is_list(before) or pa.types.is_fixed_size_list(before):
        return (_is_list(inferred) or pa.types.is_fixed_size_list(inferred)) and _fits(
            inferred.value_type, before.value_type
        )
    if pa.types.is_struct(before):
        there = {field.name: field.type for field in before}
        return pa.types.is_struct(inferred) and all(
            field.name in there and _fits(field.type, there[field.name]) for field in inferred
        )
    if pa.types.is_timestamp(before):
        return (
            pa.types.is_timestamp(inferred)
            and (inferred.unit == before.unit or before.unit == "ns")
            and (inferred.tz is None or before.tz is not None)
        )
    if pa.types.is_duration(before):
        found: bool = pa.types.is_duration(inferred) and before.unit == "ns"
        return found
    found = pa.types.is_date64(before) and inferred == pa.timestamp("ms")
    return found


def made_alike(
    columns: Sequence[pa.ChunkedArray], fields: Sequence[pa.Field]
) -> list[tuple[pa.Array | pa.ChunkedArray, pa.Field]]:
    """Return columns of arrays, of which each block has made what its own shapes allow, as columns
    of one type: of arrays of several shapes, or of lists.

    Raises:
        pyarrow.ArrowInvalid: they are not all columns of arrays of numbers.
    """
    tensors = [field for field in fields if isinstance(field.type, pa.FixedShapeTensorType)]
    inner = {field.type.value_type for field in fields if field in tensors or _is_list(field.type)}
    if (
        not tensors
        and not any(map(is_ragged, fields))
        or not all(field in tensors or is_ragged(field) or _is_list(field.type) for field in fields)
    ):
        raise pa.ArrowInvalid(
            f"column {fields[0].name!r} has the types "
            f"{', '.join(sorted({str(field.type) for field in fields}))}"
        )
    arrays = [list(numpy_of(column, field)) for column, field in zip(columns, fields, strict=True)]
    if any(map(is_ragged, fields)) or any(len(field.type.shape) > 1 for field in tensors):
        return [ragged_column(each, fields[0].name) for each in arrays]
    if len(inner) > 1:
        raise pa.ArrowInvalid(
            f"column {fields[0].name!r} has arrays of {', '.join(sorted(map(str, inner)))}"
        )
    kind = pa.list_(inner.pop())
    return [(pa.array(each, kind), pa.field(fields[0].name, kind)) for each in arrays]


def kind_of(value: Any) -> str:
    """Return the value's type in words."""
    return "None" if value is None else f"a {type(value).__name__}"
