"""Lazy methods of datasets that choose and order rows: nothing runs yet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from troupe.data import _options, _plan
from troupe.data._options import positive

if TYPE_CHECKING:
    from troupe.data._dataset import Dataset


class Arrangement(ABC):
    """The lazy methods that keep rows as they are."""

    @abstractmethod
    def _made(self, node: _plan.Node) -> Dataset:
        """The dataset of that plan."""

    _node: _plan.Node

    def random_shuffle(
        self, *, seed: int | None = None, num_blocks: int | None = None, **ray_remote_args: object
    ) -> Dataset:
        """All rows in another order: the same one for the same seed, without a seed another one
        each time. All of them are held meanwhile, in shared memory and on disk beyond that.
        read_parquet(shuffle="files") and iter_batches(local_shuffle_buffer_size=) are the cheap
        ways."""
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise TypeError(f"random_shuffle(seed={seed!r}): a whole number of at least 0, or None")
        _options.of_processes("random_shuffle", ray_remote_args)
        return self._made(
            _plan.Shuffle(
                self._node,
                seed,
                None
                if num_blocks is None
                else positive("random_shuffle", "num_blocks", num_blocks),
            )
        )

    def limit(self, limit: int) -> Dataset:
        """The first rows; what is behind them is not read."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise ValueError(f"limit({limit!r}): a whole number of at least 0")
        return self._made(_plan.Limit(self._node, limit))

    def repartition(
        self,
        num_blocks: int | None = None,
        target_num_rows_per_block: int | None = None,
        *,
        strict: bool = False,
        shuffle: bool = False,
        keys: list[str] | None = None,
        sort: bool = False,
    ) -> Dataset:
        """The rows in `num_blocks` blocks of about equally many, or in blocks of
        `target_num_rows_per_block`. `shuffle`: by random_shuffle(). `strict` means nothing: blocks
        have exactly that many rows, but for the last one."""
        if keys is not None or sort:
            raise ValueError(
                "repartition(keys=..., sort=...) is not a part of Troupe: rows are not brought "
                "together by what is in them; a database or polars "
                "does that, and write_parquet() by partition_cols puts rows of one value into one "
                "folder"
            )
        if (num_blocks is None) == (target_num_rows_per_block is None):
            raise ValueError(
                "repartition() takes num_blocks or target_num_rows_per_block, one of them"
            )
        if shuffle:
            if num_blocks is None:
                raise ValueError("repartition(shuffle=True) takes num_blocks")
            return self.random_shuffle(num_blocks=num_blocks)
        name, value = (
            ("num_blocks", num_blocks)
            if num_blocks is not None
            else ("target_num_rows_per_block", target_num_rows_per_block)
        )
        positive("repartition", name, value)
        return self._made(_plan.Rechunk(self._node, num_blocks, target_num_rows_per_block))

    def union(self, *other: Arrangement) -> Dataset:
        """The rows of this dataset, then those of the others, which have the same columns."""
        for each in other:
            if not isinstance(each, Arrangement):
                raise TypeError(f"union({each!r}): a Dataset")
        return self._made(_plan.Union_((self._node, *(each._node for each in other))))
