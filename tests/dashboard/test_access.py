"""The page answers the browser alone that has opened its login address, and nobody's site.

Method: a real server of an app that says "inside"; requests as other users of the host, other
sites' pages and rebound names would send them.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from page_client import PageClient

from troupe._dashboard import _access, _server

TIMEOUT_S = 60


async def _inside(scope, receive, send) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"6")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"inside"})


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Served(PageClient):
    """A server in a thread."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.access = _access.Access(lambda access: _inside, clock=self.clock)
        self.socket = _server.listen(_server.Place())
        self.server = _server.make_server(self.access, _server.Place())
        super().__init__("127.0.0.1", self.socket.getsockname()[1], self.access.new_login())
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],))
        self.thread.start()

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()


@pytest.fixture
def page() -> Iterator[Served]:
    made = Served()
    yield made
    made.close()


def test_nobody_is_let_in_without_the_address_which_works_once_and_for_a_minute(
    page: Served,
) -> None:
    for method, path, status in [
        ("GET", "/", 403),
        ("GET", "/login", 403),
        ("GET", "/login?token=", 403),
        ("GET", "/login?token=%00%ff", 403),
        ("GET", page.login[:-1], 403),
        ("HEAD", page.login, 403),
        ("POST", page.login, 403),
        ("DELETE", page.login, 405),
        ("OPTIONS", page.login, 405),
    ]:
        assert page.ask(method, path).status == status, (method, path)
    assert page.get(page.login, Host="evil.example").status == 421  # does not use it up
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: page.get(page.login), range(8)))
    assert sorted(each.status for each in answers) == [303] + [403] * 7
    (first,) = [each for each in answers if each.status == 303]
    assert first.headers["Location"] == "/welcome" and "url=/" in page.get("/welcome").text
    cookie, *attributes = first.headers["Set-Cookie"].split("; ")
    assert sorted(attributes) == ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=strict"]
    page.cookie = cookie
    assert page.get("/").text == "inside"
    name, _, value = cookie.partition("=")
    for wrong in (f"{name}={value[:-1]}", f"{cookie}x", f"{name}=", f"x={value}", "\x01;=;,"):
        assert page.get("/", Cookie=wrong).status == 403, wrong
    late = page.access.new_login()
    page.clock.now += _access.LOGIN_S
    assert page.get(late).status == 403
    page.clock.now += _access.SESSION_S
    assert page.get("/").status == 403


def test_other_names_and_other_origins_are_refused_with_the_cookie_too(page: Served) -> None:
    page.log_in()
    for host in ("127.0.0.1", f"LOCALHOST:{page.port}", "localhost:9", f"[::1]:{page.port}"):
        assert page.get("/", Host=host).status == 200, host
    for host in (
        "evil.example",
        f"127.0.0.1.evil.example:{page.port}",
        "localhost.",
        "127.0.0.1@evil.example",
        "127.0.0.2",
        "",
        "localhost,evil.example",
        "localhost:x",
    ):
        assert page.get("/", Host=host).status == 421, host
    own = {"Host": "localhost:9", "Origin": "http://localhost:9"}
    assert page.post("/", {}, **own).status == 200
    for origin in ("http://localhost:10", "https://localhost:9", "null", "http://evil.example"):
        assert page.post("/", {}, Host="localhost:9", Origin=origin).status == 403, origin
    link = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    for site in ("cross-site", "same-site"):
        assert page.get("/", Sec_Fetch_Site=site).status == 403
        assert page.get("/", Sec_Fetch_Site=site, **link).status == 200
        assert page.post("/", {}, Sec_Fetch_Site=site, **link).status == 403
        framed = {**link, "Sec_Fetch_Dest": "iframe"}
        assert page.get("/", Sec_Fetch_Site=site, **framed).status == 403
    for site in ("same-origin", "none"):
        assert page.get("/", Sec_Fetch_Site=site).status == 200


def test_answers_have_the_headers_that_keep_a_browser_in(page: Served) -> None:
    page.log_in()
    for answer in (page.get("/"), page.get("/", Host="evil.example"), page.get("/welcome")):
        assert answer.headers["Content-Security-Policy"] == _access.CONTENT_POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert not [each for each in answer.headers if each.startswith("Access-Control")]
    assert "unsafe" not in _access.CONTENT_POLICY


def test_large_bodies_and_bodies_without_a_length_are_refused(page: Served) -> None:
    page.log_in()
    assert page.post("/", {"a": "b" * _access.BODY_BYTES_MAX}).status == 413
    with socket.create_connection((page.host, page.port), TIMEOUT_S) as raw:
        raw.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert raw.recv(12) == b"HTTP/1.1 411"
    with socket.create_connection((page.host, page.port), TIMEOUT_S) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (64 << 10))
        assert raw.recv(12) == b"HTTP/1.1 400"


def test_silent_connections_are_bounded_and_closed(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_server, "CONNECTIONS_MAX", 4)
    silent = [socket.create_connection((page.host, page.port), TIMEOUT_S) for _ in range(4)]
    over = socket.create_connection((page.host, page.port), TIMEOUT_S)
    try:
        assert over.recv(1) == b""
    except ConnectionResetError:
        pass
    for each in (over, *silent):
        each.close()
    monkeypatch.setattr(_server, "CONNECTIONS_MAX", 256)
    monkeypatch.setattr(_server, "SILENCE_MAX_S", 0.1)
    for begun in (b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /"):
        with socket.create_connection((page.host, page.port), TIMEOUT_S) as slow:
            slow.sendall(begun)
            try:
                while slow.recv(4096):
                    pass
            except ConnectionResetError:
                pass
