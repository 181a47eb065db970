"""Logs as the pages show them: the last lines, the lines that have a word, and new lines as they
come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe import exceptions
from troupe._base import visible as _visible
from troupe._cluster import logs as _logs, output_rows, workers
from troupe._dashboard._reader import REQUEST_S, ClusterReader
from troupe.launch import _logs as _launch_logs

TAIL_BYTES = 128 << 10
LINES_MAX = 500
LINE_CHARS_MAX = 4000
RANKS_MAX = 32
"""Ranks of a launch that are shown at once; one of the others is shown alone."""
_PROBES_MAX = 64


@dataclass(frozen=True)
class LogLines:
    """Lines of one or several streams.

    `is_whole`: nothing was left out before them. `failed`: why there are no more.
    """

    lines: list[str] = field(default_factory=list)
    is_whole: bool = True
    failed: str = ""


def sources_of_launch(info: Mapping[str, Any], rank: int | None) -> list[_logs.Source]:
    """Return the streams of a launch's present epoch: of one rank, or of the first `RANKS_MAX`.

    The output of a job is the stderr of its only rank.
    """
    chosen = [each for each in info["rank_infos"] if rank is None or each["rank"] == rank]
    return _launch_logs.sources(dict(info), chosen[:RANKS_MAX])


def sources_of_actor(actor: dict[str, Any]) -> list[_logs.Source]:
    """Return the streams of an actor; none for one that was never placed."""
    return _logs.of_actor(actor) if actor["node_id"] else []


def tail(reader: ClusterReader, sources: list[_logs.Source], search: str = "") -> LogLines:
    """Return the last lines of these streams, those alone that have the text `search`.

    A search reads all that the workers keep, a tail only its end.
    """
    shown: deque[str] = deque(maxlen=LINES_MAX)
    is_whole, failed = True, []
    marks = len({each.label for each in sources}) > 1
    for source in sources:
        try:
            session = reader.session()
            if search:
                found: Iterable[str] = _matching(session, source, search)
                lines = deque(found, LINES_MAX)
                whole = len(lines) < LINES_MAX
            else:
                end = last(session, source)
                lines, whole = end.lines, end.is_whole
        except (exceptions.TroupeError, OSError) as error:
            failed.append(str(error))
            continue
        is_whole = is_whole and whole and len(shown) + len(lines) <= LINES_MAX
        shown.extend(clean(each, source.label if marks else None) for each in lines)
    return LogLines(list(shown), is_whole, "\n".join(dict.fromkeys(failed)))


def clean(line: str, label: Any = None) -> str:
    """Return a line as it is shown: what a terminal would obey is left out, and the end of a very
    long one."""
    more = len(line) - LINE_CHARS_MAX
    shown = _visible.text(line[:LINE_CHARS_MAX]).rstrip("\n")
    if more > 0:
        shown += f" ... {more} more characters"
    return shown if label is None else f"[{label}] {shown}"


def _matching(session: Any, source: _logs.Source, search: str) -> Iterable[str]:
    wanted = search.lower()
    return (
        each
        for each in _logs.lines(session, source, follow=False)
        if wanted in _visible.text(each).lower()
    )


@dataclass(frozen=True)
class StreamEnd:
    """The last lines of one stream.

    `is_whole`: they are all that it has. `next`: where the line begins that is not finished yet,
    which is not among them if it was asked so.
    """

    lines: deque[str]
    is_whole: bool
    next: int


def last(session: Any, source: _logs.Source, *, finished_only: bool = False) -> StreamEnd:
    """Return the end of a stream. Blocks.

    Raises TroupeError where its node does not answer.
    """
    link = workers.link(session, source.node)
    offset = _offset_of_tail(link, source)
    rows = output_rows.Rows()
    lines: deque[str] = deque(maxlen=LINES_MAX)
    is_first, left = True, 2 * TAIL_BYTES  # the file may grow meanwhile
    following = offset
    while left > 0:
        start, chunk, data = _read(link, source, offset, TAIL_BYTES)
        if chunk["dropped_bytes"] and is_first:
            is_first, offset, following = False, start, start
        if not data:
            break
        if b"\n" in data:
            following = chunk["next"] - (len(data) - data.rindex(b"\n") - 1)
        if is_first and offset:  # the line before may be cut
            data = data.partition(b"\n")[2] or data
        is_first = False
        lines.extend(rows.feed(data))
        offset, left = chunk["next"], left - len(data)
    if not finished_only:
        lines.extend(rows.feed(b"", ended=True))
    return StreamEnd(lines, offset <= TAIL_BYTES, following)


def _offset_of_tail(link: workers.Link, source: _logs.Source) -> int:
    """Return where the last TAIL_BYTES begin; 0 where the stream has no more. A worker tells no
    sizes, so it is asked whether there is anything at an offset."""
    low, high = 0, TAIL_BYTES
    for _ in range(_PROBES_MAX):
        start, _, data = _read(link, source, high, 1)
        if not data:
            break
        low, high = max(high, start), max(high, start) * 2
    else:
        return low
    while high - low > TAIL_BYTES // 4:
        middle = (low + high) // 2
        if _read(link, source, middle, 1)[2]:
            low = middle
        else:
            high = middle
    return max(0, high - TAIL_BYTES)


def _read(
    link: workers.Link, source: _logs.Source, offset: int, size: int
) -> tuple[int, dict[str, Any], bytes]:
    """Return the offset of what was read, the LogChunk and the bytes."""
    fields = {**source.target, "offset": offset, "bytes_max": size, "wait_ms": 0}
    _, chunk, data = link.read_log(fields, timeout=REQUEST_S)
    return int(chunk["offset"]), chunk, bytes(data)
