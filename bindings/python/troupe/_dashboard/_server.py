"""The server of the page: where it listens, with which limits, until Ctrl-C."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

CONNECTIONS_MAX = 256
SILENCE_MAX_S = 30.0
"""A connection whose request has not come after so long is closed."""
HEADERS_BYTES_MAX = 16 << 10
STOP_S = 1


@dataclass(frozen=True)
class Place:
    """The address where the page is served. `certificate` and `key`: files for TLS; "": plain
    HTTP."""

    host: str = "127.0.0.1"
    port: int = 0
    certificate: str = ""
    key: str = ""

    @property
    def is_secure(self) -> bool:
        """Return True where it is served over TLS."""
        return bool(self.certificate)


class _Protocol(H11Protocol):
    """A connection that is closed when there are too many, or when no request comes over it."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
            return
        self.loop.call_later(SILENCE_MAX_S, self._close_silent, None)

    def _close_silent(self, seen: RequestResponseCycle | None) -> None:
        """Close the connection if the latest request is the one of `seen`, and is answered."""
        if self.transport.is_closing():
            return
        if self.cycle is seen and (seen is None or seen.response_complete):
            self.transport.abort()
            return
        self.loop.call_later(SILENCE_MAX_S, self._close_silent, self.cycle)


def listen(place: Place) -> socket.socket:
    """Return a listening socket; raises OSError where the port cannot be had."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    return socket.create_server((place.host, place.port), family=family, backlog=128)


class _Server(uvicorn.Server):
    """A server that says when it stops, so that responses end which go on for ever."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def make_server(
    app: ASGIApp, place: Place, on_stop: Callable[[], None] = lambda: None
) -> uvicorn.Server:
    """Return a server that is not started; `on_stop` is called on its loop when it stops.

    Raises OSError for a certificate that cannot be read.
    """
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=None,
        timeout_keep_alive=int(SILENCE_MAX_S),
        timeout_graceful_shutdown=STOP_S,
        h11_max_incomplete_event_size=HEADERS_BYTES_MAX,
        ssl_certfile=place.certificate or None,
        ssl_keyfile=place.key or None,
    )
    config.load()
    if config.ssl is not None:
        config.ssl.minimum_version = ssl.TLSVersion.TLSv1_3
    return _Server(config, on_stop)


def serve(server: uvicorn.Server, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Call `ready`, and answer requests until Ctrl-C, whose KeyboardInterrupt is raised."""
    ready()  # connections wait at the socket until the loop runs
    server.run(sockets=[listening])
