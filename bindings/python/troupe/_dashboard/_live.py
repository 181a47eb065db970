"""Pages that change while somebody looks: one stream of server-sent events a tab."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from troupe._dashboard._access import PageSession
from troupe._dashboard._changes import ChangeFeed

STREAMS_MAX = 100
TICK_S = 2.0
"""Free resources and the ages of things are no news of the head: they are looked for so often."""
GAP_S = 0.25
ALIVE_S = 15.0
SLOW_S = 10.0
"""A reader that takes nothing for so long is cut off. It comes back, and gets what is current."""


class Streams:
    """The open streams, `open_count` of them."""

    def __init__(self, feed: ChangeFeed, is_valid: Callable[[PageSession], bool]) -> None:
        self._feed = feed
        self.is_valid = is_valid
        self.open_count = 0
        self._over = asyncio.Event()

    def end(self) -> None:
        """End all streams, since the server stops. On the loop's thread."""
        self._over.set()

    def respond(self, request: Request, render: Callable[[], Mapping[str, str]]) -> Response:
        """Answer with what `render` returns now, and with what of it is another at each change.

        `render` blocks, and is called in a thread.
        """
        session = request.scope["state"]["session"]
        return self.respond_with(self._fragments(session, render))

    def watch(self) -> AbstractContextManager[asyncio.Event]:
        """Give an event that is set at each change, until the end of the block."""
        return self._feed.watch()

    def respond_with(self, texts: AsyncIterator[str]) -> Response:
        """Answer with a stream of events as texts; 503 where there are too many streams."""
        if self.open_count >= STREAMS_MAX:
            return Response("Too many pages are open.\n", 503, {"Retry-After": "10"})
        return _EventStream(self._counted(texts), media_type="text/event-stream")

    async def _counted(self, texts: AsyncIterator[str]) -> AsyncIterator[str]:
        self.open_count += 1
        over = asyncio.ensure_future(self._over.wait())
        try:
            while not over.done():
                following = asyncio.ensure_future(_next_of(texts))
                try:
                    await asyncio.wait((following, over), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not following.done():
                        following.cancel()
                        await asyncio.wait((following,))
                text = None if following.cancelled() else following.result()
                if text is None:
                    return
                yield text
        finally:
            over.cancel()
            self.open_count -= 1

    async def _fragments(
        self, session: PageSession, render: Callable[[], Mapping[str, str]]
    ) -> AsyncIterator[str]:
        told: dict[str, str] = {}
        said_s = time.monotonic()
        with self._feed.watch() as changed:
            while self.is_valid(session):
                changed.clear()
                found = await run_in_threadpool(render)
                news = {name: text for name, text in found.items() if told.get(name) != text}
                told |= news
                if news:
                    yield "".join(event(name, text) for name, text in news.items())
                    said_s = time.monotonic()
                elif time.monotonic() > said_s + ALIVE_S:
                    yield ": still here\n\n"  # finds out whether the reader is
                    said_s = time.monotonic()
                await asyncio.sleep(GAP_S)
                await at_most(changed.wait(), TICK_S)


def event(name: str, text: str) -> str:
    """Return a server-sent event."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n"


async def _next_of(texts: AsyncIterator[str]) -> str | None:
    return await anext(texts, None)


async def at_most(wait: Awaitable[object], seconds: float) -> None:
    """Wait for `wait`, and no longer than `seconds`."""
    try:
        await asyncio.wait_for(wait, seconds)
    except TimeoutError:
        return


class _EventStream(StreamingResponse):
    """A response that never ends by itself, to a reader that has to keep up."""

    async def stream_response(self, send: Send) -> None:
        async def send_in_time(message: object) -> None:
            await asyncio.wait_for(send(message), SLOW_S)  # type: ignore[arg-type]

        try:
            await super().stream_response(send_in_time)
        except TimeoutError:
            return
