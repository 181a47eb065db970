"""A page on loopback answers the browser alone that has opened its link.

Method: a real server of an app that says "inside"; requests as other users of the host, other
sites' pages and rebound names would send them.
"""

from __future__ import annotations

import http.client
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from troupe.cli import _page_login

TIMEOUT_S = 60


def _inside(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"inside"]


class Page:
    """A server in a thread, and requests to it."""

    def __init__(self) -> None:
        self.login = _page_login.OneTimeLogin(_inside)
        self.server = _page_login.make_server(self.login, 0)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, str, str]:
        """Return the status, the cookie's attributes and the body."""
        connection = http.client.HTTPConnection(
            _page_login.HOST, self.server.server_port, timeout=TIMEOUT_S
        )
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.getheader("Set-Cookie") or "", answer.read().decode()
        connection.close()
        return found

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def page() -> Iterator[Page]:
    made = Page()
    yield made
    made.close()


def test_nobody_is_let_in_without_the_link_and_the_link_works_once(page: Page) -> None:
    for path, method in [
        ("/", "GET"),
        ("/?login=", "GET"),
        ("/?login=%00%ff", "GET"),
        (page.login.path[:-1], "GET"),
        (page.login.path, "HEAD"),
        (page.login.path, "POST"),
    ]:
        assert page.ask(path, method)[0] == 403, (path, method)
    assert (
        page.ask(page.login.path, Host="evil.example")[0] == 403
    )  # which does not use the link up
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: page.ask(page.login.path), range(8)))
    ((status, cookie, body),) = [each for each in answers if each[0] == 200]
    assert [each[0] for each in answers].count(403) == 7 and status == 200
    assert "inside" not in body and 'url=/"' in body
    assert cookie.split("; ")[1:] == ["Path=/", "HttpOnly", "SameSite=Strict"]
    value = cookie.split("; ")[0]
    assert page.ask(page.login.path)[::2] == (403, page.ask("/")[2])
    assert (
        page.ask(Cookie=value)[::2] == (200, "inside")
        and page.ask("/api", "POST", Cookie=f"other=1; {value}")[0] == 200
    )
    for wrong in (
        value[:-1],
        value + "x",
        value.split("=")[0] + "=",
        "x=" + value.split("=")[1],
        f"{value.split('=')[0]}=\u00ff",
        "\x01;=;,",
    ):
        assert page.ask(Cookie=wrong)[0] == 403, wrong


def test_other_hosts_names_and_other_origins_are_refused_with_the_cookie_too(page: Page) -> None:
    value = page.ask(page.login.path)[1].split("; ")[0]
    port = page.server.server_port
    for host in ("127.0.0.1", f"LOCALHOST:{port}", "localhost:9", f"[::1]:{port}"):
        assert page.ask(Cookie=value, Host=host)[0] == 200, host
    for host in (
        "evil.example",
        f"127.0.0.1.evil.example:{port}",
        "localhost.",
        "127.0.0.1@evil.example",
        "127.0.0.2",
        "",
        "localhost,evil.example",
        "localhost:x",
    ):
        assert page.ask(Cookie=value, Host=host)[0] == 403, host
    assert (
        page.ask("/", "POST", Cookie=value, Host="localhost:9", Origin="http://localhost:9")[0]
        == 200
    )
    for origin in ("http://localhost:10", "https://localhost:9", "null", "http://evil.example"):
        assert page.ask("/", "POST", Cookie=value, Host="localhost:9", Origin=origin)[0] == 403, (
            origin
        )


def test_silent_connections_are_bounded_and_closed_ones_make_room(
    page: Page, capfd: pytest.CaptureFixture
) -> None:
    silent = [
        socket.create_connection((_page_login.HOST, page.server.server_port), TIMEOUT_S)
        for _ in range(_page_login.CONNECTIONS_MAX)
    ]
    over = socket.create_connection((_page_login.HOST, page.server.server_port), TIMEOUT_S)
    assert over.recv(1) == b""
    for each in (over, *silent):
        each.close()
    status, deadline = 0, threading.Event()
    for _ in range(TIMEOUT_S * 10):
        try:
            status = page.ask()[0]
            break
        except OSError:  # those that have closed are still being noticed
            deadline.wait(0.1)
    assert status == 403
    assert capfd.readouterr() == ("", "")


def test_a_silent_connection_is_closed(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page.server.RequestHandlerClass.timeout == _page_login.SILENCE_MAX_S
    monkeypatch.setattr(_page_login._Handler, "timeout", 0.1)
    with socket.create_connection((_page_login.HOST, page.server.server_port), TIMEOUT_S) as silent:
        silent.sendall(b"GET / HTTP/1.1\r\n")
        assert silent.recv(1) == b""


def test_connections_are_accepted_apart_from_the_thread_that_ctrl_c_interrupts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python turns a KeyboardInterrupt in `Thread.start()` into a RuntimeError now and then, which
    the server would take for a failed connection."""
    server, accepting = _page_login.make_server(_inside, 0), []
    start = server.process_request
    monkeypatch.setattr(
        server,
        "process_request",
        lambda *args: (accepting.append(threading.current_thread()), start(*args)),
    )

    def ready() -> None:
        connection = http.client.HTTPConnection(
            _page_login.HOST, server.server_port, timeout=TIMEOUT_S
        )
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"inside"
        connection.close()
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        _page_login.serve(server, ready)
    assert accepting and threading.main_thread() not in accepting
