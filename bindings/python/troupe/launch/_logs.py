"""Reading the ranks' output from the workers that keep it."""
from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

from troupe import exceptions

CHUNK_BYTES = 256 << 10
LONG_POLL_MS = 2_000


def stream(session: Any, node: str, target: dict, *, follow: bool) -> Iterator[str]:
    """Lines of one stream (`target`: launch, rank or actor, stderr, epoch), kept by the worker of `node`.

    With `follow` it ends when the process has ended and all was read. What a size cap dropped is a line
    that says how much. Raises ConnectionError when the worker cannot be reached.
    """
    from troupe import _workers

    link = _workers.link(session, node)
    offset, rest = 0, ""
    while True:
        fields = {**target, "offset": offset, "bytes_max": CHUNK_BYTES, "wait_ms": LONG_POLL_MS if follow else 0}
        _, chunk, data = link.request("ReadLog", fields, timeout=LONG_POLL_MS / 1000 + 30)
        if chunk["dropped_bytes"]:
            yield f"... {chunk['dropped_bytes']} bytes of output were dropped here (size cap) ..."
        offset = chunk["next"]
        rest += data.decode(errors="replace")
        *whole, rest = rest.split("\n")
        yield from whole
        if chunk["ended"] or (not follow and not data):
            if rest:
                yield rest
            return


def lines(handle: Any, rank: int | None, follow: bool) -> Iterator[str]:
    """See LaunchHandle.logs."""
    if follow:
        info = handle.wait_state(_has_ranks)
    else:
        _, update, _ = handle.session.request("GetLaunch", {"launch": handle.id})
        info = update["info"]
    if rank is not None and not 0 <= rank < info["ranks"]:
        raise ValueError(f"launch {handle.id[:4]} has ranks 0 to {info['ranks'] - 1}, not {rank}")
    chosen = [each for each in info["rank_infos"] if rank is None or each["rank"] == rank]
    if follow:
        for number, is_error, line in Follower(handle.session, info, chosen):
            yield line if rank is not None else f"[{number}] {line}"
        return
    for each in chosen:
        for is_error in (False, True):
            target = _target(info, each["rank"], is_error)
            for line in stream(handle.session, each["node"], target, follow=False):
                yield line if rank is not None else f"[{each['rank']}] {line}"


def _has_ranks(info: dict) -> bool:
    return info["state"] == "terminal" or (info["state"] in ("starting", "running") and bool(info["rank_infos"]))


def _target(info: dict, rank: int, is_error: bool) -> dict:
    return {"launch": info["launch"], "rank": rank, "stderr": is_error, "epoch": info["epoch"]}


class Follower:
    """Follows all streams of one epoch at once; iterating yields (rank, is_stderr, line) as they come.

    One thread per stream, each waiting in a long poll; they end with their streams.
    """

    def __init__(self, session: Any, info: dict, rank_infos: list[dict]) -> None:
        self._session = session
        self._lines: queue.SimpleQueue = queue.SimpleQueue()
        self._open = 2 * len(rank_infos)
        self.epoch = info["epoch"]
        for each in rank_infos:
            for is_error in (False, True):
                threading.Thread(target=self._follow, args=(each["rank"], each["node"], is_error,
                                                            _target(info, each["rank"], is_error)),
                                 name="troupe-log", daemon=True).start()

    def _follow(self, rank: int, node: str, is_error: bool, target: dict) -> None:
        try:
            for line in stream(self._session, node, target, follow=True):
                self._lines.put((rank, is_error, line))
        except exceptions.TroupeError as error:
            self._lines.put((rank, True, f"(troupe: no more output of this rank: {error})"))
        finally:
            self._lines.put(None)

    def __iter__(self) -> Iterator[tuple[int, bool, str]]:
        while self._open:
            item = self._lines.get()
            if item is None:
                self._open -= 1
            else:
                yield item
