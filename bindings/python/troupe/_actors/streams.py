"""Methods that yield: the caller's ObjectRefGenerator, and how an actor on an event loop gives its
items."""

from __future__ import annotations

import collections
import types
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from troupe import _pickled, exceptions
from troupe._base import calls as _calls
from troupe._base.bridge import native
from troupe._typed import RefsOf, T

if TYPE_CHECKING:
    import asyncio
    from typing import Never

    from troupe._typed import ObjectRef

NOT_YET = object()  # neither a next item nor the end is there


class ObjectRefGenerator(_calls.RefStream, RefsOf[T]):
    """The refs of what a method yields, each when it is there; for `for` and `async for`.

    An exception of the method is the last ref. Taken by `next()` with a wait;
    `troupe.wait([generator])` tells whether the next ref, or the end, is there. Dropped, it ends
    the method, as `close()` would.
    """

    __class_getitem__: Any = classmethod(
        types.GenericAlias
    )  # ObjectRefGenerator[int], for annotations

    def completed(self) -> ObjectRef[None]:
        """A ref of None that is done when the method is, or of what it raised."""
        return self.answer()

    def next_ready(self) -> bool:
        """Return True if `next()` would not wait."""
        return self.front().done()

    def is_finished(self) -> bool:
        """Return True if every ref was taken and the method is over."""
        return self.front()._is_end()

    def taken_if_there(self) -> Any:
        """The next ref, None for the end, or NOT_YET; does not wait.

        One that asks `front()` and then takes may find nothing: where a call is made again, what
        was in front of it is gone.
        """
        return self.take() if self.front().done() else NOT_YET

    def __aiter__(self) -> AsyncIterator[ObjectRef[T]]:
        return self

    async def __anext__(self) -> ObjectRef[T]:
        while (taken := self.taken_if_there()) is NOT_YET:
            await self.front()._settled()
        if taken is None:
            raise StopAsyncIteration
        found: ObjectRef[T] = taken
        return found

    def __reduce__(self) -> Never:
        raise TypeError(
            "an ObjectRefGenerator stays in the process that made the call\n"
            "  pass its refs, or their values"
        )


native.set_stream_type(ObjectRefGenerator)


class DynamicObjectRefGenerator(RefsOf[T]):
    """The refs of all that a call with `num_returns="dynamic"` yielded: what `get` of its ref
    gives.

    For `for` and `len()`; a ref that was taken is gone from it. An exception of the method is the
    last ref. It can be passed on, and the ref that it came from as well.
    """

    def __init__(self, refs: Iterable[ObjectRef[T]]) -> None:
        self._refs = collections.deque(refs)

    def __iter__(self) -> DynamicObjectRefGenerator[T]:
        return self

    def __next__(self) -> ObjectRef[T]:
        if not self._refs:
            raise StopIteration
        return self._refs.popleft()

    def __len__(self) -> int:
        return len(self._refs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.dynamic_refs, (list(self._refs),)


_sources: dict[
    str, ObjectRefGenerator
] = {}  # by the ref that was given for it, until that has its answer


def gathering(bound: Callable[..., ObjectRefGenerator]) -> Callable[..., Any]:
    """`bound`, a streaming call, but that it gives one ref: of a DynamicObjectRefGenerator, once
    the method is over."""

    def call(*args: Any, **kwargs: Any) -> Any:
        stream, promise = bound(*args, **kwargs), _calls.Promise()
        _sources[promise.ref.hex()] = stream
        _gather(stream, promise, [])
        return promise.ref

    return call


def source_of(ref: Any) -> Any:
    """The stream whose refs `ref` is to hold; any other is given back."""
    return _sources.get(ref.hex(), ref) if _sources and type(ref) is _calls.Ref else ref


def _gather(stream: ObjectRefGenerator, promise: _calls.Promise, refs: list[Any]) -> None:
    """Takes what is there; the rest on threads of the runtime as it comes, so that the method never
    waits for room."""
    while (taken := stream.taken_if_there()) is not None:
        if taken is NOT_YET:
            return _calls.when_done(stream.front(), lambda: _gather(stream, promise, refs))
        refs.append(taken)
    _sources.pop(promise.ref.hex(), None)
    error = exceptions.as_raised(stream.answer().future().exception())
    if error is not None and len(refs) < 2:  # nothing came before it
        return promise.set_error(error)
    try:
        promise.set_value(DynamicObjectRefGenerator(refs))
    except ValueError as too_many:  # refs for one value
        promise.set_error(error or too_many)


async def give(items: Any, sink: Any) -> None:
    """Gives what a method of an async actor yields: a step per item of an async generator; a plain
    one blocks the loop between its items, as its code does.

    Raises:
        asyncio.CancelledError: if the caller wants no more before the method is over, whatever the
        method does with
            the cancellation itself.
    """
    import asyncio

    try:
        if hasattr(items, "__aiter__"):
            async for item in items:
                if not sink.send(item) and await _stopped(sink):
                    raise asyncio.CancelledError
        else:
            for item in items:
                if not sink.send(item) and await _stopped(sink):
                    raise asyncio.CancelledError
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
        elif hasattr(items, "close"):
            items.close()


def _finish_wait(room: asyncio.Future[None]) -> None:
    """Set the future's result, unless whoever waited for it was cancelled."""
    if not room.done():
        room.set_result(None)


async def _stopped(sink: Any) -> bool:
    """Waits for room; whether nobody wants more."""
    import asyncio

    loop = asyncio.get_running_loop()
    room = loop.create_future()
    # The thread that hears of it may be another than this loop's: a concurrency group has its own.
    sink.on_room(lambda: loop.call_soon_threadsafe(_finish_wait, room))
    await room
    return bool(sink.stopped)


@_pickled.maker("dynamic_refs")
def _dynamic_refs(refs: Sequence[Any]) -> Any:
    """The refs of all that a call with num_returns="dynamic" yielded."""
    return DynamicObjectRefGenerator(refs)
