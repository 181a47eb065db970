"""DataLoader: torch's, with defaults for files that are fetched, and a position that goes into a
checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import torch.utils.data

NUM_WORKERS, PREFETCH_FACTOR = 6, 4
_POSITION = "batches"


@runtime_checkable
class Checkpointable(Protocol):
    """An object whose state goes into a checkpoint and comes back from one."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state, which `torch.save` can write."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from that state."""


class DataLoader(torch.utils.data.DataLoader):  # type: ignore[misc]
    """torch's DataLoader with 6 workers that stay between epochs and fetch 4 batches ahead, and
    with `state_dict()`.

    The state counts batches that the program has taken in this epoch. After `load_state_dict` the
    next iteration begins behind them: they are fetched again and dropped, so that the order is the
    same. Arguments are torch's; `num_workers=0` is taken as it is.

    Example:
        loader = DataLoader(dataset, batch_size=32)
        loader.load_state_dict(checkpoint["loader"])
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        *args: Any,
        num_workers: int = NUM_WORKERS,
        prefetch_factor: int | None = None,
        persistent_workers: bool | None = None,
        **more: Any,
    ) -> None:
        if num_workers > 0:
            prefetch_factor = PREFETCH_FACTOR if prefetch_factor is None else prefetch_factor
        super().__init__(
            dataset,
            batch_size,
            *args,
            num_workers=num_workers,
            prefetch_factor=prefetch_factor,
            persistent_workers=num_workers > 0
            if persistent_workers is None
            else persistent_workers,
            **more,
        )
        self._taken = 0
        self._dropped = 0

    def __iter__(self) -> Iterator[Any]:
        drop, self._dropped = self._dropped, 0
        self._taken = 0
        for batch in super().__iter__():
            self._taken += 1
            if self._taken > drop:
                yield batch
        self._taken = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the position: how many batches of this epoch the program has taken."""
        return {_POSITION: self._taken or self._dropped}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Begin the next iteration behind the batches of `state`.

        Raises ValueError for what is no state of a loader.
        """
        taken = state.get(_POSITION) if isinstance(state, dict) else None
        if isinstance(taken, bool) or not isinstance(taken, int) or taken < 0:
            raise ValueError(f"this is no state of a DataLoader: {state!r}")
        self._dropped = taken
