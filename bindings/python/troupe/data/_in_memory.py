"""Datasets of what a program holds: numbers, lists, arrays, frames and tables.

Names, arguments and defaults are Ray's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from troupe import _pickled
from troupe.data import _blocks
from troupe.data._dataset import Dataset, MaterializedDataset, of_pieces
from troupe.data._read import blocks_asked, dataset_of
from troupe.data._sources import memory, parquet
from troupe.data._sources.pieces import Held, RangePiece, ranges

if TYPE_CHECKING:
    import pandas

_BLOCK_ROWS = 1 << 20


def range(
    n: int,
    *,
    parallelism: int = -1,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
) -> Dataset:
    """The numbers 0 up to n - 1: a column "id"."""
    return _numbers("range", n, None, parallelism, concurrency, override_num_blocks)


def range_tensor(
    n: int,
    *,
    shape: tuple[int, ...] = (1,),
    parallelism: int = -1,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
) -> Dataset:
    """The numbers 0 up to n - 1, each as an array of that shape filled with it: a column "data"."""
    return _numbers("range_tensor", n, tuple(shape), parallelism, concurrency, override_num_blocks)


def _numbers(
    what: str,
    n: int,
    shape: tuple[int, ...] | None,
    parallelism: int,
    concurrency: int | None,
    blocks: int | None,
) -> Dataset:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ValueError(f"{what}({n!r}): a whole number of at least 0")
    each = _BLOCK_ROWS // max(1, int(np.prod(shape or (1,))))
    asked = blocks_asked(what, parallelism, blocks)
    parts = ranges(n, max(1, -(-n // asked) if asked else each)) if n else []
    return dataset_of(
        what,
        [RangePiece(start, stop) for start, stop in parts],
        memory.RangeReader(shape),
        {},
        None,
        concurrency,
    )


def from_items(
    items: list[Any], *, parallelism: int = -1, override_num_blocks: int | None = None
) -> MaterializedDataset:
    """Rows of a list: of dicts their columns, of all else a column "item".

    Raises TypeError for values that Arrow has no column for.
    """
    rows = list(items)
    if not rows:
        return of_pieces([])
    table = _blocks.table_of_rows(
        [item if isinstance(item, Mapping) else {"item": item} for item in rows]
    )
    return _held([table], blocks_asked("from_items", parallelism, override_num_blocks))


def from_numpy(ndarrays: np.ndarray | list[np.ndarray]) -> MaterializedDataset:
    """Rows of one array, or of several: a column "data" of what is along the first axis."""
    arrays = [ndarrays] if isinstance(ndarrays, np.ndarray) else list(ndarrays)
    return _held([_blocks.table_of_columns({"data": array}) for array in arrays], None)


def from_pandas(
    dfs: pandas.DataFrame | list[pandas.DataFrame], override_num_blocks: int | None = None
) -> MaterializedDataset:
    """Rows of one DataFrame, or of several, without their index."""
    frames = list(dfs) if isinstance(dfs, (list, tuple)) else [dfs]
    return _held(
        [_blocks.table_of_batch(frame) for frame in frames],
        blocks_asked("from_pandas", -1, override_num_blocks),
    )


def from_arrow(
    tables: pa.Table | bytes | list[pa.Table | bytes], *, override_num_blocks: int | None = None
) -> MaterializedDataset:
    """Rows of one pyarrow Table, or of several; `bytes` are one in Arrow's stream format."""
    given: Iterable[Any] = tables if isinstance(tables, (list, tuple)) else [tables]
    made = [
        pa.ipc.open_stream(each).read_all()
        if isinstance(each, bytes)
        else _blocks.table_of_batch(each)
        for each in given
    ]
    return _held(made, blocks_asked("from_arrow", -1, override_num_blocks))


def _held(tables: list[pa.Table], blocks: int | None) -> MaterializedDataset:
    total = sum(each.num_rows for each in tables)
    most = max(1, -(-total // blocks)) if blocks else None
    pieces: list[Held] = []
    row = 0
    for table in tables:
        rows = table.num_rows
        target = most or max(1, rows * parquet.BLOCK_BYTES // max(table.nbytes, 1))
        for start, stop in (
            ranges(rows, target) if rows else [] if total or pieces else [(0, 0)]
        ):  # columns without rows are columns
            pieces.append(
                Held(
                    ((table, start, stop),),
                    table.nbytes * (stop - start) // max(rows, 1),
                    row + start,
                )
            )
        row += rows
    return of_pieces(pieces)


_pickled.named_in(
    "troupe.data",
    from_arrow,
    from_items,
    from_numpy,
    from_pandas,
    range,
    range_tensor,
)
