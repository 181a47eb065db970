"""A door for MLflow's clients on one node, for the ranks there alone: what they ask is carried to
the caller's side.

Bound to the loopback interface, to a port that the kernel chooses. Whoever connects has to name the
launch's secret before a body is read: the ranks have it in their environment, other users of the
node do not. Bodies, requests at once and waits are limited.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BODY_BYTES_MAX = 8 << 20
AT_ONCE_MAX = 64
OPEN_MAX = 512  # connections: a client keeps one for each of its threads
SILENCE_S = 30.0
_FORWARDED = ("/api/", "/ajax-api/", "/version")

Answer = tuple[int, str, bytes]
"""Status, type of the content, content."""
Carry = Callable[[str, str, str, bytes], Answer]
"""What carries (method, path, type of the content, body) there."""


def problem(code: str, text: str) -> bytes:
    """An answer's body as MLflow's clients read it."""
    import json

    return json.dumps({"error_code": code, "message": text}).encode()


class Loopback:
    """Serves until `close`, on threads of its own. `uri` and `token` are what a client needs."""

    def __init__(self, carry: Carry, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(32)
        self._server = _Server(carry, f"Bearer {self.token}")
        self.uri = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(
            target=self._server.serve_forever, name="troupe-tracking-door", daemon=True
        ).start()

    def close(self) -> None:
        """Ends it; what is being carried is not answered."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, carry: Carry, authorization: str) -> None:
        self.carry, self.authorization = carry, authorization.encode()
        self.free = threading.BoundedSemaphore(AT_ONCE_MAX)
        self._room = threading.BoundedSemaphore(OPEN_MAX)
        super().__init__(("127.0.0.1", 0), _Request)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection on a thread; close it at once if there are OPEN_MAX."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """A connection, to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is no news."""


class _Request(BaseHTTPRequestHandler):
    server: _Server
    timeout = SILENCE_S
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        said = self.headers.get("Authorization", "").encode("latin-1", "replace")
        if not hmac.compare_digest(said, self.server.authorization):
            return self._refuse(
                401,
                "UNAUTHENTICATED",
                "this is the way of a launch's ranks to their tracking store, for them alone",
            )
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or "Transfer-Encoding" in self.headers:
            return self._refuse(411, "BAD_REQUEST", "the length of the body is not given")
        if int(length) > BODY_BYTES_MAX:
            return self._refuse(
                413,
                "BAD_REQUEST",
                f"{int(length)} bytes in one request; {BODY_BYTES_MAX} is the limit",
            )
        if not self.path.startswith(_FORWARDED):
            return self._refuse(
                404,
                "ENDPOINT_NOT_FOUND",
                "of MLflow's server only its interface for tracking is here",
            )
        if not self.server.free.acquire(blocking=False):
            return self._refuse(
                503,
                "TEMPORARILY_UNAVAILABLE",
                f"{AT_ONCE_MAX} requests of this node are on their way already",
            )
        try:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                self._answer(
                    *self.server.carry(
                        self.command, self.path, self.headers.get("Content-Type", ""), body
                    )
                )
        finally:
            self.server.free.release()

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve

    def _refuse(self, status: int, code: str, text: str) -> None:
        self.close_connection = True  # the body was not read
        self._answer(status, "application/json", problem(code, text))

    def _answer(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing: paths and clients are no news."""
