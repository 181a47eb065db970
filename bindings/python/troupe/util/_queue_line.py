"""The state of a queue's actor: items in order, getters that wait for one, and putters that wait
for room.

For one event loop; no processes.
"""

from __future__ import annotations

import asyncio
import collections
from typing import Any


class Line:
    """First in, first out, for items and for those who wait.

    QL-1  Who waits longest gets the next item; nobody is overtaken by one that came later and does
    not wait. QL-2  An item is in the line, or one getter's alone. What a getter was given and did
    not take goes back to the front. QL-3  There are no more items than `room`, those given back
    aside.
    """

    def __init__(self, room: int | None) -> None:
        self._room = room
        self._items: collections.deque[Any] = collections.deque()
        self._getters: collections.deque[asyncio.Future[Any]] = collections.deque()
        self._putters: collections.deque[tuple[asyncio.Future[None], Any]] = collections.deque()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def free(self) -> int | None:
        """How many items may be added now; None: any number."""
        return None if self._room is None else max(0, self._room - len(self._items))

    def add(self, items: list[Any]) -> None:
        """Adds items for which there is room."""
        self._items.extend(items)
        self._settle()

    def take(self, count: int) -> list[Any]:
        """The first items, of which there are as many."""
        taken = [self._items.popleft() for _ in range(count)]
        self._settle()
        return taken

    async def get(self, timeout: float | None) -> Any:
        """The next item; TimeoutError."""
        if self._items:
            return self.take(1)[0]
        return await self._waited(self._getters, self._future(), timeout)

    async def put(self, item: Any, timeout: float | None) -> None:
        """Adds an item when there is room; TimeoutError."""
        if self.free != 0 and not self._putters:
            return self.add([item])
        await self._waited(self._putters, (self._future(), item), timeout)
        return None

    def give_back(self, item: Any) -> None:
        """An item that was got, and is not taken: it is the first again."""
        self._items.appendleft(item)
        self._settle()

    def _future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    async def _waited(self, line: collections.deque[Any], entry: Any, timeout: float | None) -> Any:
        future = entry if isinstance(entry, asyncio.Future) else entry[0]
        line.append(entry)
        try:
            await asyncio.wait([future], timeout=timeout)
        except BaseException:  # the getter was cancelled, perhaps when it had its item
            if future.done() and line is self._getters:
                self.give_back(future.result())
            elif not future.done():
                line.remove(entry)
            raise
        if future.done():
            return future.result()
        line.remove(entry)
        raise TimeoutError

    def _settle(self) -> None:
        """Gives to those who wait what they can have now."""
        while True:
            if self._items and self._getters:
                self._getters.popleft().set_result(self._items.popleft())
            elif self._putters and self.free != 0:
                future, item = self._putters.popleft()
                self._items.append(item)
                future.set_result(None)
            else:
                return
