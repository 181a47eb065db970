"""Iteration over one reader's share of a dataset."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from troupe import _pickled, exceptions
from troupe.data import _deal, _errors, _plan, _stream
from troupe.data._errors import DataError
from troupe.data._plan import Travels
from troupe.data._schema import Schema
from troupe.data._take import Takes
from troupe.data._work import Block

if TYPE_CHECKING:
    from troupe.data._dataset import MaterializedDataset


@dataclass(frozen=True)
class Share(Travels):
    """A share's rows: those that reader `index` of `count` is dealt of a plan or, where no reader
    can compute that by itself, those that the `dealer`, an actor or its local equivalent, gives it.
    """

    index: int
    count: int
    equal: bool
    plan: Any = None
    dealer: Any = None


class DataIterator(Takes):
    """A reader's share of a dataset, as `streaming_split` makes them: it can be sent to another
    process, such as a rank, and iterated there.

    Every `for` over what its methods return is an epoch. Of a share that its reader can tell by
    itself (no function changes how many rows there are) readers wait for nobody; else all of them
    take part in each epoch. As Ray's.

        for batch in shard.iter_torch_batches(batch_size=256): ...
    """

    def __init__(
        self,
        share: Share,
        materialize: Callable[[list[Block]], MaterializedDataset],
        epoch: int = 0,
    ) -> None:
        self._share, self._materialized = share, materialize
        self._epoch = epoch
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        dealer = self._share.dealer
        if dealer is not None and hasattr(dealer, "cannot_travel"):
            raise TypeError(dealer.cannot_travel)
        return _pickled.data_iterator, (self._share, self._epoch)

    def __repr__(self) -> str:
        return f"DataIterator({self._share.index} of {self._share.count})"

    def _blocks(self) -> Iterator[Block]:
        with self._lock:
            epoch, self._epoch = self._epoch, self._epoch + 1
        return self._dealt(epoch) if self._share.dealer is not None else self._own(epoch)

    def _own(self, epoch: int) -> Iterator[Block]:
        base, ops = _plan.chain(self._share.plan)
        assert isinstance(base, _plan.Read)  # all other plans have a dealer
        pieces = [(piece, piece.rows or 0) for piece in _plan.in_order(base, epoch)]
        mine = _deal.shares(pieces, self._share.count, equal=self._share.equal)[self._share.index]
        own = tuple(
            piece
            if piece.rows is None or (start, stop) == (0, piece.rows)
            else piece.part(start, stop)
            for piece, start, stop in mine
        )
        node: Any = _plan.replaced(base, own)
        for op in ops:
            node = _plan.Apply(node, op)
        return _stream.blocks(node, _stream.beside(), epoch)

    def _dealt(self, epoch: int) -> Iterator[Block]:
        dealer, index = self._share.dealer, self._share.index
        is_actor = not hasattr(dealer, "cannot_travel")
        while True:
            given = _asked(dealer, index, epoch) if is_actor else dealer.next(index, epoch)
            if given is None:
                return
            for value, start, stop, rows in given:
                block = Block(rows, 0, value)
                table = block.table()
                yield (
                    block
                    if (start, stop) == (0, rows)
                    else Block(stop - start, 0, table.slice(start, stop - start))
                )
                del block, table

    def schema(self) -> Schema | None:
        """Columns and their types; None: they are not known.

        Reads the first block in an epoch of its own.
        """
        source = self._blocks()
        try:
            first = next(source, None)
            table = None if first is None else first.table()
            return None if table is None or not table.num_columns else Schema(table.schema)
        finally:
            source.close()  # type: ignore[attr-defined]

    def materialize(self) -> MaterializedDataset:
        """A MaterializedDataset of one more epoch of it. Blocks."""
        return self._materialized(list(self._blocks()))

    def stats(self) -> str:
        """Return a description of the share."""
        return repr(self)


def _asked(dealer: Any, index: int, epoch: int) -> Any:
    import troupe

    try:
        return troupe.get(dealer.next.remote(index, epoch))
    except exceptions.TaskError as error:
        cause = error.cause
        raise (cause if isinstance(cause, DataError) else error) from None
    except exceptions.ActorError as error:
        raise exceptions.with_type_of(
            _errors.DataError,
            error,
            "the process that deals this dataset to its readers is gone: it ends with the program "
            "that "
            f"called streaming_split(): {error}",
        ) from None


_pickled.named_in("troupe.data", DataIterator)
