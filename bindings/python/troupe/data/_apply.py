"""A stage in one process: a piece is read, and the functions are applied to it, one after the
other."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from troupe import exceptions
from troupe.data import _blocks, _errors
from troupe.data._blocks import NoBatch
from troupe.data._handed import HandedBatch
from troupe.data._plan import Op, Stage
from troupe.data._sources import memory


@dataclasses.dataclass
class Where:
    """The origin of a block's rows.

    `first`: the number of the first one, in `path` or in the dataset; None: it is not known any
    more, and rows count from the block's beginning. `after`: the function that left it so.
    """

    path: str
    first: int | None
    after: str = ""

    def told(self, start: int, stop: int) -> tuple[str, dict[str, Any]]:
        """The rows from `start` up to `stop` in words, and as fields of a DataError."""
        first = (self.first or 0) + start
        last = (self.first or 0) + stop - 1
        rows = f"row {first}" if last == first else f"rows {first} to {last}"
        if self.first is None:
            block = f"a block of {self.path}" if self.path else "a block"
            return (
                f"{rows} of what {self.after} gave for {block}"
                if self.after
                else f"{rows} of {block}",
                {"path": self.path},
            )
        return f"{rows} of {self.path or 'the dataset'}", {
            "path": self.path,
            "first_row": first,
            "last_row": last,
        }


class Runner:
    """A stage made ready: classes are instances.

    One call at a time, as its functions may be classes with a state of their own.

    Raises DataError where a constructor of the user's does.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._calls = [_callable(op) if op.of_user else None for op in stage.ops]

    def run(self, piece: Any) -> pa.Table:
        """The block. Raises DataError naming file and rows."""
        table = memory.block_from(self._stage.reader or memory.HeldReader(), piece)
        where = Where(piece.path, piece.first_row)
        for op, call in zip(self._stage.ops, self._calls, strict=True):
            if not table.num_rows and not table.num_columns:
                return table
            if (
                not table.num_rows and op.of_user
            ):  # no function is called for no rows: its columns are not known
                table = table if op.kind == "filter" else pa.table({})
                continue
            table = _KINDS[op.kind](op, call, table, where)
            if not op.keeps_rows:
                where = Where(where.path, None, op.name)
        return table


def _callable(op: Op) -> Callable[..., Any]:
    fn = op.fn
    if inspect.isclass(fn):
        try:
            fn = fn(*op.constructor_args, **op.constructor_kwargs)
        except Exception as error:  # the user's, raised again
            raise _errors.of_function(
                f"{op.name}.__init__", error, "its way to the first block"
            ) from None
    if not op.fn_args and not op.fn_kwargs:
        found: Callable[..., Any] = fn
        return found
    args, kwargs = op.fn_args, dict(op.fn_kwargs)
    return lambda given: fn(given, *args, **kwargs)


def _map_batches(op: Op, call: Callable[..., Any], table: pa.Table, where: Where) -> pa.Table:
    size = op.batch_size or table.num_rows
    made: list[pa.Table] = []
    for start in range(0, table.num_rows, size):
        stop = min(start + size, table.num_rows)
        made += _of_batch(op, call, table.slice(start, stop - start), where, start, stop)
    return _one(op, made, where, table)


def _of_batch(
    op: Op, call: Callable[..., Any], batch: pa.Table, where: Where, start: int, stop: int
) -> list[pa.Table]:
    with _Failing(op, where, start, stop):
        handed = HandedBatch(batch, op.batch_format, zero_copy=op.zero_copy)
        returned = call(handed.batch)
        return [
            handed.block_of(each)
            for each in (returned if isinstance(returned, Iterator) else [returned])
        ]


def _map(op: Op, call: Callable[..., Any], table: pa.Table, where: Where) -> pa.Table:
    made = []
    for index, row in enumerate(_blocks.rows_of(table)):
        with _Failing(op, where, index, index + 1):
            made.append(_row(call(row)))
    return _of_rows(op, made, where, table)


def _flat_map(op: Op, call: Callable[..., Any], table: pa.Table, where: Where) -> pa.Table:
    made: list[Mapping[str, Any]] = []
    for index, row in enumerate(_blocks.rows_of(table)):
        with _Failing(op, where, index, index + 1):
            returned = call(row)
            made += (
                [_row(returned)]
                if isinstance(returned, Mapping)
                else [_row(each) for each in returned]
            )
    return _of_rows(op, made, where, table)


def _filter(op: Op, call: Callable[..., Any], table: pa.Table, where: Where) -> pa.Table:
    keep = []
    for index, row in enumerate(_blocks.rows_of(table)):
        with _Failing(op, where, index, index + 1):
            keep.append(bool(call(row)))
    return table.filter(pa.array(keep))


def _add_column(op: Op, call: Callable[..., Any], table: pa.Table, where: Where) -> pa.Table:
    name = op.settings
    with _Failing(op, where, 0, table.num_rows):
        values = call(_blocks.batch_of(table, op.batch_format))
        if type(values).__name__ == "Series":
            values = _blocks.series_column(values, name)[0]
        elif not hasattr(values, "__len__"):
            values = [values] * table.num_rows
        column, field = _blocks.column_of(values, name, _blocks.field_of(table.schema, name))
        if len(column) != table.num_rows:
            raise NoBatch(f"it returned {len(column)} values for {table.num_rows} rows")
    at = table.schema.get_field_index(name)
    return table.append_column(field, column) if at < 0 else table.set_column(at, field, column)


def _select(op: Op, call: None, table: pa.Table, where: Where) -> pa.Table:
    return table.select(_known(op, op.settings, table, where))


def _drop(op: Op, call: None, table: pa.Table, where: Where) -> pa.Table:
    return table.drop_columns(_known(op, op.settings, table, where))


def _rename(op: Op, call: None, table: pa.Table, where: Where) -> pa.Table:
    names = op.settings
    if isinstance(names, Mapping):
        _known(op, list(names), table, where)
        return table.rename_columns([names.get(name, name) for name in table.column_names])
    if len(names) != table.num_columns:
        raise ValueError(
            f"rename_columns() was given {len(names)} names for {table.num_columns} columns: "
            f"{', '.join(table.column_names)}"
        )
    return table.rename_columns(list(names))


def _where_true(op: Op, call: None, table: pa.Table, where: Where) -> pa.Table:
    try:
        return table.filter(op.settings)
    except (pa.ArrowException, KeyError) as error:
        told, fields = where.told(0, table.num_rows)
        raise _errors.of_function(op.name, error, told, **fields) from None


_KINDS: dict[str, Callable[..., pa.Table]] = {
    "map_batches": _map_batches,
    "map": _map,
    "flat_map": _flat_map,
    "filter": _filter,
    "add_column": _add_column,
    "select": _select,
    "drop": _drop,
    "rename": _rename,
    "expr": _where_true,
}


class _Failing:
    """A context that turns exceptions of a user's function into a DataError that names the rows."""

    def __init__(self, op: Op, where: Where, start: int, stop: int) -> None:
        self._op, self._where, self._rows = op, where, (start, stop)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, _errors.DataError):
            told, fields = self._where.told(*self._rows)
            raise _errors.of_function(self._op.name, error, told, **fields) from None


def _row(returned: Any) -> Mapping[str, Any]:
    if not isinstance(returned, Mapping):
        raise NoBatch(
            f"it returned {'None' if returned is None else f'a {type(returned).__name__}'}, where "
            "a row is wanted: a dict"
        )
    return returned


def _of_rows(op: Op, rows: list[Mapping[str, Any]], where: Where, before: pa.Table) -> pa.Table:
    if not rows:
        return pa.table({})
    with _Failing(op, where, 0, before.num_rows):
        return _blocks.table_of_rows(rows, before.schema)


def _one(op: Op, made: list[pa.Table], where: Where, before: pa.Table) -> pa.Table:
    filled = [each for each in made if each.num_rows] or made[:1] or [pa.table({})]
    try:
        return _blocks.concat(filled)
    except (pa.ArrowException, KeyError):
        other = next(each for each in filled if not each.schema.equals(filled[0].schema))
        told, fields = where.told(0, before.num_rows)
        text = (
            f"{op.name} returned batches of several schemas for {told}: "
            f"{shown(filled[0].schema)}, and {shown(other.schema)}"
        )
        raise exceptions.with_type_of(_errors.DataError, TypeError(text), text, **fields) from None


def _known(op: Op, names: Any, table: pa.Table, where: Where) -> list[str]:
    for name in names:
        if name not in table.column_names:
            told, fields = where.told(0, table.num_rows)
            text = (
                f"{op.name}: there is no column {name!r} in {told}, which have "
                f"{', '.join(table.column_names)}"
            )
            raise exceptions.with_type_of(_errors.DataError, KeyError(name), text, **fields)
    return list(names)


def shown(schema: pa.Schema) -> str:
    """A schema in one line."""
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
