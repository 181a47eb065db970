"""Reading what ranks, actors and tasks wrote from the workers that keep it; the last lines of what
ended."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

from troupe import exceptions
from troupe._base.tracebacks import CppFrames, is_frame_of_runtime
from troupe._cluster import output_rows, signals, workers

CHUNK_BYTES = 256 << 10
CHUNK_BYTES_LEAST = 4 << 10
HELD_BYTES_MAX = 16 << 20
# answers that are read and not yet taken, beside the one that the thread of each stream holds
HELD_MAX = 16
LONG_POLL_MS = 2_000
ANSWER_S = 5.0  # for the last answer of a worker
_TAIL_LINES = 12
_LINES_BEFORE_FATAL = 8


class Source(NamedTuple):
    """A log stream: its label, the worker of its node, and the stream's name there."""

    label: Any
    node: str
    target: dict[str, Any]
    """launch, rank and epoch, or actor; stderr"""
    again: Callable[[], Source | None] | None = None
    """Asked once its process has ended, by who follows it: waits until another one may write there,
    or at another node; None: none will"""


def of_actor(actor: dict[str, Any], *, stderr: bool | None = None) -> list[Source]:
    """The streams of an actor, or a process for tasks (as of state.list_actors): stdout and stderr,
    or one of them.

    Raises ValueError for one that was never placed.
    """
    if not actor["node_id"]:
        raise ValueError(
            f"actor {actor['actor_id'][:8]} ({actor['state']}) has written nothing: it "
            f"{'was' if actor['state'] == 'dead' else 'is'} on no node"
        )
    return [
        Source(is_error, actor["node_id"], {"actor": actor["actor_id"], "stderr": is_error})
        for is_error in (False, True)
        if stderr in (None, is_error)
    ]


def lines(session: Any, source: Source, *, follow: bool) -> Iterator[str]:
    """Lines of one stream, kept by the worker of its node; of a row that was written again and
    again, as a progress bar is, the last state; a line of more than output_rows.LINE_CHARS_MAX
    characters in pieces.

    With `follow` it ends when the process has ended and all was read. What a size cap dropped is a
    line that says how much. Raises ConnectionError when the worker cannot be reached.
    """
    for finished, _ in news(session, source, follow=follow):
        yield from finished


def news(
    session: Any,
    source: Source,
    *,
    follow: bool,
    until: Callable[[], float | None] | None = None,
    bytes_max: int = CHUNK_BYTES,
    start: int = 0,
) -> Iterator[tuple[list[str], list[str]]]:
    """As `lines`, as it comes: (lines that are finished, rows that still change).

    `until`: the time (of `time.monotonic`) from which on only what is there is read, None: there is
    no such time yet. `bytes_max`: of one answer. `start`: where the first line begins.
    """
    offset, rows = start, output_rows.Rows()
    while True:
        lost: exceptions.TroupeError | None = None
        try:
            link = workers.link(session, source.node)
            with link.follower():
                offset = yield from _chunks(link, source, follow, until, bytes_max, offset, rows)
        except exceptions.TroupeError as error:
            if source.again is None:
                raise
            # with its node, perhaps: what takes its place is elsewhere, once there is such news
            lost = error
        following = source.again() if follow and source.again is not None else None
        if following is None:
            if lost is not None:
                raise lost
            return
        if following.node != source.node:
            offset = 0
        source = following


def raw(session: Any, source: Source) -> Iterator[bytes]:
    """The bytes of a stream that are there, as they were written.

    What a size cap dropped is a line that says how much.
    """
    offset = 0
    link = workers.link(session, source.node)
    while True:
        fields = {**source.target, "offset": offset, "bytes_max": CHUNK_BYTES, "wait_ms": 0}
        _, chunk, data = link.read_log(fields, timeout=LONG_POLL_MS / 1000 + 30)
        offset = chunk["next"]
        if chunk["dropped_bytes"]:
            yield (
                f"... {chunk['dropped_bytes']} bytes of output were dropped here (size cap) ...\n"
            ).encode()
        if not data:
            return
        yield data


def _chunks(
    link: workers.Link,
    source: Source,
    follow: bool,
    until: Callable[[], float | None] | None,
    bytes_max: int,
    offset: int,
    rows: output_rows.Rows,
) -> Generator[tuple[list[str], list[str]], None, int]:
    """Until its process has ended. Returns the offset of what comes next."""
    while True:
        wait_ms = LONG_POLL_MS if follow else 0
        if until is not None and (end := until()) is not None:
            wait_ms = min(wait_ms, max(0, round((end - time.monotonic()) * 1000)))
        fields = {**source.target, "offset": offset, "bytes_max": bytes_max, "wait_ms": wait_ms}
        _, chunk, data = link.read_log(fields, timeout=LONG_POLL_MS / 1000 + 30)
        offset = chunk["next"]
        over = chunk["ended"] or (wait_ms == 0 and not data)
        before: list[str] = []
        if chunk["dropped_bytes"]:
            before, data = rows.after_gap(chunk["dropped_bytes"], data)
        finished = rows.feed(data, ended=over)
        if data or before or over:
            yield before + finished, rows.live()
        if over:
            return offset


class Follower:
    """Follows several streams at once; iterating yields (whose, is_stderr, line) as they come.

    One thread per stream, each waiting in a long poll; they end with their streams, and with the
    iteration. What is read and not yet taken is bounded, however many streams there are: the rest
    of what is taken more slowly than it is written lies in the files of the workers.
    """

    def __init__(self, session: Any, sources: Sequence[Source], starts: Sequence[int] = ()) -> None:
        """`starts`: where the first line of each stream begins; none given: at its beginning."""
        self._session = session
        self._sources = list(sources)
        self._starts = list(starts) or [0] * len(self._sources)
        self._bytes_max = max(
            CHUNK_BYTES_LEAST, min(CHUNK_BYTES, HELD_BYTES_MAX // max(1, len(sources)))
        )
        lock = threading.Lock()
        self._come, self._room = threading.Condition(lock), threading.Condition(lock)
        self._items: deque[tuple[Any, bool, list[str], list[str]]] = deque()
        self._reading = set(range(len(sources)))
        self._left = False
        self._until: float | None = None

    def end(self, wait_s: float) -> None:
        """From `wait_s` seconds on only what is there is still read.

        Does not block; the iteration ends after that.
        """
        with self._come:
            if self._until is None:
                self._until = time.monotonic() + wait_s
            self._come.notify_all()

    def leave(self) -> None:
        """Ends the iteration. Does not block."""
        with self._come:
            self._left = True
            self._come.notify_all()
            self._room.notify_all()

    def __iter__(self) -> Iterator[tuple[Any, bool, str]]:
        for label, is_error, finished, _ in self.news():
            for line in finished:
                yield label, is_error, line

    def news(self) -> Iterator[tuple[Any, bool, list[str], list[str]]]:
        """Yield (label, is_stderr, finished lines, rows that still change) as they come.

        Once only.
        """
        for number in range(len(self._sources)):
            threading.Thread(
                target=self._follow, args=(number,), name="troupe-log", daemon=True
            ).start()
        try:
            while (item := self._take()) is not None:
                yield item
        finally:
            self.leave()
            self._items.clear()

    def _take(self) -> tuple[Any, bool, list[str], list[str]] | None:
        """The next one; None: there is none any more."""
        heard = time.monotonic()
        with self._come:
            while not self._items or self._left:
                if self._left or not self._reading:
                    return None
                left = (
                    None
                    if self._until is None
                    else max(heard, self._until) + ANSWER_S - time.monotonic()
                )
                if left is not None and left <= 0:
                    return self._silence()
                self._come.wait(signals.at_most(left))
            self._room.notify()
            return self._items.popleft()

    def _silence(self) -> tuple[Any, bool, list[str], list[str]]:
        """Give up a stream whose worker did not answer, and return a line that says so."""
        source = self._sources[self._reading.pop()]
        return (
            source.label,
            True,
            [f"(troupe: no more output from there: its node did not answer for {ANSWER_S:g} s)"],
            [],
        )

    def _follow(self, number: int) -> None:
        source = self._sources[number]
        try:
            for finished, bars in news(
                self._session,
                source,
                follow=True,
                until=lambda: self._until,
                bytes_max=self._bytes_max,
                start=self._starts[number],
            ):
                if not self._put(number, (source.label, source.target["stderr"], finished, bars)):
                    return
        except exceptions.TroupeError as error:
            self._put(
                number, (source.label, True, [f"(troupe: no more output from there: {error})"], [])
            )
        finally:
            with self._come:
                self._reading.discard(number)
                self._come.notify()

    def _put(self, number: int, item: tuple[Any, bool, list[str], list[str]]) -> bool:
        """Blocks while as much as may be is held; whether more of this stream is wanted."""
        with self._room:
            while len(self._items) >= HELD_MAX and not self._left:
                self._room.wait()
            if self._left or number not in self._reading:
                return False
            self._items.append(item)
            self._come.notify()
            return True


def last_lines(tail: str) -> list[str]:
    """The last lines that a process said.

    Of a crash: what it said before Python's fault handler did, and where the thread was that
    crashed, without the runtime's frames; what other threads did is of no use. Of torch's errors
    the C++ frames are left out.
    """
    lines = CppFrames("... C++ frames left out here ...", inside=True).filter(
        tail.rstrip().splitlines()
    )
    crashed = next(
        (number for number, line in enumerate(lines) if line.startswith("Current thread 0x")), None
    )
    fatal = next(
        (number for number, line in enumerate(lines) if line.startswith("Fatal Python error: ")),
        crashed,
    )
    if fatal is None:
        return lines[-_TAIL_LINES:]
    before = [line for line in lines[max(fatal - _LINES_BEFORE_FATAL, 0) : fatal] if line.strip()]
    kept = [*before, *lines[fatal : fatal + (fatal != crashed)]]
    if crashed is not None:
        thread = [line for line in lines[crashed:] if not is_frame_of_runtime(line)]
        ends = next(
            (number for number, line in enumerate(thread) if number and not line.startswith("  ")),
            len(thread),
        )
        kept += thread[: min(ends, _TAIL_LINES)]
    return kept
