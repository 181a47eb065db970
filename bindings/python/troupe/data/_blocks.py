"""Blocks: pyarrow Tables, and what their batches and rows look like in NumPy and pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from troupe.data._arrow import need
from troupe.data._columns import (
    REFUSED,
    NoBatch as NoBatch,
    as_before,
    column_of as column_of,
    is_special,
    kind_of,
    made_alike,
    numpy_of as numpy_of,
    objects as objects,
)

FORMATS = ("numpy", "pandas", "pyarrow")


def format_of(given: Any, what: str) -> str:
    """Return the batch format by its name. Raises ValueError naming those there are."""
    if given in ("default", None):
        return "numpy"
    if given not in FORMATS:
        raise ValueError(
            f"{what}(batch_format={given!r}): there are 'numpy' (the default), 'pandas' and "
            "'pyarrow'"
        )
    found: str = given
    return found


def table_of_columns(columns: Mapping[str, Any], before: pa.Schema | None = None) -> pa.Table:
    """Return a block of columns by their names; `before`: the columns that a function was given,
    whose types are kept as `column_of` does.

    Raises:
        NoBatch: they are no columns, or of several lengths.
    """
    made = []
    for name, values in columns.items():
        if not isinstance(name, str):
            raise NoBatch(f"a column's name is {name!r}, where a text is wanted")
        made.append(column_of(values, name, field_of(before, name)))
    return table_of(made)


def table_of(columns: Sequence[tuple[Any, pa.Field]]) -> pa.Table:
    """Return a block of columns and their fields.

    Raises NoBatch where they are of several lengths.
    """
    lengths = {field.name: len(column) for column, field in columns}
    if len(set(lengths.values())) > 1:
        raise NoBatch(
            "its columns have several lengths: "
            f"{', '.join(f'{name}: {length}' for name, length in lengths.items())}"
        )
    return pa.Table.from_arrays(
        [column for column, _ in columns], schema=pa.schema([field for _, field in columns])
    )


def field_of(schema: pa.Schema | None, name: str) -> pa.Field | None:
    """Return the field of that name; None where there is none, or several."""
    index = -1 if schema is None else schema.get_field_index(name)
    return None if index < 0 else schema.field(index)  # type: ignore[union-attr]


def table_of_rows(rows: Sequence[Mapping[str, Any]], before: pa.Schema | None = None) -> pa.Table:
    """Return a block of rows, which have the columns of all of them; what a row lacks is null.

    `before`: as in `table_of_columns`.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    return table_of_columns({name: [row.get(name) for row in rows] for name in names}, before)


def table_of_batch(batch: Any) -> pa.Table:
    """Return a block of what a batch function returned. Raises NoBatch."""
    if isinstance(batch, pa.Table):
        return batch
    if isinstance(batch, pa.RecordBatch):
        return pa.Table.from_batches([batch])
    if isinstance(batch, Mapping):
        return table_of_columns(batch)
    if is_frame(batch):
        return table_of([series_column(batch[name], str(name)) for name in batch.columns])
    raise NoBatch(
        f"it returned {kind_of(batch)}, where a batch is wanted: a dict of columns, a pandas "
        "DataFrame or a pyarrow Table"
    )


def is_frame(batch: Any) -> bool:
    """Return True for a DataFrame of pandas."""
    return (
        type(batch).__name__ == "DataFrame" and type(batch).__module__.partition(".")[0] == "pandas"
    )


def series_column(series: Any, name: str, before: pa.Field | None = None) -> tuple[Any, pa.Field]:
    """Return the column of a Series, in which pandas' missing values are nulls.

    `before`: as in `column_of`. Raises NoBatch.
    """
    if series.ndim != 1:
        raise NoBatch(f"several columns have the name {name!r}")
    if series.dtype == object and any(
        isinstance(each, (np.ndarray, list, tuple, Mapping)) for each in series
    ):
        return column_of(
            [None if each is not each or each is None else each for each in series], name, before
        )
    try:
        column = pa.array(series, from_pandas=True)
        if isinstance(column.type, pa.ExtensionType) and not isinstance(
            column.type, pa.FixedShapeTensorType
        ):
            column = column.storage  # pandas' own types: periods and intervals
    except REFUSED as error:
        raise NoBatch(
            f"column {name!r} is of type {series.dtype}, which Arrow has no column for: {error}"
        ) from None
    column = column if before is None else as_before(column, before.type)
    return column, pa.field(name, column.type)


def batch_of(table: pa.Table, batch_format: str) -> Any:
    """Return the block as a batch in that format.

    Raises NoBatch where two columns have one name, which only pyarrow's Tables can have.
    """
    if batch_format == "pyarrow":
        return table
    check_names(table, f"a batch of format {batch_format!r}")
    if batch_format == "numpy":
        return {
            field.name: numpy_of(table.column(index), field)
            for index, field in enumerate(table.schema)
        }
    return pandas_of(table)


def check_names(table: pa.Table, what: str) -> None:
    """Raise NoBatch where two columns have one name."""
    names = table.column_names
    for name in names if len(set(names)) < len(names) else ():
        if names.count(name) > 1:
            raise NoBatch(
                f"there are {names.count(name)} columns named {name!r}, of which {what} can have "
                "one: rename_columns() gives them names of their own"
            )


def pandas_of(table: pa.Table) -> Any:
    """Return the block as a DataFrame; arrays are values of their column."""
    need("pandas", "batch_format='pandas'")
    special = [field.name for field in table.schema if is_special(field)]
    try:
        frame = table.drop_columns(special).to_pandas()
    except pa.ArrowException:  # as in `numpy_of`
        special = [
            field.name
            for field in table.schema
            if is_special(field) or pa.types.is_nested(field.type) or pa.types.is_union(field.type)
        ]
        frame = table.drop_columns(special).to_pandas()
    for name in special:
        frame.insert(
            table.column_names.index(name),
            name,
            objects(list(numpy_of(table.column(name), table.schema.field(name)))),
        )
    return frame


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows, as dicts of plain values and arrays."""
    check_names(table, "a row")
    columns = [
        list(numpy_of(table.column(index), field))
        if is_special(field)
        else table.column(index).to_pylist()
        for index, field in enumerate(table.schema)
    ]
    names = table.column_names
    return (
        [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
        if names
        else [{} for _ in range(table.num_rows)]
    )


def concat(tables: Sequence[pa.Table]) -> pa.Table:
    """Return one block of several; a column without any value fits to all, and columns of arrays
    fit to each other.

    Raises:
        pyarrow.ArrowInvalid: their columns differ.
    """
    if len(tables) == 1:
        return tables[0]
    first = tables[0].schema
    if all(each.schema.equals(first) for each in tables[1:]):
        return pa.concat_tables(tables)
    found = [
        each.select(first.names) if set(each.column_names) == set(first.names) else each
        for each in tables
    ]
    for name in first.names:
        at = [each.schema.get_field_index(name) for each in found]
        fields = [
            each.schema.field(index) for each, index in zip(found, at, strict=True) if index >= 0
        ]
        if (
            len(fields) < len(found)
            or len({field.type for field in fields}) < 2
            or not any(map(is_special, fields))
        ):
            continue
        filled = [index for index, field in enumerate(fields) if not pa.types.is_null(field.type)]
        alike = (
            made_alike(
                [found[index].column(name) for index in filled], [fields[index] for index in filled]
            )
            if len(filled) > 1
            else []
        )
        for index, (column, field) in zip(filled, alike, strict=False):
            found[index] = found[index].set_column(at[index], field, column)
    return pa.concat_tables(found, promote_options="default")
