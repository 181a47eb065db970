"""Queue: first in, first out, between processes; its items are kept by an async actor."""
from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterable, Mapping
from typing import Any

import troupe
from troupe import exceptions


class Empty(queue.Empty):
    """Nothing came in time."""


class Full(queue.Full):
    """There was no room in time."""


class _Keeper:
    """The actor behind a queue."""

    def __init__(self, maxsize: int) -> None:
        self._items: asyncio.Queue[Any] = asyncio.Queue(maxsize)
        self._maxsize = maxsize

    def qsize(self) -> int:
        return self._items.qsize()

    async def put(self, item: Any, timeout: float | None) -> None:
        try:
            await asyncio.wait_for(self._items.put(item), timeout)
        except asyncio.TimeoutError:
            raise Full(f"no room within {timeout:g} s") from None

    async def get(self, timeout: float | None) -> Any:
        try:
            return await asyncio.wait_for(self._items.get(), timeout)
        except asyncio.TimeoutError:
            raise Empty(f"no item within {timeout:g} s") from None

    def put_nowait(self, items: list[Any]) -> None:
        room = self._maxsize - self._items.qsize() if self._maxsize > 0 else len(items)
        if len(items) > room:
            raise Full(f"no room: {self._items.qsize()} of {self._maxsize} items are there, and {len(items)} more were put")
        for item in items:
            self._items.put_nowait(item)

    def get_nowait(self, count: int) -> list[Any]:
        if count > self._items.qsize():
            raise Empty(f"items asked for: {count}, there: {self._items.qsize()}")
        return [self._items.get_nowait() for _ in range(count)]


class Queue:
    """A queue that any process with the object may use; `maxsize` 0 or less: without a limit.

    `actor_options` are those of its actor. Errors are Empty and Full, which are also those of the module `queue`.
    """

    def __init__(self, maxsize: int = 0, actor_options: Mapping[str, Any] | None = None) -> None:
        self.maxsize = maxsize
        self.actor = troupe.remote(_Keeper).options(**dict(actor_options or {})).remote(maxsize)

    def __len__(self) -> int:
        return self.size()

    def size(self) -> int:
        """How many items there are."""
        return troupe.get(self.actor.qsize.remote())

    qsize = size

    def empty(self) -> bool:
        """Whether there is none."""
        return self.size() == 0

    def full(self) -> bool:
        """Whether there is no room."""
        return 0 < self.maxsize <= self.size()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Adds an item, waiting for room unless not `block`. Raises Full, after `timeout` seconds."""
        if not block:
            return self.put_nowait(item)
        return _answer(self.actor.put.remote(item, _checked(timeout)))

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Takes an item, waiting for one unless not `block`. Raises Empty, after `timeout` seconds."""
        if not block:
            return self.get_nowait()
        return _answer(self.actor.get.remote(_checked(timeout)))

    async def put_async(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """put(), to be awaited."""
        await _awaited(self.actor.put.remote(item, _checked(timeout)) if block else self.actor.put_nowait.remote([item]))

    async def get_async(self, block: bool = True, timeout: float | None = None) -> Any:
        """get(), to be awaited."""
        if block:
            return await _awaited(self.actor.get.remote(_checked(timeout)))
        return (await _awaited(self.actor.get_nowait.remote(1)))[0]

    def put_nowait(self, item: Any) -> None:
        """Adds an item, or raises Full."""
        self.put_nowait_batch([item])

    def put_nowait_batch(self, items: Iterable[Any]) -> None:
        """Adds all of them, or raises Full."""
        if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
            raise TypeError(f"put_nowait_batch() takes several items, not a {type(items).__name__}")
        _answer(self.actor.put_nowait.remote(list(items)))

    def get_nowait(self) -> Any:
        """Takes an item, or raises Empty."""
        return self.get_nowait_batch(1)[0]

    def get_nowait_batch(self, num_items: int) -> list[Any]:
        """Takes that many, or raises Empty."""
        if not isinstance(num_items, int) or num_items < 0:
            raise TypeError("get_nowait_batch() takes a number of items, 0 or more")
        return _answer(self.actor.get_nowait.remote(num_items))

    def shutdown(self, force: bool = False, grace_period_s: float = 5) -> None:
        """Ends the queue: after the calls made before, `grace_period_s` seconds at most; at once with `force`."""
        if not force:
            try:
                troupe.get(self.actor.__ray_terminate__.remote(), timeout=grace_period_s)
            except exceptions.ActorDiedError:
                return
            except exceptions.GetTimeoutError:
                pass
        troupe.kill(self.actor)


def _answer(ref: Any) -> Any:
    """What the keeper answers; Empty and Full as they are, without where in the keeper they were raised."""
    try:
        return troupe.get(ref)
    except (Empty, Full) as error:
        raise error.cause from None


async def _awaited(ref: Any) -> Any:
    try:
        return await ref
    except (Empty, Full) as error:
        raise error.cause from None


def _checked(timeout: float | None) -> float | None:
    if timeout is not None and timeout < 0:
        raise ValueError("timeout must be a number of seconds, 0 or more")
    return timeout
