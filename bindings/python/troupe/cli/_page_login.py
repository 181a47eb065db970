"""A page on loopback for one person: a WSGI app behind a link that works once, and an HTTP server
with limits."""

from __future__ import annotations

import hmac
import re
import secrets
import socketserver
import threading
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs
from wsgiref import simple_server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

HOST = "127.0.0.1"
CONNECTIONS_MAX = 64
SILENCE_MAX_S = 30.0
"""A connection that sends or takes nothing for so long is closed."""
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_FIELD = "login"
_SECRET_BYTES = 32
# No redirect: a browser whose link was opened from another site's page, a terminal in a browser
# perhaps, sends no SameSite=Strict cookie along with one.
_WELCOME = '<!doctype html><meta http-equiv="refresh" content="0;url=/"><a href="/">Go on</a>\n'


class OneTimeLogin:
    """A WSGI app that passes a request on to `app` only if the request comes from the browser that
    has logged in.

    Every user of the host reaches a port on loopback, so the address alone protects nothing. The
    first GET with the token of `path` gets a session cookie and uses the token up. Every other
    request without that cookie gets 403. So do requests whose Host is no name of loopback, which a
    rebound DNS name would send, and requests that a page of another origin makes.
    """

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app
        self._token: str | None = secrets.token_urlsafe(_SECRET_BYTES)
        self._session = secrets.token_urlsafe(_SECRET_BYTES)
        # browsers keep one jar for all ports of a host: two pages need two names
        self._cookie = f"troupe_page_{secrets.token_hex(4)}"
        self._taking = threading.Lock()
        self.path = f"/?{_FIELD}={self._token}"

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        host = environ.get("HTTP_HOST", "")
        if not _LOOPBACK.fullmatch(host):
            return _refuse(
                start_response,
                "This page is served under the names of loopback alone: 127.0.0.1, localhost and "
                "[::1].",
            )
        if environ.get("HTTP_ORIGIN", f"http://{host}") != f"http://{host}":
            return _refuse(start_response, "This request was made by a page of another origin.")
        if self._has_session(environ):
            return self._app(environ, start_response)
        if self._takes_token(environ):
            cookie = f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"
            return _answer(start_response, "200 OK", "text/html", _WELCOME, ("Set-Cookie", cookie))
        return _refuse(
            start_response,
            "Open the link that the command has printed in its terminal. The link works once, in "
            "one browser: start the command again for a new one.",
        )

    def _has_session(self, environ: WSGIEnvironment) -> bool:
        try:
            found = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(self._cookie)
        except CookieError:
            return False
        return found is not None and _equal(found.value, self._session)

    def _takes_token(self, environ: WSGIEnvironment) -> bool:
        """Return True for the first GET request that has the token, and use the token up."""
        if environ["REQUEST_METHOD"] != "GET":
            return False
        given = parse_qs(environ.get("QUERY_STRING", "")).get(_FIELD, [""])[0]
        with self._taking:
            if self._token is None or not _equal(given, self._token):
                return False
            self._token = None
            return True


def _equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


def _refuse(start_response: StartResponse, why: str) -> Iterable[bytes]:
    return _answer(start_response, "403 Forbidden", "text/plain", f"{why}\n")


def _answer(
    start_response: StartResponse, status: str, kind: str, text: str, *headers: tuple[str, str]
) -> Iterable[bytes]:
    body = text.encode()
    start_response(
        status,
        [
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            *headers,
        ],
    )
    return [body]


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """A thread for each connection, and `CONNECTIONS_MAX` connections at most: one more is closed
    at once."""

    daemon_threads = True
    request_queue_size = CONNECTIONS_MAX

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__(*args, **kwargs)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a connection that broke, or was silent, ends alone.

        The app prints its own errors.
        """


class _Handler(simple_server.WSGIRequestHandler):
    timeout = SILENCE_MAX_S

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: a page that asks again and again would fill the terminal, and the link's
        token belongs into no log."""


def make_server(app: WSGIApplication, port: int) -> simple_server.WSGIServer:
    """Return a server of `app` on loopback, port 0 taking a free one.

    Raises OSError where the port cannot be had.
    """
    return simple_server.make_server(HOST, port, app, server_class=_Server, handler_class=_Handler)


def serve(server: simple_server.WSGIServer, ready: Callable[[], None]) -> None:
    """Answer requests from a thread of its own, and call `ready` once it does.

    Blocks until Ctrl-C, whose KeyboardInterrupt is raised; the server is closed then.

    The main thread does nothing but wait. Python loses a KeyboardInterrupt that comes while
    `Thread.start()` waits: it becomes a RuntimeError ("release unlocked lock"), which a server that
    starts a thread for each connection takes for the failure of that connection.
    """
    over = threading.Event()

    def answer() -> None:
        try:
            server.serve_forever()
        finally:
            over.set()

    with server:
        threading.Thread(target=answer, name="troupe-page", daemon=True).start()
        try:
            ready()
            over.wait()
        finally:
            server.shutdown()
