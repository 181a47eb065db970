"""Datasets: a plan, and what is asked of its rows."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from troupe import _pickled
from troupe.data import (
    _blocks,
    _deal,
    _dealing,
    _missing,
    _options,
    _plan,
    _spill,
    _stream,
    _write,
)
from troupe.data._iterator import DataIterator, Share
from troupe.data._schema import Schema
from troupe.data._sources import memory
from troupe.data._sources.pieces import Held
from troupe.data._take import Takes
from troupe.data._transforms import Transforms
from troupe.data._work import Block

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from pyarrow import fs


SHIPPED_BYTES = 1 << 20
"""Rows held by this process of more bytes than these are put where all processes find them, when
shares of them are made."""


class Dataset(Transforms, Takes):
    """Rows in columns, read and mapped block by block when they are asked for; each time anew,
    unless `materialize()` holds them.

    Functions run as tasks of the cluster where this process is a part of one, else in threads of
    it; where there are none, blocks are read by threads of the process that takes them. Blocks come
    in order, so that rows and their order are the same each time. Names, arguments and defaults are
    those of Ray's `ray.data.Dataset`. Any process may make one, and send it to others.

        ds = troupe.data.read_parquet("images/").map_batches(normalise)
        for batch in ds.iter_torch_batches(batch_size=256): ...
    """

    def __init__(self, node: _plan.Node) -> None:
        self._node = node
        self._epochs_begun = itertools.count()

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.dataset, (self._node, type(self).__name__)

    def __repr__(self) -> str:
        rows = _plan.rows_of(_plan.simplified(self._node))
        counted = f"{rows} rows" if rows is not None else "rows not counted yet"
        return f"{type(self).__name__}({counted})"

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            "a Dataset is no iterator: iter_rows(), iter_batches() and iter_torch_batches() go "
            "through its rows"
        )

    def __len__(self) -> int:
        raise AttributeError(
            "a Dataset has no len(): count() counts its rows, and reads them where nothing else "
            "tells how many there are"
        )

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_missing.told(type(self).__name__, name))

    def _made(self, node: _plan.Node) -> Dataset:
        return Dataset(node)

    def _blocks(self) -> Iterator[Block]:
        return _stream.blocks(
            _plan.simplified(self._node), _stream.here(), next(self._epochs_begun)
        )

    def take(self, limit: int = 20) -> list[dict[str, Any]]:
        """The first rows, as dicts. Blocks. Raises DataError for what cannot be read or mapped."""
        return list(self.limit(limit).iter_rows())

    def take_all(self, limit: int | None = None) -> list[dict[str, Any]]:
        """All rows, as dicts. Blocks. Raises ValueError where they are more than `limit`."""
        rows = []
        for row in self.iter_rows():
            rows.append(row)
            if limit is not None and len(rows) > limit:
                raise ValueError(
                    f"take_all(limit={limit}): there are more rows than that; take({limit}) gives "
                    "the first ones"
                )
        return rows

    def take_batch(
        self, batch_size: int = 20, *, batch_format: str | None = "default"
    ) -> dict[str, np.ndarray] | pd.DataFrame | pa.Table:
        """The first rows as one batch, in a format of iter_batches().

        Blocks. Raises ValueError where there are no rows.
        """
        for batch in self.limit(batch_size).iter_batches(
            batch_size=batch_size, batch_format=batch_format
        ):
            return batch
        raise ValueError("take_batch(): the dataset has no rows")

    def show(self, limit: int = 20) -> None:
        """Prints the first rows. Blocks."""
        for row in self.take(limit):
            print(row)

    def count(self) -> int:
        """How many rows there are: of Parquet files and functions that keep rows by what is known
        already, else by carrying all out. Blocks."""
        node = _plan.simplified(self._node)
        known = _plan.rows_of(node)
        return (
            known
            if known is not None
            else sum(block.rows for block in _stream.blocks(node, _stream.here()))
        )

    def schema(self, fetch_if_missing: bool = True) -> Schema | None:
        """The columns and their types, of the first block; None: they are not known, since
        functions were given no rows, or the block is not to be read (`fetch_if_missing=False`).
        Blocks."""
        if not fetch_if_missing:
            return None
        source = self.limit(1)._tables()
        try:
            first = next(source, None)
            return None if first is None or not first[0].num_columns else Schema(first[0].schema)
        finally:
            source.close()  # type: ignore[attr-defined]

    def columns(self, fetch_if_missing: bool = True) -> list[str] | None:
        """The names of the columns. As schema()."""
        schema = self.schema(fetch_if_missing)
        return None if schema is None else schema.names

    def to_pandas(self, limit: int | None = None) -> pd.DataFrame:
        """All rows as one DataFrame, in this process's memory.

        Blocks. Raises ValueError where they are more than `limit`, ImportError without pandas.
        """
        tables, rows = [], 0
        for table, _ in self._tables():
            tables.append(table)
            rows += table.num_rows
            if limit is not None and rows > limit:
                raise ValueError(
                    f"to_pandas(limit={limit}): the dataset has more rows than that; "
                    f".limit({limit}) takes the first ones"
                )
        if not tables:
            import pandas

            return pandas.DataFrame()
        return _blocks.pandas_of(_blocks.concat(tables))

    def materialize(self) -> MaterializedDataset:
        """Carries all out, and holds the blocks: of functions that run in the cluster where they
        were made, else in this process, on disk where they are many. Blocks. They are held as long
        as the dataset, or what is made of it."""
        return materialized(
            [block for block, _ in _spill.kept((block, block.rows) for block in self._blocks())]
        )

    def split(
        self, n: int, *, equal: bool = False, locality_hints: list[Any] | None = None
    ) -> list[MaterializedDataset]:
        """Carries all out, and makes `n` datasets of it, one after the other in the order of rows:
        of equally many rows (what is over is left out), or of numbers that differ by one at most.
        `locality_hints` means nothing. Blocks."""
        _options.positive("split", "n", n)
        held = self.materialize().held()
        rows = sum(count for _, count in held)
        runs = _deal.runs(held, [rows // n] * n if equal else _deal.even(rows, n))
        return [of_pieces([piece.part(start, stop) for piece, start, stop in run]) for run in runs]

    def streaming_split(
        self, n: int, *, equal: bool = False, locality_hints: list[Any] | None = None
    ) -> list[DataIterator]:
        """Shares for `n` readers, processes that go through them at the same time: every row goes
        to one of them, in each epoch anew.

        `equal`: all get equally many rows; fewer than n rows in all are left out. Who gets what
        does not depend on who is quick. The reader of a share reads it itself where row counts are
        known beforehand (Parquet, ranges, rows held; functions that keep them), else an actor deals
        blocks to all. `locality_hints` means nothing. Returns at once.

            shards = ds.streaming_split(2, equal=True)
            [rank.train.remote(shard) for rank, shard in zip(ranks, shards)]
        """
        _options.positive("streaming_split", "n", n)
        import troupe

        connected = troupe.is_initialized()
        node = _shipped(_plan.simplified(self._node)) if connected else _plan.simplified(self._node)
        if _plan.deals_alone(node, equal=equal):
            node = _plan.seeded(node)
            return [
                DataIterator(Share(index, n, equal, plan=node), materialized) for index in range(n)
            ]
        if connected:
            dealer: Any = (
                troupe.remote(_dealing.DealingActor)
                .options(num_cpus=0, max_concurrency=n + 1)
                .remote(node, n, equal)
            )
        else:
            dealer = _dealing.DealingHere(node, n, equal)
        return [
            DataIterator(Share(index, n, equal, dealer=dealer), materialized) for index in range(n)
        ]

    def iterator(self) -> DataIterator:
        """A DataIterator of all rows."""
        return self.streaming_split(1)[0]

    def write_parquet(
        self,
        path: str,
        *,
        partition_cols: list[str] | None = None,
        filesystem: fs.FileSystem | None = None,
        catalog: None = None,
        try_create_dir: bool = True,
        arrow_open_stream_args: None = None,
        filename_provider: None = None,
        arrow_parquet_args_fn: None = None,
        min_rows_per_file: int | None = None,
        max_rows_per_file: int | None = None,
        min_bytes_per_file: int | None = None,
        ray_remote_args: dict[str, Any] | None = None,
        concurrency: int | None = None,
        num_rows_per_file: int | None = None,
        mode: str | enum.Enum = "append",
        **arrow_parquet_args: object,
    ) -> None:
        """Writes Parquet files into the folder `path`, which may be a URI of pyarrow's file
        systems: of each block, or of `min_rows_per_file` rows and more.

        `mode`: "append" (beside what is there), "overwrite" (instead of it), "ignore" (nothing
        where the folder has files), "error". `partition_cols`: a folder for each value.
        `arrow_parquet_args`: of pyarrow.parquet.write_table. Files appear when all are written: a
        write that fails leaves the folder as it was. Without rows there is one file, of the
        columns. Blocks. Raises DataError naming the file that cannot be written, FileExistsError
        for mode "error".

            ds.write_parquet("/data/clean", compression="zstd")
        """
        _write.refuse(
            catalog=catalog,
            filename_provider=filename_provider,
            arrow_parquet_args_fn=arrow_parquet_args_fn,
            arrow_open_stream_args=arrow_open_stream_args,
        )
        asked = _write.Asked(
            path,
            filesystem,
            tuple(partition_cols or ()),
            try_create_dir,
            _write.mode_of(mode),
            min_rows_per_file or num_rows_per_file,
            max_rows_per_file or num_rows_per_file,
            min_bytes_per_file,
            arrow_parquet_args,
        )
        _write.parquet(self._tables, asked)


class MaterializedDataset(Dataset):
    """A dataset whose rows are held: nothing is read or mapped again."""

    def held(self) -> list[tuple[Any, int]]:
        """Return the pieces, with their row counts."""
        return [(piece, piece.rows) for piece in self._node.pieces]  # type: ignore[union-attr]

    def num_blocks(self) -> int:
        """How many blocks it has."""
        return len(self._node.pieces)  # type: ignore[union-attr]


def materialized(blocks: list[Block]) -> MaterializedDataset:
    """A dataset of blocks that are held."""
    row, pieces = 0, []
    for block in blocks:
        pieces.append(Held(((block.value, 0, block.rows),), block.size, row))
        row += block.rows
    return of_pieces(pieces)


def of_pieces(pieces: list[Any]) -> MaterializedDataset:
    """A dataset of rows that are held."""
    return MaterializedDataset(_plan.Read(tuple(pieces), memory.HeldReader()))


def _shipped(node: _plan.Node) -> _plan.Node:
    """The plan, with large rows that this process holds where all processes find them."""
    import dataclasses

    import pyarrow as pa

    import troupe
    from troupe.data import _tasks

    if isinstance(node, _plan.Union_):
        return _plan.Union_(tuple(_shipped(child) for child in node.children))
    if not isinstance(node, _plan.Read):
        return dataclasses.replace(node, child=_shipped(node.child))
    pieces = []
    for piece in node.pieces:
        if (
            isinstance(piece, Held)
            and piece.size > SHIPPED_BYTES
            and isinstance(piece.parts[0][0], pa.Table)
        ):
            sent = _tasks.sent(piece)
            piece = dataclasses.replace(
                sent,
                parts=tuple(
                    (troupe.put(block) if isinstance(block, pa.Table) else block, start, stop)
                    for block, start, stop in sent.parts
                ),
            )
        pieces.append(piece)
    return dataclasses.replace(node, pieces=tuple(pieces))


_pickled.named_in("troupe.data", Dataset, MaterializedDataset)


@_pickled.maker("dataset")
def _dataset(node: Any, kind: str = "Dataset") -> Any:
    """A dataset, by its plan."""
    return {"Dataset": Dataset, "MaterializedDataset": MaterializedDataset}[kind](node)


@_pickled.maker("data_iterator")
def _data_iterator(share: Any, epoch: int) -> Any:
    """A reader's share of a dataset; its next epoch has that number."""
    return DataIterator(share, materialized, epoch)
