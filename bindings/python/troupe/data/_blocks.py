"""Blocks: pyarrow Tables, and what batches, rows and columns look like in numpy and pandas.

A column of arrays of one shape is Arrow's fixed-shape tensor; one of arrays of several shapes, images say, a struct of bytes and shape
with a mark of ours in the field's metadata.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

RAGGED = {b"troupe.data": b"arrays"}
"""Metadata of a field of arrays of several shapes."""
FORMATS = ("numpy", "pandas", "pyarrow")


class NoBatch(TypeError):
    """What a function returned is no batch; the text says what it is."""


def format_of(given: Any, what: str) -> str:
    """The batch format by its name. Raises ValueError naming those there are."""
    if given in ("default", None):
        return "numpy"
    if given not in FORMATS:
        raise ValueError(f"{what}(batch_format={given!r}): there are 'numpy' (the default), 'pandas' and 'pyarrow'")
    return given


def is_ragged(field: pa.Field) -> bool:
    """Whether it is a column of arrays of several shapes."""
    return bool(field.metadata) and field.metadata.get(b"troupe.data") == b"arrays"


def one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column in one piece, copied only where it is in several."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() if column.num_chunks else pa.array([], column.type)


def numpy_of(column: pa.ChunkedArray | pa.Array, field: pa.Field) -> np.ndarray:
    """The column as an array: a read-only view where its memory is one of numbers without nulls, else a copy."""
    array = one_chunk(column)
    if isinstance(array.type, pa.FixedShapeTensorType):
        return array.to_numpy_ndarray() if len(array) else np.empty((0, *array.type.shape), array.type.value_type.to_pandas_dtype())
    if is_ragged(field):
        return _ragged_arrays(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_fixed_size_list(array.type) and not array.null_count and pa.types.is_primitive(array.type.value_type):
        return numpy_of(array.flatten(), field).reshape(len(array), array.type.list_size)
    return array.to_numpy(zero_copy_only=False)


def _ragged_arrays(array: pa.Array) -> np.ndarray:
    """One array of all where they have one shape, else an array of arrays."""
    names, shapes, data = (array.field(name) for name in ("dtype", "shape", "data"))
    made = [np.frombuffer(memory.as_buffer(), name.as_py()).reshape(shape.as_py()) for name, shape, memory in zip(names, shapes, data, strict=True)]
    if made and all(each.shape == made[0].shape and each.dtype == made[0].dtype for each in made):
        return np.stack(made)
    found = np.empty(len(made), dtype=object)
    found[:] = made
    return found


def column_of(values: Any, name: str) -> tuple[pa.Array | pa.ChunkedArray, pa.Field]:
    """A column of what a function gave for it. Raises NoBatch for what is none."""
    if type(values).__module__.partition(".")[0] == "torch":
        values = values.detach().cpu().numpy()
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values, pa.field(name, values.type)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _array_column(values, name)
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise NoBatch(f"column {name!r} is {_kind(values)}, where an array or a list with one value for each row is wanted")
    listed = list(values)
    if any(isinstance(each, np.ndarray) and each.ndim or type(each).__module__.partition(".")[0] == "torch" for each in listed):
        return _arrays_column([each.detach().cpu().numpy() if hasattr(each, "detach") else np.asarray(each) for each in listed], name)
    try:
        column = pa.array(listed)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        kinds = sorted({type(each).__name__ for each in listed})
        raise NoBatch(f"column {name!r} has values of {', '.join(kinds)}, which Arrow has no column for: {error}") from None
    return column, pa.field(name, column.type)


def _array_column(values: np.ndarray, name: str) -> tuple[pa.Array, pa.Field]:
    if values.ndim == 0:
        raise NoBatch(f"column {name!r} is a single value, {values!r}, where an array with one value for each row is wanted")
    if values.ndim > 1 and values.dtype.kind in "biuf":
        flat = np.ascontiguousarray(values).reshape(-1)
        inner = pa.array(flat)
        kind = pa.fixed_shape_tensor(inner.type, values.shape[1:])
        storage = pa.FixedSizeListArray.from_arrays(inner, int(np.prod(values.shape[1:], dtype=np.int64))) if flat.size else pa.array([], kind.storage_type)
        column: pa.Array = pa.ExtensionArray.from_storage(kind, storage)
    else:
        column = pa.array(values if values.ndim == 1 else values.tolist())
    return column, pa.field(name, column.type)


def _arrays_column(arrays: Sequence[np.ndarray], name: str) -> tuple[pa.Array, pa.Field]:
    if len({(each.shape, each.dtype) for each in arrays}) == 1:
        return _array_column(np.stack(arrays), name)
    return ragged_column(arrays, name)


def ragged_column(arrays: Sequence[np.ndarray], name: str) -> tuple[pa.Array, pa.Field]:
    """A column of arrays of several shapes."""
    column = pa.StructArray.from_arrays([
        pa.array([each.dtype.str for each in arrays], pa.string()), pa.array([list(each.shape) for each in arrays], pa.list_(pa.int64())),
        pa.array([np.ascontiguousarray(each).tobytes() for each in arrays], pa.large_binary())], ["dtype", "shape", "data"])
    return column, pa.field(name, column.type, metadata=RAGGED)


def table_of_columns(columns: Mapping[str, Any]) -> pa.Table:
    """A block of columns by their names. Raises NoBatch where they are none, or of several lengths."""
    made, fields = [], []
    for name, values in columns.items():
        if not isinstance(name, str):
            raise NoBatch(f"a column's name is {name!r}, where a text is wanted")
        column, field = column_of(values, name)
        made.append(column)
        fields.append(field)
    lengths = {field.name: len(column) for field, column in zip(fields, made, strict=True)}
    if len(set(lengths.values())) > 1:
        raise NoBatch(f"its columns have several lengths: {', '.join(f'{name}: {length}' for name, length in lengths.items())}")
    return pa.Table.from_arrays(made, schema=pa.schema(fields))


def table_of_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A block of rows, which all have the columns of the first; others are null there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return table_of_columns({name: [row.get(name) for row in rows] for name in names})


def table_of_batch(batch: Any) -> pa.Table:
    """A block of what a batch function returned. Raises NoBatch."""
    if isinstance(batch, pa.Table):
        return batch
    if isinstance(batch, pa.RecordBatch):
        return pa.Table.from_batches([batch])
    if isinstance(batch, Mapping):
        return table_of_columns(batch)
    if type(batch).__name__ == "DataFrame" and type(batch).__module__.partition(".")[0] == "pandas":
        return table_of_pandas(batch)
    raise NoBatch(f"it returned {_kind(batch)}, where a batch is wanted: a dict of columns, a pandas DataFrame or a pyarrow Table")


def table_of_pandas(frame: Any) -> pa.Table:
    """A block of a DataFrame's columns, without its index."""
    if any(frame[name].dtype == object and len(frame) and isinstance(frame[name].iloc[0], np.ndarray) for name in frame.columns):
        return table_of_columns({str(name): frame[name].tolist() for name in frame.columns})
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def batch_of(table: pa.Table, batch_format: str) -> Any:
    """The block as a batch in that format."""
    if batch_format == "pyarrow":
        return table
    if batch_format == "numpy":
        return {field.name: numpy_of(table.column(index), field) for index, field in enumerate(table.schema)}
    return pandas_of(table)


def pandas_of(table: pa.Table) -> Any:
    """The block as a DataFrame; arrays are values of their column."""
    from troupe.data._arrow import need

    need("pandas", "batch_format='pandas'")
    special = [field.name for field in table.schema if is_ragged(field) or isinstance(field.type, pa.FixedShapeTensorType)]
    frame = table.drop_columns(special).to_pandas() if special else table.to_pandas()
    for name in special:
        frame.insert(table.column_names.index(name), name, list(numpy_of(table.column(name), table.schema.field(name))))
    return frame


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows, as dicts of plain values and arrays."""
    columns = []
    for index, field in enumerate(table.schema):
        special = is_ragged(field) or isinstance(field.type, pa.FixedShapeTensorType)
        columns.append(list(numpy_of(table.column(index), field)) if special else table.column(index).to_pylist())
    names = table.column_names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)] if names else [{} for _ in range(table.num_rows)]


def concat(tables: Sequence[pa.Table]) -> pa.Table:
    """One block of several. Raises pyarrow's ArrowInvalid where their columns differ; a column without any value fits to all."""
    if len(tables) == 1:
        return tables[0]
    first = tables[0].schema
    if all(each.schema.equals(first) for each in tables[1:]):
        return pa.concat_tables(tables)
    return pa.concat_tables([each.select(first.names) if set(each.column_names) == set(first.names) else each for each in tables],
                            promote_options="default")


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
