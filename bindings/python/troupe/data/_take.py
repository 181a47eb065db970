"""Readers of a dataset, or of a share of one, as rows, batches or tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from troupe.data import _batches, _blocks
from troupe.data._arrow import need

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

    from troupe.data._work import Block

_ROWS_AT_ONCE = 4096


class Epochs:
    """Something to go through as often as one likes: each time is an epoch."""

    def __init__(self, begin: Callable[[], Iterator[Any]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[Any]:
        return self._begin()


class Takes(ABC):
    """The methods that go through all rows.

    Each `for` over what they return carries the plan out once more.
    """

    @abstractmethod
    def _blocks(self) -> Iterator[Block]:
        """The blocks of one more epoch."""

    def _tables(self) -> Iterator[tuple[pa.Table, bool]]:
        source = self._blocks()
        try:
            for block in source:
                yield block.table(), block.own
                del block
        finally:
            source.close()  # type: ignore[attr-defined]

    def iter_rows(self) -> Iterable[dict[str, Any]]:
        """The rows, as dicts of plain values and numpy arrays.

        Blocks where the next rows are not there yet. Raises DataError for what cannot be read or
        mapped.

            for row in ds.iter_rows(): ...
        """

        def begin() -> Iterator[dict[str, Any]]:
            for table, _ in _batches.alike(self._tables()):
                for start in range(0, table.num_rows, _ROWS_AT_ONCE):
                    yield from _blocks.rows_of(table.slice(start, _ROWS_AT_ONCE))

        return Epochs(begin)

    def iter_batches(
        self,
        *,
        prefetch_batches: int = 1,
        batch_size: int | None = 256,
        batch_format: str | None = "default",
        drop_last: bool = False,
        local_shuffle_buffer_size: int | None = None,
        local_shuffle_seed: int | None = None,
        _collate_fn: Callable[[Any], Any] | None = None,
    ) -> Iterable[Any]:
        """Batches of `batch_size` rows (None: as blocks come): dicts of numpy arrays ("numpy", the
        default), DataFrames ("pandas") or pyarrow Tables.

        Arrays may be read-only views. `drop_last`: not the last one where it has fewer rows.
        `local_shuffle_buffer_size`: rows that are held to take one by chance. `prefetch_batches`:
        how many are made ahead where making them takes a function or a copy. Blocks where the next
        one is not there yet. Raises ValueError for arguments that can never be right, DataError for
        what cannot be read or mapped.

            for batch in ds.iter_batches(batch_size=1024): batch["x"].mean()
        """
        name = _blocks.format_of(batch_format, "iter_batches")
        form: _batches.Form = _batches.Columns() if name == "numpy" else _batches.Tables(name)
        return self._epochs(
            form,
            "iter_batches",
            batch_size,
            drop_last,
            local_shuffle_buffer_size,
            local_shuffle_seed,
            prefetch_batches,
            _collate_fn,
        )

    def iter_torch_batches(
        self,
        *,
        prefetch_batches: int = 1,
        batch_size: int | None = 256,
        dtypes: torch.dtype | Mapping[str, torch.dtype] | None = None,
        device: str | int | torch.device | None = "auto",
        collate_fn: Callable[[Any], Any] | None = None,
        drop_last: bool = False,
        local_shuffle_buffer_size: int | None = None,
        local_shuffle_seed: int | None = None,
        pin_memory: bool = False,
    ) -> Iterable[Any]:
        """Batches as dicts of torch tensors, which may be written to, on `device` ("auto": the
        worker's GPU in a training, else the CPU).

        `dtypes`: a torch dtype of all columns, or by name. `collate_fn`: is given a batch as a dict
        of numpy arrays, and makes of it what is handed out; its tensors go to the device too.
        `pin_memory`: copies to a GPU do not wait. The rest as iter_batches(). Raises TypeError for
        a column that is no tensor, DataError for what cannot be read or mapped.

            for batch in ds.iter_torch_batches(batch_size=1024): loss = model(batch["x"])
        """
        need("torch", "iter_torch_batches()")
        from troupe.data import _tensors

        if collate_fn is not None and dtypes is not None:
            raise ValueError(
                "iter_torch_batches(collate_fn=..., dtypes=...): one of them; collate_fn makes "
                "tensors of the types it likes"
            )
        form: _batches.Form = _tensors.Tensors(dtypes) if collate_fn is None else _batches.Columns()
        target = _tensors.device_of(device)
        moves = target is not None or pin_memory
        make = None
        if collate_fn is not None or moves:

            def make(batch: Any) -> Any:
                return _tensors.to_device(
                    batch if collate_fn is None else collate_fn(batch), target, pin=pin_memory
                )

        return self._epochs(
            form,
            "iter_torch_batches",
            batch_size,
            drop_last,
            local_shuffle_buffer_size,
            local_shuffle_seed,
            prefetch_batches,
            make,
        )

    def _epochs(
        self,
        form: _batches.Form,
        what: str,
        size: int | None,
        drop_last: bool,
        buffer: int | None,
        seed: int | None,
        prefetch: int,
        then: Callable[[Any], Any] | None,
    ) -> Epochs:
        for name, value, least in (
            ("batch_size", size, 1),
            ("local_shuffle_buffer_size", buffer, 1),
            ("prefetch_batches", prefetch, 0),
        ):
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int) or value < least
            ):
                raise ValueError(f"{what}({name}={value!r}): a whole number of at least {least}")
        if seed is not None and buffer is None:
            raise ValueError(
                f"{what}(local_shuffle_seed={seed}) is of a shuffle that needs "
                "local_shuffle_buffer_size"
            )

        def begin() -> Iterator[Any]:
            tables = self._tables()
            if buffer is not None:
                tables = _batches.shuffled(tables, max(buffer, size or 0), seed)
            made = _batches.batches(tables, form, size, drop_last=drop_last)
            return made if then is None else _batches.ahead(made, prefetch, then)

        return Epochs(begin)
