"""Batches that functions are given, and the blocks that are made of what they return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from troupe.data import _blocks


class HandedBatch:
    """A batch for a function, which knows the columns that it was made of.

    A column that comes back as it was given is Arrow's own again: NumPy and pandas have no nulls
    among integers, time zones, decimals of a precision and the like, which would be lost on their
    way through a function that does not touch them.
    """

    def __init__(self, table: pa.Table, batch_format: str, *, zero_copy: bool = True) -> None:
        self.batch = _blocks.batch_of(table, batch_format)
        if not zero_copy and batch_format == "numpy":
            self.batch = {name: column.copy() for name, column in self.batch.items()}
        self._table = table
        self._arrays = (
            {id(array): (index, array) for index, array in enumerate(self.batch.values())}
            if batch_format == "numpy"
            else {}
        )
        self._as_pandas: Any = None

    def block_of(self, returned: Any) -> pa.Table:
        """Return the block of what the function returned. Raises NoBatch."""
        if isinstance(returned, Mapping):
            return _blocks.table_of(
                [self._column(values, name) for name, values in returned.items()]
            )
        if _blocks.is_frame(returned):
            return _blocks.table_of(
                [self._series(returned[name], str(name)) for name in returned.columns]
            )
        return _blocks.table_of_batch(returned)

    def _column(self, values: Any, name: Any) -> tuple[Any, pa.Field]:
        if not isinstance(name, str):
            raise _blocks.NoBatch(f"a column's name is {name!r}, where a text is wanted")
        index, array = self._arrays.get(id(values), (0, None))
        if array is not None and array is values:
            field, column = self._table.schema.field(index), self._table.column(index)
            if (
                _is_frozen(array)
                or not _is_exact(field.type)
                and is_same(array, _blocks.numpy_of(column, field))
            ):
                return column, field.with_name(name)
        return _blocks.column_of(values, name, _blocks.field_of(self._table.schema, name))

    def _series(self, series: Any, name: str) -> tuple[Any, pa.Field]:
        field = _blocks.field_of(self._table.schema, name)
        if field is None or len(series) != self._table.num_rows or series.ndim != 1:
            return _blocks.series_column(series, name, field)
        whole = pa.types.is_integer(field.type) and not self._table.column(name).null_count
        if not whole and not _is_exact(field.type):
            if self._as_pandas is None:
                self._as_pandas = _blocks.pandas_of(self._table)
            given = self._as_pandas[name]
            if series.dtype == given.dtype and is_same(series.to_numpy(), given.to_numpy()):
                return self._table.column(name), field
        return _blocks.series_column(series, name, field)


def _is_frozen(array: np.ndarray) -> bool:
    """Return True for a view of a block's memory, which no function can have changed."""
    return array.dtype != object and not array.flags.writeable


def _is_exact(kind: pa.DataType) -> bool:
    """Return True if a column of this type is made again of its values in NumPy without a loss."""
    found: bool = (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )
    return found


def is_same(one: Any, other: Any) -> bool:
    """Return True if the values, and all that are in them, are of one type and equal; NaN is equal
    to NaN, and no zero to a negative one."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        return (
            all(map(is_same, one.flat, other.flat))
            if one.dtype == object
            else one.tobytes() == other.tobytes()
        )
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(map(is_same, one.values(), other.values()))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float):
        return bool(one.hex() == other.hex())
    return one is other or bool(one == other) or bool(one != one and other != other)
