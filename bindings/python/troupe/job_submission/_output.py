"""The log of a job: read whole, its last lines, or followed over attempts until the job has ended.

Followed by byte offset: a link to the node's worker that breaks is made anew, and reading goes on
where it was. The end is the completion marker, never the end of a connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from troupe import exceptions
from troupe._cluster import logs as _logs, output_rows, workers
from troupe.launch._handle import LaunchHandle

KEPT_BYTES = 1 << 20  # kKeptLogBytes of head/core/launched/jobs/kept_logs.h
AGAIN_S = 1.0  # between two tries to reach a node of which nothing is heard


def read(
    session: Any,
    info: dict[str, Any],
    *,
    previous: bool = False,
    since_s: float | None = None,
) -> Iterator[str]:
    """Yield the lines that a job has written in its present attempt, or in the one before.

    With `since_s` only those of the last so many seconds, to about a second.

    Where the node that keeps the log does not answer, or has it no more, and the job has ended: the
    last KEPT_BYTES, which the head keeps, after a line that says so.

    Raises:
        ValueError: for `previous` of a job in its first attempt.
        ConnectionError: if the node does not answer, and the job has not ended.
    """
    if previous:
        if info["epoch"] < 2:
            raise ValueError("this is the first attempt of the job: there is no previous one")
        yield from _of_attempt(session, info, info["epoch"] - 1, since_s)
        return
    node = _node_of(info)
    if not node:
        return
    try:
        source = _source(info, node, info["epoch"], since_s)
        yield from _logs.lines(session, source, follow=False)
    except exceptions.TroupeError as error:
        if info["state"] != "terminal":
            raise
        yield from _kept(session, info, error)


def _kept(session: Any, info: dict[str, Any], error: Exception, start: int = 0) -> list[str]:
    """Return what the head keeps of a log whose node does not give it, from byte `start` on, after
    a line that says so; of a log that it has not, the last lines of its failure."""
    reason = str(error).partition("\n")[0]
    data, offset, ended = b"", start, False
    try:
        while not ended:
            fields = {"launch": info["launch"], "epoch": info["epoch"], "offset": offset}
            _, chunk, piece = session.request("ReadLog", {**fields, "bytes_max": KEPT_BYTES})
            data += bytes(piece)
            offset, ended = chunk["next"], chunk["ended"]
    except exceptions.TroupeError:
        told = f"(troupe: {reason}; the last lines that are kept with the end of the job:)"
        return [told, *info["failure"]["log_tail"].splitlines()]
    told = f"(troupe: {reason}; the head keeps only the last {KEPT_BYTES >> 20} MiB of it:)"
    return [told, *output_rows.Rows().feed(data, ended=True)]


def last(lines: Iterable[str], count: int | None) -> Iterable[str]:
    """Return the last `count` of the lines, all of them for None."""
    return lines if count is None else deque(lines, count)


def follow(
    handle: LaunchHandle,
    tail: int | None = None,
    *,
    since_s: float | None = None,
    idle_s: float | None = None,
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield (attempt, lines that are finished, rows that still change) of all attempts from the
    present one on, until the job has ended.

    Blocks. A node that does not answer is asked again until the job goes on elsewhere or ends.

    Args:
        handle: The handle of the job's launch.
        tail: Only so many lines of what is written already.
        since_s: Only what was written in the last so many seconds, and what comes.
        idle_s: Yield empty news after so many seconds without an attempt. While an attempt runs,
            empty news come every LONG_POLL_MS in any case.
    """
    seen = 0
    while True:
        try:
            info = handle.wait_state(
                lambda now, seen=seen: (
                    now["state"] == "terminal" or (now["epoch"] > seen and bool(_node_of(now)))
                ),
                idle_s,
            )
        except TimeoutError:
            yield seen, [], []
            continue
        if info["epoch"] <= seen or not _node_of(info):
            return
        seen = info["epoch"]
        before = 0 if tail is None else sum(1 for _ in read(handle.session, info, since_s=since_s))
        left_out = max(0, before - (tail or 0))
        for finished, bars in _news(handle, info, since_s):
            shown = finished[left_out:]
            left_out -= len(finished) - len(shown)
            yield seen, shown, bars
        tail = since_s = None  # all output of the next attempt is new


def _source(
    info: dict[str, Any], node: str, epoch: int, since_s: float | None = None
) -> _logs.Source:
    """Return where the log is: the stderr of the launch's only rank, to which its stdout goes
    too."""
    target = {"launch": info["launch"], "rank": 0, "stderr": True, "epoch": epoch}
    if since_s is not None:
        target["age_ms"] = max(1, round(since_s * 1000))
    return _logs.Source(0, node, target)


def _node_of(info: dict[str, Any]) -> str:
    return next((each["node"] for each in info["rank_infos"]), "")


def _of_attempt(
    session: Any, info: dict[str, Any], epoch: int, since_s: float | None = None
) -> Iterator[str]:
    """Yield the lines of an attempt that is over, kept by whichever node it ran on."""
    nodes = [each["node"] for each in workers.node_infos(session) if each["state"] == "alive"]
    nodes.sort(key=lambda node: node != _node_of(info))
    for node in nodes:
        try:
            source = _source(info, node, epoch, since_s)
            found = list(_logs.lines(session, source, follow=False))
        except exceptions.TroupeError:
            continue
        if found:
            yield from found
            return


def _news(
    handle: LaunchHandle, info: dict[str, Any], since_s: float | None = None
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield what one attempt writes, as it comes, until its process has ended."""
    source = _source(info, _node_of(info), info["epoch"], since_s)
    offset, rows = 0, output_rows.Rows()
    while True:
        try:
            link = workers.link(handle.session, source.node)
            with link.follower():
                while True:
                    fields = {
                        **source.target,
                        "offset": offset,
                        "bytes_max": _logs.CHUNK_BYTES,
                        "wait_ms": _logs.LONG_POLL_MS,
                    }
                    _, chunk, data = link.read_log(fields, timeout=_logs.LONG_POLL_MS / 1000 + 30)
                    offset = chunk["next"]
                    before: list[str] = []
                    if chunk["dropped_bytes"]:
                        before, data = rows.after_gap(chunk["dropped_bytes"], data)
                    finished = before + rows.feed(data, ended=chunk["ended"])
                    yield finished, rows.live()
                    if chunk["ended"]:
                        return
        except exceptions.TroupeError as error:
            workers.forget(handle.session, source.node)
            if _is_over(handle, info):
                kept = _kept(handle.session, info, error, offset)
                yield [*rows.feed(b"", ended=True), *kept], []
                return
            yield [], rows.live()


def _is_over(handle: LaunchHandle, info: dict[str, Any]) -> bool:
    """Wait for the end of the attempt, AGAIN_S seconds at most; return whether it is over."""
    try:
        handle.wait_state(
            lambda now: (
                now["state"] == "terminal"
                or now["epoch"] != info["epoch"]
                or now["state"] == "queued"
            ),
            AGAIN_S,
        )
    except TimeoutError:
        return False
    return True
