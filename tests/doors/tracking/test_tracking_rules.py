"""The rules of tracking, and its door, without MLflow.

Method: tables; a clock that the test moves; a door whose other side is a function of the test's,
asked over HTTP and by bare sockets.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest
from e2e_conftest import eventually

from troupe._tracking import guard, local_store, loopback, rule, store_process, turns


@pytest.mark.parametrize(
    ("asked", "environment", "active", "expected"),
    [
        (None, {}, False, False),
        (None, {}, True, True),
        (None, {"MLFLOW_TRACKING_URI": "http://a"}, False, True),
        (None, {"MLFLOW_RUN_ID": "1"}, False, True),
        (None, {"MLFLOW_TRACKING_URI": "http://a", "TROUPE_TRACKING": "0"}, True, False),
        (None, {"MLFLOW_TRACKING_URI": "http://a", "TROUPE_TRACKING": "False"}, True, False),
        (False, {"MLFLOW_TRACKING_URI": "http://a"}, True, False),
        (True, {"TROUPE_TRACKING": "0"}, False, True),
        (True, {}, False, True),
    ],
)
def test_when_a_launch_is_tracked(
    asked: bool | None, environment: Mapping[str, str], active: bool, expected: bool
) -> None:
    assert rule.wanted(asked, environment, active=active) is expected


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("mlruns", True),
        ("/a/mlruns", True),
        ("file:///a", True),
        ("sqlite:///a.db", True),
        ("sqlite+pysqlite:///a.db", True),
        ("http://a:5000", False),
        ("https://a", False),
        ("databricks", False),
        ("databricks://profile", False),
        ("postgresql://a/b", False),
    ],
)
def test_which_stores_are_the_callers_own(uri: str, expected: bool) -> None:
    assert turns.is_local(uri) is expected


def test_nothing_secret_is_shown() -> None:
    assert rule.shown("http://me:s3cret@a:5000/b?token=t#c") == "http://a:5000/b"
    assert rule.link("http://me:s3cret@a:5000/", "3", "f") == "http://a:5000/#/experiments/3/runs/f"
    environment = {
        "MLFLOW_TRACKING_URI": "http://me:s3cret@a",
        "MLFLOW_TRACKING_TOKEN": "t0ken",
        "MLFLOW_TRACKING_PASSWORD": "w0rd",
    }
    assert (
        rule.without_secrets("401 of http://me:s3cret@a for t0ken, w0rd", environment)
        == "401 of http://me:...@a for ..., ..."
    )
    assert doctest.testmod(rule).failed == 0


def test_a_store_that_is_away_is_asked_again_after_pauses_that_grow() -> None:
    now, told, asked = [0.0], [], []

    def fails() -> None:
        asked.append(now[0])
        raise ConnectionRefusedError("nobody")

    breaker = guard.Breaker(told.append, now=lambda: now[0])
    for second in range(100):
        now[0] = float(second)
        with pytest.raises((ConnectionRefusedError, guard.Away)):
            breaker.call(fails)
    assert asked == [0, 30, 90] and set(told) == {"ConnectionRefusedError: nobody"}
    now[0] = 1e6
    assert breaker.call(lambda: 5) == 5
    with pytest.raises(ValueError, match="no such key"):  # refusals of a store are for the program
        breaker.call(lambda: (_ for _ in ()).throw(ValueError("no such key")))
    assert breaker.call(lambda: 6) == 6
    with pytest.raises(guard.Away):
        guard.Breaker(told.append, absent=True).call(lambda: 7)


@pytest.fixture
def door():
    carried: list[tuple] = []

    def carry(*request):
        carried.append(request)
        return 200, "application/json", json.dumps({"n": len(carried)}).encode()

    made = loopback.Loopback(carry)
    yield made, carried
    made.close()


def ask(
    door: loopback.Loopback, path: str, body: bytes | None = None, token: str | None = None
) -> tuple[int, bytes]:
    request = urllib.request.Request(
        door.uri + path,
        body,
        {"Authorization": f"Bearer {token or door.token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_the_door_carries_for_who_has_the_secret_and_nothing_else(door) -> None:
    made, carried = door
    assert ask(made, "/api/2.0/mlflow/runs/get?run_id=1") == (200, b'{"n": 1}')
    assert ask(made, "/api/2.0/mlflow/runs/log-metric", b"{}") == (200, b'{"n": 2}')
    assert carried == [
        ("GET", "/api/2.0/mlflow/runs/get?run_id=1", "application/json", b""),
        ("POST", "/api/2.0/mlflow/runs/log-metric", "application/json", b"{}"),
    ]
    assert ask(made, "/api/2.0/mlflow/runs/log-metric", b"{}", token="another")[0] == 401
    assert ask(made, "/etc/passwd")[0] == 404
    assert len(carried) == 2


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("Content-Length: 99999999999\r\n", b"413"),
        ("Content-Length: -1\r\n", b"411"),
        ("Transfer-Encoding: chunked\r\n", b"411"),
        ("X: " + "a" * 100_000 + "\r\n", b"431"),
    ],
)
def test_the_door_reads_no_body_that_it_does_not_want(door, head: str, status: bytes) -> None:
    made, carried = door
    with socket.create_connection(("127.0.0.1", int(made.uri.rpartition(":")[2])), 60) as bare:
        bare.sendall(
            f"POST /api/x HTTP/1.1\r\nAuthorization: Bearer {made.token}\r\n{head}\r\n".encode()
        )
        assert bare.recv(100).split()[1] == status
    assert carried == []


def test_a_body_without_the_secret_is_not_waited_for(door) -> None:
    made, carried = door
    with socket.create_connection(("127.0.0.1", int(made.uri.rpartition(":")[2])), 60) as bare:
        bare.sendall(b"POST /api/x HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")
        assert bare.recv(100).split()[1] == b"401"
    assert carried == []


def test_the_door_has_room_for_so_many_connections_and_again_when_they_end(
    door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loopback, "OPEN_MAX", 2)
    small = loopback.Loopback(lambda *_: (200, "text/plain", b"yes"))
    try:
        port = int(small.uri.rpartition(":")[2])
        held = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(2)]
        with (
            socket.create_connection(("127.0.0.1", port), 60) as surplus,
            contextlib.suppress(ConnectionError),
        ):
            surplus.sendall(
                f"GET /api/x HTTP/1.1\r\nAuthorization: Bearer {small.token}\r\n\r\n".encode()
            )
            assert surplus.recv(1) == b""  # closed, not reset
        for each in held:
            each.close()
        eventually(lambda: answers(small), what="room for another one")
    finally:
        small.close()


def answers(door: loopback.Loopback) -> bool:
    try:
        return ask(door, "/api/x") == (200, b"yes")
    except OSError:
        return False


def test_frames_of_the_store_are_whole_or_none() -> None:
    written = io.BytesIO()
    local_store.write(written, {"path": "/a"}, b"body")
    whole = written.getvalue()
    assert local_store.read(io.BytesIO(whole)) == ({"path": "/a"}, b"body")
    assert [local_store.read(io.BytesIO(whole[:cut])) for cut in (0, 3, len(whole) - 1)] == [
        None
    ] * 3
    with pytest.raises(ValueError, match="the limit"):
        local_store.read(io.BytesIO(b"\xff" * 20))


class SlowToLoad(store_process.StoreProcess):
    """A store process that has MLflow 3 s after it was told to load it, then answers at once."""

    def __init__(self) -> None:
        self._away_until = 0.0
        self._loaded = threading.Event()
        threading.Timer(3.0, self._loaded.set).start()

    def ask(self, header: Mapping[str, Any], body: bytes = b"") -> tuple[dict[str, Any], bytes]:
        self._loaded.wait(60)
        return {"status": 200}, json.dumps(["run", "0", "link"]).encode()


def test_the_import_of_mlflow_is_not_in_the_time_that_a_server_has_for_its_answer() -> None:
    """A busy machine imports for seconds; a launch would begin without its link."""
    wish, link = SlowToLoad().open_run(rule.Wish(local=False, store="a", name="n"), 2.5)
    assert (wish.run, wish.is_made, link) == ("run", True, "link")
