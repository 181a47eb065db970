"""Reading what ranks, actors and tasks wrote from the workers that keep it; the last lines of what ended."""
from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from troupe import exceptions
from troupe._cluster import output_rows, workers
from troupe._tracebacks import is_frame_of_runtime

CHUNK_BYTES = 256 << 10
LONG_POLL_MS = 2_000
_TAIL_LINES = 12
_LINES_BEFORE_FATAL = 8


class Source(NamedTuple):
    """One stream: whose it is, at which node's worker, and what that is asked for."""

    label: Any
    node: str
    target: dict
    """launch, rank and epoch, or actor; stderr"""


def of_actor(actor: dict, *, stderr: bool | None = None) -> list[Source]:
    """The streams of an actor, or a process for tasks (as of state.list_actors): stdout and stderr, or one of them.

    Raises ValueError for one that was never placed.
    """
    if not actor["node_id"]:
        raise ValueError(f"actor {actor['actor_id'][:8]} ({actor['state']}) has written nothing: it "
                         f"{'was' if actor['state'] == 'dead' else 'is'} on no node")
    return [Source(is_error, actor["node_id"], {"actor": actor["actor_id"], "stderr": is_error})
            for is_error in (False, True) if stderr in (None, is_error)]


def lines(session: Any, source: Source, *, follow: bool) -> Iterator[str]:
    """Lines of one stream, kept by the worker of its node; of a row that was written again and again, as a progress bar is, the last
    state; a line of more than output_rows.LINE_CHARS_MAX characters in pieces.

    With `follow` it ends when the process has ended and all was read. What a size cap dropped is a line
    that says how much. Raises ConnectionError when the worker cannot be reached.
    """
    for finished, _ in news(session, source, follow=follow):
        yield from finished


def news(session: Any, source: Source, *, follow: bool) -> Iterator[tuple[list[str], list[str]]]:
    """As `lines`, as it comes: (lines that are finished, rows that still change)."""
    link = workers.link(session, source.node)
    offset, rows = 0, output_rows.Rows()
    while True:
        fields = {**source.target, "offset": offset, "bytes_max": CHUNK_BYTES, "wait_ms": LONG_POLL_MS if follow else 0}
        _, chunk, data = link.request("ReadLog", fields, timeout=LONG_POLL_MS / 1000 + 30)
        dropped = [f"... {chunk['dropped_bytes']} bytes of output were dropped here (size cap) ..."] if chunk["dropped_bytes"] else []
        offset = chunk["next"]
        over = chunk["ended"] or (not follow and not data)
        finished = rows.feed(data, ended=over)
        if data or dropped or over:
            yield dropped + finished, rows.live()
        if over:
            return


class Follower:
    """Follows several streams at once; iterating yields (whose, is_stderr, line) as they come.

    One thread per stream, each waiting in a long poll; they end with their streams.
    """

    def __init__(self, session: Any, sources: Sequence[Source]) -> None:
        self._session = session
        self._lines: queue.SimpleQueue = queue.SimpleQueue()
        self._open = len(sources)
        for source in sources:
            threading.Thread(target=self._follow, args=(source,), name="troupe-log", daemon=True).start()

    def _follow(self, source: Source) -> None:
        try:
            for finished, bars in news(self._session, source, follow=True):
                self._lines.put((source.label, source.target["stderr"], finished, bars))
        except exceptions.TroupeError as error:
            self._lines.put((source.label, True, [f"(troupe: no more output from there: {error})"], []))
        finally:
            self._lines.put(None)

    def __iter__(self) -> Iterator[tuple[Any, bool, str]]:
        for label, is_error, finished, _ in self.news():
            for line in finished:
                yield label, is_error, line

    def news(self) -> Iterator[tuple[Any, bool, list[str], list[str]]]:
        """(whose, is_stderr, lines that are finished, rows that still change) as they come."""
        while self._open:
            item = self._lines.get()
            if item is None:
                self._open -= 1
            else:
                yield item


def last_lines(tail: str) -> list[str]:
    """The last lines that a process said. Of a crash: what it said before Python's fault handler did, and where the thread was that
    crashed, without the runtime's frames; what other threads did is of no use."""
    lines = tail.rstrip().splitlines()
    crashed = next((number for number, line in enumerate(lines) if line.startswith("Current thread 0x")), None)
    fatal = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error: ")), crashed)
    if fatal is None:
        return lines[-_TAIL_LINES:]
    before = [line for line in lines[max(fatal - _LINES_BEFORE_FATAL, 0):fatal] if line.strip()]
    kept = [*before, *lines[fatal:fatal + (fatal != crashed)]]
    if crashed is not None:
        thread = [line for line in lines[crashed:] if not is_frame_of_runtime(line)]
        ends = next((number for number, line in enumerate(thread) if number and not line.startswith("  ")), len(thread))
        kept += thread[:min(ends, _TAIL_LINES)]
    return kept
