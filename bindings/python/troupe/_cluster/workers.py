"""Links of a session to workers: for logs and bulk bytes, which do not pass through the head."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from troupe import exceptions
from troupe._base.identity import boot_id
from troupe._cluster import turns
from troupe._typed.per_session import PerSession

_lock = threading.Lock()
READS_AT_ONCE = 128
"""Questions for output that may wait at a worker; it takes 256 of any kind from one connection
(worker/peer_server.cc)."""
CROWDED_MS = 200


class Link:
    """A connection to one worker; requests may be made from any thread, many at once."""

    def __init__(self, control: Any, name: str, host: str, *, here: bool) -> None:
        self._control = control
        self.name = name
        self.host = host  # address of the worker
        self.here = here  # on this host
        self._turns = turns.Turns(READS_AT_ONCE)
        self._followers = 0

    def request(
        self, kind: str, fields: dict[str, Any], attachment: bytes = b"", timeout: float = 60.0
    ) -> tuple[Any, ...]:
        """As Session.request, to the worker."""
        found: tuple[Any, ...] = self._control.request(kind, fields, attachment, timeout)
        return found

    @contextlib.contextmanager
    def follower(self) -> Iterator[None]:
        """Around the questions of one who follows a stream."""
        with _lock:
            self._followers += 1
        try:
            yield
        finally:
            with _lock:
                self._followers -= 1

    def read_log(self, fields: dict[str, Any], timeout: float) -> tuple[Any, ...]:
        """`request` for output.

        Of those who follow READS_AT_ONCE are asked for at a time: the others block here, and no
        question waits longer at the worker than CROWDED_MS while there are more.
        """
        if self._followers > READS_AT_ONCE:
            fields = {**fields, "wait_ms": min(fields["wait_ms"], CROWDED_MS)}
        with self._turns:
            return self.request("ReadLog", fields, timeout=timeout)

    def close(self) -> None:
        """Ends the connection."""
        self._control.close()


def node_infos(session: Any) -> list[dict[str, Any]]:
    """The cluster's nodes as the head knows them now."""
    found: list[dict[str, Any]] = session.request("GetStatus", {})[1]["nodes"]
    return found


_links: PerSession[dict[str, Link]] = PerSession("links to workers")


def link(session: Any, node: str) -> Link:
    """The session's link to a node's worker, made at first use.

    Raises ConnectionError naming the node when it is unknown, dead or unreachable.
    """
    with _lock:
        links = _links.known(session)
        if links is None:
            links = _links.of(session, dict)
            session.on_close(lambda: close_all(session))
        known = links.get(node)
        if known is None:
            known = links[node] = _connect(session, node)
        return known


def forget(session: Any, node: str) -> None:
    """The link is of no use any more: the next one is made anew."""
    with _lock:
        known = (_links.known(session) or {}).pop(node, None)
    if known is not None:
        known.close()


def close_all(session: Any) -> None:
    """Ends every link of the session."""
    for known in (_links.take(session) or {}).values():
        known.close()


def nearest(session: Any) -> dict[str, Any]:
    """The node to put bulk bytes on: one of this host if there is one."""
    alive = [info for info in node_infos(session) if info["state"] == "alive"]
    if not alive:
        raise exceptions.ConnectionError("the cluster has no node that is alive")
    here = boot_id()
    return next((info for info in alive if info["boot_id"] == here), alive[0])


def _connect(session: Any, node: str) -> Link:
    from troupe._base.bridge import native

    info = next((each for each in node_infos(session) if each["node"] == node), None)
    if info is None:
        raise exceptions.ConnectionError(f"node {node[:8]} is not known to the cluster any more")
    if info["boot_id"] == boot_id() and info["unix_path"]:
        return Link(
            native.ControlClient.connect_unix(info["unix_path"], certificate=False),
            info["name"],
            info["listen_host"],
            here=True,
        )
    return Link(
        session.control.connect_worker(info["listen_host"], info["listen_port"], node),
        info["name"],
        info["listen_host"],
        here=False,
    )
