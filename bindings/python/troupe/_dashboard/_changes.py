"""News of changes: the head's stream of server-sent events, read while somebody looks at the page.

A page is right without it, and shows what changes some seconds later.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator

from troupe import exceptions
from troupe._cluster import home, session as _session
from troupe._dashboard._reader import ClusterReader

HEAD_NAME = "troupe-head"  # in the head's certificate, wherever it is reached
AGAIN_S = 1.0
SILENCE_S = 60.0
TOKEN_S = 12 * 3600
_LINE_BYTES_MAX = 1 << 20
_LISTS = {
    "nodes": ("status",),
    "actors": ("actors",),
    "launches": ("launches",),
    "jobs": ("launches", "deleted_jobs"),
    "placement_groups": ("groups", "status"),
    "events": ("events",),
}


class StreamToken:
    """The observer's token by which the stream is asked for: that of a file, or one that this
    user's own head makes."""

    def __init__(self, text: str, connect: Callable[[], _session.Session] | None = None) -> None:
        self._text = text
        self._connect = connect
        self._made = ""  # id of the launch

    def get(self) -> str:
        """Return the token's text. Raises TroupeError, OSError where there is none."""
        if not self._text and self._connect is not None:
            session = self._connect()
            try:
                fields = {"role": "observer", "ttl_s": TOKEN_S, "note": "troupe dashboard"}
                made = session.request("CreateToken", fields)[1]
            finally:
                session.close()
            self._text, self._made = made["token"], made["id"]
        return self._text

    def refused(self) -> None:
        """Make another one next time, where it can be made."""
        if self._connect is not None:
            self._text = self._made = ""

    def close(self) -> None:
        """Revoke the token if it was made here."""
        if not self._made or self._connect is None:
            return
        with contextlib.suppress(exceptions.TroupeError, OSError):  # ends by itself
            session = self._connect()
            try:
                session.request("RevokeToken", {"id": self._made})
            finally:
                session.close()


class ChangeFeed:
    """Wakes those who look when a list has changed. The head's stream is read by a thread, which
    runs while somebody watches."""

    def __init__(self, reader: ClusterReader | None, token: StreamToken | None) -> None:
        self._reader = reader
        self._token = token
        self._lock = threading.Lock()
        self._watchers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._thread: threading.Thread | None = None
        self._socket: ssl.SSLSocket | None = None
        self._over = threading.Event()
        self._last_id = ""

    @contextlib.contextmanager
    def watch(self) -> Iterator[asyncio.Event]:
        """Give an event that is set at each change, until the end of the block."""
        changed = asyncio.Event()
        with self._lock:
            self._watchers[changed] = asyncio.get_running_loop()
            if self._thread is None and self._token is not None and not self._over.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="troupe-changes", daemon=True
                )
                self._thread.start()
        try:
            yield changed
        finally:
            with self._lock:
                del self._watchers[changed]

    def close(self) -> None:
        """End the thread, and what it made."""
        self._over.set()
        self._cut()
        thread = self._thread
        if thread is not None:
            thread.join(SILENCE_S)
        if self._token is not None:
            self._token.close()

    def _cut(self) -> None:
        with self._lock:
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while True:
            with contextlib.suppress(
                exceptions.TroupeError, OSError, http.client.HTTPException, ValueError
            ):
                self._read()
            with self._lock:
                if not self._watchers or self._over.is_set():
                    self._thread = None
                    return
            self._over.wait(AGAIN_S)

    def _read(self) -> None:
        """Read one stream to its end, or until nobody watches."""
        connection = self._open()
        try:
            headers = {"Authorization": f"Bearer {self._token_text()}"}
            if self._last_id:
                headers["Last-Event-ID"] = self._last_id
            connection.request("GET", "/api/v1/stream", headers=headers)
            response = connection.getresponse()
            if response.status in (401, 403) and self._token is not None:
                self._token.refused()
            if response.status != 200:
                return
            self._changed(_LISTS)  # for changes before the stream was open
            found: dict[str, str] = {}
            while line := response.readline(_LINE_BYTES_MAX):
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    found[name] = value
                    continue
                self._take(found)
                found = {}
                with self._lock:
                    if not self._watchers or self._over.is_set():
                        return
        finally:
            with self._lock:
                self._socket = None
            connection.close()

    def _token_text(self) -> str:
        return self._token.get().strip() if self._token is not None else ""

    def _open(self) -> http.client.HTTPConnection:
        """Return a connection that has made sure that it is to the cluster's own head."""
        assert self._reader is not None
        session = self._reader.session()
        welcome = session.control.welcome
        context = ssl.create_default_context(cadata=welcome["ca_certificate"].decode())
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["http/1.1"])
        is_socket = session.address.startswith("unix:")
        address = self._reader.status()["address"] if is_socket else session.address
        host, port = home.host_and_port(address)
        plain = socket.create_connection((host, port), SILENCE_S)
        try:
            wrapped = context.wrap_socket(plain, server_hostname=HEAD_NAME)
        except BaseException:
            plain.close()
            raise
        with self._lock:
            self._socket = wrapped
        connection = http.client.HTTPConnection(HEAD_NAME, port)
        connection.sock = wrapped
        return connection

    def _take(self, found: dict[str, str]) -> None:
        event = found.get("event", "")
        if event == "changed":
            self._changed(json.loads(found["data"])["lists"])
        elif event == "event":
            self._last_id = found.get("id", self._last_id)
            self._changed(("events",))
        elif event == "lost":
            self._changed(("events",))
        elif event == "end" and self._token is not None:
            self._token.refused()

    def _changed(self, names: Iterable[str]) -> None:
        if self._reader is not None:
            self._reader.forget(each for name in names for each in _LISTS.get(name, ()))
        with self._lock:
            watchers = list(self._watchers.items())
        for changed, loop in watchers:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(changed.set)
