"""A piece of work and its result, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from troupe.data._apply import Runner
from troupe.data._sources import memory

_SLACK_BYTES = 64 << 10


@dataclass(frozen=True)
class Scatter:
    """A block's rows go into so many blocks, by chance, of this seed."""

    parts: int
    seed: int


@dataclass(frozen=True)
class Block:
    """A block that is there.

    `value`: the table, its ref, or of a scattered one a list of these with `rows_of_parts`. `own`:
    nobody else has its memory.
    """

    rows: int
    size: int
    value: Any
    path: str = ""
    first_row: int | None = None
    own: bool = False
    rows_of_parts: tuple[int, ...] = ()

    def table(self) -> pa.Table:
        """The block itself. Blocks, where it has to come from another host."""
        return memory.block_of(self.value)


def done(
    runner: Runner, piece: Any, number: int, scatter: Scatter | None
) -> tuple[tuple[int, ...], int, list[pa.Table]]:
    """(rows, bytes, tables) of the piece: one table, or of a scattered piece as many as there are
    parts."""
    table = runner.run(piece)
    tables = (
        [table] if scatter is None else memory.scattered(table, scatter.parts, scatter.seed, number)
    )
    return tuple(each.num_rows for each in tables), sum(each.nbytes for each in tables), tables


def block(
    piece: Any,
    rows: Sequence[int],
    size: int,
    values: Sequence[Any],
    *,
    scatter: Scatter | None,
    own: bool = False,
) -> Block:
    """The Block of what `done` gave, or of the refs of its tables."""
    value = values[0] if scatter is None else list(values)
    keeps = piece.rows == sum(rows)
    return Block(
        sum(rows),
        size,
        value,
        piece.path,
        piece.first_row if keeps else None,
        own,
        () if scatter is None else tuple(rows),
    )


def compact(table: pa.Table) -> pa.Table:
    """The table for a way to another process: one that is a part of larger memory is copied, for
    all of that would travel."""
    if table.get_total_buffer_size() <= table.nbytes * 1.25 + _SLACK_BYTES:
        return table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()
