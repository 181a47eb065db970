"""A log that is followed: its last lines, and then each line as it comes, as server-sent events.

A process that takes the place of one that has ended is followed in turn: the stream ends with its
reader alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable

from markupsafe import escape
from starlette.concurrency import run_in_threadpool

from troupe import exceptions
from troupe._base import visible as _visible
from troupe._cluster import logs as _logs
from troupe._dashboard._live import ALIVE_S, Streams, at_most, event
from troupe._dashboard._logs import LINES_MAX, clean, last
from troupe._dashboard._reader import ClusterReader

WHOLE, MORE, STATE = "live_log", "more_log", "live_log_state"
BATCHES_MAX = 4
_FOLLOWED = "New lines are shown as they come."
_NOT_BEGUN = "Nothing was written yet."
_ENDED = "What wrote this has ended."


async def follow(
    streams: Streams,
    reader: ClusterReader,
    find: Callable[[], list[_logs.Source]],
    search: str,
    is_valid: Callable[[], bool],
) -> AsyncIterator[str]:
    """Yield events: the last lines, each line that comes, and whether more will.

    `find` returns the streams as they are now; it is called again when those have ended.
    """
    wanted = search.lower()
    seen: list[_logs.Source] | None = None
    with streams.watch() as changed:
        while is_valid():
            changed.clear()
            sources = await run_in_threadpool(find)
            if _targets(sources) != _targets(seen):
                seen = sources
                async for text in _one_life(reader, sources, wanted):
                    yield text
                yield event(STATE, _ENDED if sources else _NOT_BEGUN)
            await at_most(changed.wait(), ALIVE_S)
            yield ": still here\n\n"


def _targets(sources: list[_logs.Source] | None) -> list[object] | None:
    return None if sources is None else [(each.node, each.target) for each in sources]


async def _one_life(
    reader: ClusterReader, sources: list[_logs.Source], wanted: str
) -> AsyncIterator[str]:
    if not sources:
        return
    marks = len({each.label for each in sources}) > 1
    try:
        session = await run_in_threadpool(reader.session)
        shown: deque[str] = deque(maxlen=LINES_MAX)
        starts = []
        for source in sources:
            end = await run_in_threadpool(last, session, source, finished_only=True)
            starts.append(end.next)
            shown.extend(_cleaned(end.lines, source.label if marks else None, wanted))
    except (exceptions.TroupeError, OSError) as error:
        yield event(STATE, str(escape(_visible.text(error))))
        return
    yield event(WHOLE, _spans(shown)) + event(STATE, _FOLLOWED)
    lines = _Lines(_logs.Follower(session, sources, starts))
    try:
        while (batch := await lines.next()) is not None:
            label, found = batch
            text = _spans(_cleaned(found, label if marks else None, wanted))
            yield event(MORE, text) if text else ": nothing that is looked for\n\n"
    finally:
        lines.close()


def _cleaned(lines: Iterable[str], label: object, wanted: str) -> list[str]:
    found = (clean(each, label) for each in lines)
    return [each for each in found if wanted in each.lower()]


def _spans(lines: Iterable[str]) -> str:
    return "".join(f'<span class="line">{escape(each)}</span>' for each in lines)


class _Lines:
    """Batches of a follower's lines, handed from a thread to the loop; the thread waits while
    `BATCHES_MAX` are not taken."""

    def __init__(self, follower: _logs.Follower) -> None:
        self._follower = follower
        self._loop = asyncio.get_running_loop()
        self._batches: asyncio.Queue[tuple[object, list[str]] | None] = asyncio.Queue()
        self._room = threading.Semaphore(BATCHES_MAX)
        self._closed = False
        threading.Thread(target=self._read, name="troupe-follow", daemon=True).start()

    async def next(self) -> tuple[object, list[str]] | None:
        """Return whose lines have come, and the lines, none from time to time; None at the end."""
        try:
            batch = await asyncio.wait_for(self._batches.get(), ALIVE_S)
        except TimeoutError:
            return None, []
        self._room.release()
        return batch

    def close(self) -> None:
        """End the thread, without waiting for it."""
        self._closed = True
        self._follower.leave()
        self._room.release()

    def _read(self) -> None:
        for label, _, finished, _ in self._follower.news():
            if finished:
                self._room.acquire()
                if self._closed:
                    return
                self._put((label, finished))
        self._put(None)

    def _put(self, batch: tuple[object, list[str]] | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._batches.put_nowait, batch)
        except RuntimeError:  # the server has ended
            self._closed = True
