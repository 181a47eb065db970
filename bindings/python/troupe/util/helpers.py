"""Ray's `ray.util.as_completed` and `map_unordered`: values in the order in which they are there.

for value in as_completed([work.remote(i) for i in range(100)]): ...
for value in map_unordered(work, paths): ...         # at most 100 of them under way
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import troupe

if TYPE_CHECKING:
    from troupe._actors.handle import ActorMethod
    from troupe._tasks.functions import RemoteFunction

_CHUNK = 10
_UNDER_WAY_MAX = 100


def as_completed(
    refs: Sequence[Any], *, chunk_size: int = _CHUNK, yield_obj_refs: bool = False, **waiting: Any
) -> Iterator[Any]:
    """Yields the values of refs (the refs themselves with `yield_obj_refs`) in batches of
    `chunk_size`, each as soon as so many are there.

    Within a batch the order is that of `refs`. `waiting` is what `troupe.wait` takes besides,
    `timeout` for each batch. Blocks as it is iterated. Raises what a call raised when its turn
    comes, ValueError for a `chunk_size` below 1 and for `num_returns`.
    """
    _check(chunk_size, waiting)
    return _batches(list(refs), iter(()), chunk_size, yield_obj_refs, waiting)


def map_unordered(
    fn: RemoteFunction[..., Any] | ActorMethod[..., Any],
    items: Iterable[Any],
    *,
    backpressure_size: int | None = _UNDER_WAY_MAX,
    chunk_size: int = _CHUNK,
    yield_obj_refs: bool = False,
    **waiting: Any,
) -> Iterator[Any]:
    """Calls a remote function, or a method of an actor, with each of `items` and yields as
    as_completed() does.

    At most `backpressure_size` calls are under way (None: any number), and `items` is read no
    further than that. Raises ValueError for a `chunk_size` below 1 or above `backpressure_size`.
    """
    _check(chunk_size, waiting)
    if backpressure_size is not None and backpressure_size < chunk_size:
        raise ValueError(
            f"backpressure_size={backpressure_size} is below chunk_size={chunk_size}: no batch "
            "would ever be full"
        )
    calls = (fn.remote(item) for item in items)
    return _batches(
        list(itertools.islice(calls, backpressure_size)), calls, chunk_size, yield_obj_refs, waiting
    )


def _check(chunk_size: int, waiting: dict[str, Any]) -> None:
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size!r}")
    if "num_returns" in waiting:
        raise ValueError("num_returns is what chunk_size says here")


def _batches(
    under_way: list[Any],
    more: Iterator[Any],
    chunk_size: int,
    refs_wanted: bool,
    waiting: dict[str, Any],
) -> Iterator[Any]:
    while under_way:
        ready, under_way = troupe.wait(
            under_way, num_returns=min(chunk_size, len(under_way)), **waiting
        )
        under_way.extend(itertools.islice(more, len(ready)))
        yield from ready if refs_wanted else troupe.get(ready)


__all__ = ["as_completed", "map_unordered"]
