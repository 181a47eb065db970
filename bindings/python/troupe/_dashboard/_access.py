"""Access to the page: names, origins, a login that works once, sessions, limits.

Every request passes `Access` before any handler. What is not allowed here is refused.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

LOGIN_S = 60.0
SESSION_S = 12 * 3600.0
SESSIONS_MAX = 16
BODY_BYTES_MAX = 16 << 10
LOGIN, WELCOME = "/login", "/welcome"
_FAVICON = "/favicon.ico"
CSRF_FIELD = "csrf"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_SECRET_BYTES = 32
_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_READS = ("GET", "HEAD")
_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Referrer-Policy": "same-origin",  # with no-referrer, forms of the page would send no Origin
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# A browser whose link was opened from a page of another site sends no SameSite=Strict cookie with a
# redirect. It does with a navigation that this page starts.
_WELCOME_PAGE = (
    '<!doctype html><html lang="en"><title>Troupe</title>'
    '<link rel="icon" href="/assets/icon.svg">'
    '<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Go on</a></p></html>\n'
)
_NO_SESSION = (
    "Open the address that the command has printed in its terminal. It works once, in one browser, "
    "for one minute. Press Enter there, or start the command again, for a new one.\n"
)


@dataclass(frozen=True)
class PageSession:
    """A browser that has logged in. `csrf` goes with each form that changes something."""

    id: str
    csrf: str
    ends_s: float


class Access:
    """An ASGI app that passes a request on only from a browser that has logged in, to the app that
    `app_of` returns for it.

    Handlers find their `PageSession` in `scope["state"]["session"]`.
    """

    def __init__(
        self,
        app_of: Callable[[Access], ASGIApp],
        *,
        names: Iterable[str] = LOOPBACK,
        cookie: str = "troupe",
        is_secure: bool = False,
        content_policies: Callable[[str], str] = lambda path: CONTENT_POLICY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names = frozenset(each.lower() for each in names)
        self._scheme = "https" if is_secure else "http"
        self._cookie = f"__Host-{cookie}" if is_secure else cookie
        self._content_policies = content_policies
        self._clock = clock
        self._logins: dict[str, float] = {}
        self._sessions: dict[str, PageSession] = {}
        self._app = app_of(self)

    def new_login(self) -> str:
        """Return the path of a new login address; the one before is of no use any more."""
        token = secrets.token_urlsafe(_SECRET_BYTES)
        self._logins = {token: self._clock() + LOGIN_S}
        return f"{LOGIN}?token={token}"

    def is_valid(self, session: PageSession) -> bool:
        """Return True while the session's time is not over."""
        return session.id in self._sessions and self._clock() < session.ends_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no WebSocket is accepted: the server closes it
        policy = self._content_policies(scope["path"])

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _guarded(message["headers"], policy)
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer of a request that no handler sees; None: a handler answers it."""
        headers, method = Headers(scope=scope), scope["method"]
        refused = self._refusal(headers, method)
        if refused is not None:
            return refused
        if scope["path"] == LOGIN and method == "GET":
            return self._log_in(scope)
        if scope["path"] == WELCOME and method in _READS:
            return HTMLResponse(_WELCOME_PAGE)
        if scope["path"] == _FAVICON:
            return Response(status_code=204)  # browsers ask for it on pages that name no icon
        session = self._session_of(headers)
        if session is None:
            return _refuse(403, _NO_SESSION)
        scope.setdefault("state", {})["session"] = session
        return None

    def _refusal(self, headers: Headers, method: str) -> Response | None:
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._is_ours(host):
            return _refuse(
                421,
                "This page is not served under that name. It is served under: "
                f"{', '.join(sorted(self._names))}.\n",
            )
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        if origin is not None and origin.lower() != f"{self._scheme}://{host}".lower():
            return _refuse(403, "This request was made by a page of another origin.\n")
        if site not in ("same-origin", "none") and not _is_navigation(headers, method):
            return _refuse(403, "This request was made by a page of another origin.\n")
        if method not in (*_READS, "POST"):
            return Response(status_code=405, headers={"Allow": "GET, HEAD, POST"})
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal() or len(length) > 9:
            return _refuse(411, "A body needs a Content-Length.\n")
        if int(length) > BODY_BYTES_MAX:
            return _refuse(413, f"A body has {BODY_BYTES_MAX} bytes at most.\n")
        return None

    def _is_ours(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        return found is not None and found[1].lower() in self._names

    def _log_in(self, scope: Scope) -> Response:
        """Use the token of a login address up, and begin a session."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        now = self._clock()
        known = next((each for each in self._logins if _is_equal(given, each)), None)
        if known is None or self._logins.pop(known) <= now:
            return _refuse(403, _NO_SESSION)
        session = PageSession(
            secrets.token_urlsafe(_SECRET_BYTES),
            secrets.token_urlsafe(_SECRET_BYTES),
            now + SESSION_S,
        )
        alive = [each for each in self._sessions.values() if each.ends_s > now]
        kept = [*alive[-(SESSIONS_MAX - 1) :], session]
        self._sessions = {each.id: each for each in kept}
        answer = RedirectResponse(WELCOME, 303)
        answer.set_cookie(
            self._cookie,
            session.id,
            max_age=int(SESSION_S),
            path="/",
            httponly=True,
            samesite="strict",
            secure=self._scheme == "https",
        )
        return answer

    def _session_of(self, headers: Headers) -> PageSession | None:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return None
        if found is None:
            return None
        known = next((each for each in self._sessions if _is_equal(found.value, each)), None)
        session = self._sessions[known] if known is not None else None
        return session if session is not None and self.is_valid(session) else None


def has_csrf(session: PageSession, given: str) -> bool:
    """Return True if a form was made for this session."""
    return _is_equal(given, session.csrf)


def _is_equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


def _is_navigation(headers: Headers, method: str) -> bool:
    """Return True for a link that somebody follows, or an address in a bookmark."""
    return (
        method == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _refuse(status: int, why: str) -> Response:
    return PlainTextResponse(why, status)


def _guarded(headers: list[tuple[bytes, bytes]], policy: str) -> list[tuple[bytes, bytes]]:
    ours = {**_HEADERS, "Content-Security-Policy": policy}
    if not any(name.lower() == b"cache-control" for name, _ in headers):
        ours["Cache-Control"] = "no-store"
    names = {name.lower().encode() for name in ours}
    kept = [each for each in headers if each[0].lower() not in names]
    return kept + [(name.lower().encode(), value.encode()) for name, value in ours.items()]
