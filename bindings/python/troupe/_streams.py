"""Methods that yield: the caller's ObjectRefGenerator, and how an actor on an event loop gives its items."""
from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from troupe._bridge import native


class ObjectRefGenerator(native.RefStream):
    """The refs of what a method yields, each when it is there; for `for` and `async for`.

    An exception of the method is the last ref. Taken by `next()` with a wait; `troupe.wait([generator])` tells
    whether the next ref, or the end, is there. Dropped, it ends the method, as `close()` would.
    """

    def completed(self) -> Any:
        """A ref of None that is done when the method is, or of what it raised."""
        return self.answer()

    def next_ready(self) -> bool:
        """Whether `next()` would not wait."""
        return self.front().done()

    def is_finished(self) -> bool:
        """Whether every ref was taken and the method is over."""
        return self.front()._is_end()

    def __aiter__(self) -> AsyncIterator:
        return self

    async def __anext__(self) -> Any:
        front = self.front()
        if not front.done():
            await front._settled()
        taken = self.take()
        if taken is None:
            raise StopAsyncIteration
        return taken

    def __reduce__(self) -> tuple:
        raise TypeError("an ObjectRefGenerator stays in the process that made the call\n"
                        "  pass its refs, or their values")


native.set_stream_type(ObjectRefGenerator)


async def give(items: Any, sink: Any) -> None:
    """Gives what a method of an async actor yields: a step per item of an async generator; a plain one blocks
    the loop between its items, as its code does."""
    try:
        if hasattr(items, "__aiter__"):
            async for item in items:
                if not sink.send(item) and await _stopped(sink):
                    break
        else:
            for item in items:
                if not sink.send(item) and await _stopped(sink):
                    break
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
        elif hasattr(items, "close"):
            items.close()


async def _stopped(sink: Any) -> bool:
    """Waits for room; whether nobody wants more."""
    import asyncio

    room = asyncio.get_running_loop().create_future()
    sink.on_room(lambda: room.done() or room.set_result(None))
    await room
    return sink.stopped
