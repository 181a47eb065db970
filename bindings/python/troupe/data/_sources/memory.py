"""Blocks of what is no file: numbers, and rows that are held already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from troupe.data import _blocks
from troupe.data._plan import Travels
from troupe.data._sources.pieces import Held, Part, RangePiece

if TYPE_CHECKING:
    from troupe import ObjectRef


@dataclass(frozen=True)
class RangeReader(Travels):
    """Makes blocks of numbers: a column "id"; with a `shape` a column "data" of arrays of it that
    are filled with the number."""

    shape: tuple[int, ...] | None = None

    def with_columns(self, columns: Sequence[str]) -> None:
        """None: there is one column."""

    def read(self, piece: RangePiece) -> pa.Table:
        """The block."""
        numbers: np.ndarray = np.arange(piece.start, piece.stop, dtype=np.int64)
        if self.shape is None:
            return pa.table({"id": numbers})
        return _blocks.table_of_columns(
            {
                "data": np.broadcast_to(
                    numbers.reshape(-1, *[1] * len(self.shape)), (len(numbers), *self.shape)
                )
            }
        )


@dataclass(frozen=True)
class HeldReader(Travels):
    """Makes blocks of rows that are held."""

    def with_columns(self, columns: Sequence[str]) -> None:
        """None: they are there anyway."""

    def read(self, piece: Held) -> pa.Table:
        """The block: views of the parts where nothing has to move."""
        tables = [block_of(block) for block, _, _ in piece.parts]
        table = _blocks.concat(
            [
                each.slice(start, stop - start)
                for each, (_, start, stop) in zip(tables, piece.parts, strict=True)
            ]
        )
        if piece.shuffle is None:
            return table
        return table.take(np.random.default_rng(piece.shuffle).permutation(table.num_rows))


def block_of(held: pa.Table | ObjectRef[pa.Table]) -> pa.Table:
    """The block that is held, or that the ref is of."""
    if isinstance(held, pa.Table):
        return held
    import troupe

    return troupe.get(held)


def block_from(reader: object, piece: object) -> pa.Table:
    """Return the block that a reader makes of a piece, or of a part of one."""
    if isinstance(piece, Part):
        return block_from(reader, piece.piece).slice(piece.start, piece.stop - piece.start)
    return reader.read(piece)  # type: ignore[attr-defined]


def scattered(table: pa.Table, parts: int, seed: int, number: int) -> list[pa.Table]:
    """The rows of a block in so many blocks, by chance; the same ones for the same seed and number
    of the block."""
    where = np.random.default_rng((seed, number)).integers(0, parts, table.num_rows)
    order = np.argsort(where, kind="stable")
    ends = np.cumsum(np.bincount(where, minlength=parts))
    return [table.take(order[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
