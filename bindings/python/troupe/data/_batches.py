"""Batches of so many rows, of blocks as they come; whichever form they have."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from troupe import exceptions
from troupe.data import _blocks, _errors
from troupe.data._apply import shown


class Form(Protocol):
    """The form of batches that a block becomes, and how to cut and join its rows."""

    def of(self, table: pa.Table, *, own: bool) -> Any:
        """The block in this form. `own`: its memory may be handed out as it is, for writing too."""

    def cut(self, whole: Any, start: int, stop: int) -> Any:
        """Some of its rows."""

    def join(self, parts: list[Any]) -> Any:
        """Rows of several, one after the other."""


class Columns:
    """A dict of arrays."""

    def of(self, table: pa.Table, *, own: bool) -> dict[str, np.ndarray]:
        """See Form."""
        found: dict[str, np.ndarray] = _blocks.batch_of(table, "numpy")
        return found

    def cut(self, whole: dict[str, Any], start: int, stop: int) -> dict[str, Any]:
        """See Form."""
        return {name: column[start:stop] for name, column in whole.items()}

    def join(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        """See Form. Arrays of several shapes are an array of arrays."""
        return {name: _joined([part[name] for part in parts]) for name in parts[0]}


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    if (
        len({each.shape[1:] for each in arrays}) == 1
        and len({each.dtype == object for each in arrays}) == 1
    ):
        found: np.ndarray = np.concatenate(arrays)
        return found
    return _blocks.objects([row for each in arrays for row in each])


class Tables:
    """pyarrow Tables, or by way of them DataFrames."""

    def __init__(self, batch_format: str) -> None:
        self._format = batch_format

    def of(self, table: pa.Table, *, own: bool) -> pa.Table:
        """See Form."""
        return table

    def cut(self, whole: pa.Table, start: int, stop: int) -> Any:
        """See Form."""
        return _blocks.batch_of(whole.slice(start, stop - start), self._format)

    def join(self, parts: list[Any]) -> Any:
        """See Form."""
        if self._format == "pyarrow":
            return _blocks.concat(parts)
        import pandas

        return pandas.concat(parts, ignore_index=True)


def alike(tables: Iterable[tuple[pa.Table, bool]]) -> Iterator[tuple[pa.Table, bool]]:
    """The blocks, whose columns are those of the first.

    Raises DataError naming a column that is not; one without any value is of any type.
    """
    first: pa.Schema | None = None
    for table, own in tables:
        first = table.schema if first is None else first
        if table.schema.equals(first):
            yield table, own
            continue
        try:
            yield _blocks.concat([first.empty_table(), table]), own
        except (pa.ArrowException, KeyError):
            text = (
                f"blocks of one dataset have several schemas: the first one has {shown(first)}, "
                f"another one {shown(table.schema)}\n"
                "  a function that maps batches has to give all of them the same columns and types"
            )
            raise exceptions.with_type_of(_errors.DataError, TypeError(text), text) from None


def batches(
    tables: Iterable[tuple[pa.Table, bool]],
    form: Form,
    size: int | None,
    *,
    drop_last: bool = False,
) -> Iterator[Any]:
    """Batches of `size` rows (None: as the blocks are), the last one smaller unless it is dropped.

    Rows are copied only where a batch is of several blocks.
    """
    waiting: list[Any] = []
    rows = 0
    for table, own in alike(tables):
        if not table.num_rows:  # an empty table only gives the columns
            continue
        whole, count, at = form.of(table, own=own), table.num_rows, 0
        del table
        if size is None:
            yield form.cut(whole, 0, count)
            continue
        while rows + count - at >= size:
            stop = at + size - rows
            part = form.cut(whole, at, stop)
            at = stop
            if waiting:
                part = form.join([*waiting, part])
                waiting, rows = [], 0
            yield part
            del part
        if at < count:
            waiting.append(form.cut(whole, at, count))
            rows += count - at
        del whole
    if waiting and not drop_last:
        yield waiting[0] if len(waiting) == 1 else form.join(waiting)


def shuffled(
    tables: Iterable[tuple[pa.Table, bool]], least: int, seed: int | None
) -> Iterator[tuple[pa.Table, bool]]:
    """The rows in another order, by a buffer of `least` rows: a row leaves it by chance.

    The same order for the same seed and blocks.
    """
    chance = np.random.default_rng(seed)
    buffer: list[pa.Table] = []
    rows = 0
    for table, _ in alike(tables):
        buffer.append(table)
        rows += table.num_rows
        if rows >= 2 * least:
            mixed = _mixed(buffer, chance)
            yield mixed.slice(least), True
            buffer, rows = [mixed.slice(0, least)], least
    if buffer:
        yield _mixed(buffer, chance), True


def _mixed(buffer: list[pa.Table], chance: np.random.Generator) -> pa.Table:
    joined = _blocks.concat(buffer)
    return joined.take(chance.permutation(joined.num_rows)).combine_chunks()


_END = object()


def ahead(make: Iterator[Any], count: int, then: Callable[[Any], Any]) -> Iterator[Any]:
    """`then(item)` for all items, made by a thread so many ahead of who takes them.

    Closing it ends the thread.
    """
    if count <= 0:
        yield from map(then, make)
        return
    line: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    room = threading.Semaphore(count)
    stopped = threading.Event()

    def put(item: tuple[Any, BaseException | None]) -> bool:
        room.acquire()
        line.put(item)
        return not stopped.is_set()

    def run() -> None:
        try:
            for item in make:
                if not put((then(item), None)):
                    return
            put((_END, None))
        except BaseException as error:  # raised where the batches are taken
            put((None, error))
        finally:
            if hasattr(make, "close"):
                make.close()

    thread = threading.Thread(target=run, name="troupe-data-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = line.get()
            room.release()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stopped.set()
        room.release()
