"""Streams of changes: what is sent again, how many there may be, a reader that takes nothing.

Method: a real server of one stream whose text a test sets; no head.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from e2e_conftest import eventually
from page_client import PageClient
from starlette.applications import Starlette
from starlette.routing import Route

from troupe._dashboard import _access, _changes, _live, _server


class Served(PageClient):
    """A server in a thread: `shown` are the parts of its only page."""

    def __init__(self) -> None:
        self.shown = {"live_a": "one", "live_b": "<b>\ntwo"}
        self.feed = _changes.ChangeFeed(None, None)  # type: ignore[arg-type]
        self.access = _access.Access(self._app_of)
        self.socket = _server.listen(_server.Place())
        self.server = _server.make_server(self.access, _server.Place(), self.streams.end)
        super().__init__("127.0.0.1", self.socket.getsockname()[1], self.access.new_login())
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],))
        self.thread.start()

    def _app_of(self, access: _access.Access) -> Any:
        self.streams = _live.Streams(self.feed, access.is_valid)

        async def follow(request: Any) -> Any:
            return self.streams.respond(request, lambda: dict(self.shown))

        return Starlette(routes=[Route("/live/", follow)])

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(_live, "TICK_S", 0.05)
    monkeypatch.setattr(_live, "GAP_S", 0.01)
    made = Served()
    made.log_in()
    yield made
    made.close()


def test_what_is_another_is_sent_again_and_nothing_else(page: Served) -> None:
    with page.live("/") as changes:
        assert [next(changes), next(changes)] == [("live_a", "one"), ("live_b", "<b>\ntwo")]
        page.shown = {**page.shown, "live_b": "three"}
        assert next(changes) == ("live_b", "three")
        page.shown = {**page.shown, "live_a": ""}
        assert next(changes) == ("live_a", "")
    eventually(lambda: page.streams.open_count == 0, what="the end of the stream")


def test_streams_end_when_the_server_stops(page: Served, capfd: pytest.CaptureFixture) -> None:
    with page.live("/") as changes:
        next(changes)
        page.server.should_exit = True
        assert [name for name, _ in changes] == ["live_b"]
        page.thread.join()
    assert page.streams.open_count == 0 and capfd.readouterr() == ("", "")


def test_a_reader_that_takes_nothing_is_cut_off(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_live, "SLOW_S", 0.2)
    monkeypatch.setattr(_live, "ALIVE_S", 0.1)
    page.shown = {"live_a": "x" * (32 << 20)}
    slow = socket.create_connection((page.host, page.port))
    head = f"GET /live/ HTTP/1.1\r\nHost: localhost\r\nCookie: {page.cookie}\r\n\r\n"
    slow.sendall(head.encode())
    eventually(lambda: page.streams.open_count == 1, what="the beginning of the stream")
    eventually(lambda: page.streams.open_count == 0, what="the end of the stream")
    slow.close()


def test_streams_are_limited(page: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_live, "STREAMS_MAX", 1)
    with page.live("/") as changes:
        next(changes)
        assert page.get("/live/").status == 503
    eventually(lambda: page.streams.open_count == 0, what="the end of the stream")
    with page.live("/") as changes:
        assert next(changes)[0] == "live_a"
