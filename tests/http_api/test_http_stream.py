"""The stream of changes: what is told, where it goes on after a cut, when it ends, how many there
may be.

Method: one head with a worker, real processes; server-sent events are read line by line.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from e2e_conftest import Home, eventually
from http_head import Client

import troupe

STREAMS_MAX = 100


class Stream:
    """An open stream."""

    def __init__(self, client: Client, token: str, last: str = "") -> None:
        self._connection = client.connect()
        headers = {"Authorization": f"Bearer {token}", "Last-Event-ID": last}
        self._connection.request("GET", "/api/v1/stream", headers=headers)
        self._response: http.client.HTTPResponse = self._connection.getresponse()
        self.status = self._response.status
        assert self.status != 200 or self._line() == "retry: 1000" and self._line() == ""

    def _line(self) -> str | None:
        line = self._response.readline()
        return line.decode().removesuffix("\n") if line else None

    def next(self) -> tuple[str, Any, str]:
        """Return the next event: its name, its data and its id. ("", None, "") at the end."""
        found: dict[str, str] = {}
        while (line := self._line()) is not None:
            if not line and "event" in found:
                return found["event"], json.loads(found["data"]), found.get("id", "")
            name, _, value = line.partition(": ")
            found[name] = value
        return "", None, ""

    def until(self, name: str, **wanted: Any) -> tuple[str, Any, str]:
        """Read up to an event of this name whose data has these items, or contains them."""
        while True:
            event, data, identity = self.next()
            assert event, f"the stream ended before {name} {wanted}"
            if event == name and all(value in data[key] for key, value in wanted.items()):
                return event, data, identity

    def close(self) -> None:
        self._response.close()
        self._connection.close()


@pytest.fixture(scope="module")
def head(shared_home: Home) -> Iterator[tuple[Home, Client]]:
    started = shared_home.json("start", "--head", "--port", "0", "--num-cpus", "4", "--force-tcp")
    troupe.init(started["address"])
    yield shared_home, Client(shared_home, started)
    troupe.shutdown()


def _observer(home: Home) -> dict[str, Any]:
    return home.json("token", "create", "--role", "observer")


def test_changes_are_told_and_a_cut_stream_goes_on(head: tuple[Home, Client]) -> None:
    home, client = head
    token = _observer(home)

    @troupe.remote(num_cpus=0)
    class Dying:
        def die(self) -> None:
            os._exit(7)

        def ready(self) -> bool:
            return True

    stream = Stream(client, token["token"])
    actor = Dying.remote()
    assert troupe.get(actor.ready.remote())
    stream.until("changed", lists="actors")
    actor.die.remote()
    _, data, identity = stream.until("event", message="Dying ended")
    assert data["event_id"] == identity and data["source"] == "actor"
    stream.close()
    other = Dying.remote()
    other.die.remote()
    again = Stream(client, token["token"], last=identity)
    event, data, following = again.until("event", message="Dying ended")
    assert int(following.split("-")[1]) == int(identity.split("-")[1]) + 1
    again.close()
    foreign = Stream(client, token["token"], last="999-1")
    assert foreign.next() == ("lost", {"events": None}, "")
    assert foreign.next()[0] == "event"
    foreign.close()


def test_a_stream_ends_with_its_token(head: tuple[Home, Client]) -> None:
    home, client = head
    token, other = _observer(home), _observer(home)
    stream, goes_on = Stream(client, token["token"]), Stream(client, other["token"])
    home.run("token", "revoke", token["id"])
    event, data, _ = stream.until("end")
    assert "it was revoked" in data["why"] and stream.next() == ("", None, "")
    worker = next(each["pid"] for each in troupe.state.list_nodes())
    os.kill(worker, signal.SIGSTOP)
    try:
        goes_on.until("changed", lists="nodes")
    finally:
        os.kill(worker, signal.SIGCONT)
    stream.close()
    goes_on.close()


def test_streams_are_limited_and_others_are_served_beside_them(head: tuple[Home, Client]) -> None:
    home, client = head
    token = _observer(home)["token"]
    streams: list[Stream] = []

    def all_open() -> bool:
        """Opens one more; streams that ended before this test may still count for a moment."""
        stream = Stream(client, token)
        if stream.status == 200:
            streams.append(stream)
        else:
            stream.close()
        return len(streams) == STREAMS_MAX

    try:
        eventually(all_open, what="as many streams as there may be", timeout=300)
        over = Stream(client, token)
        assert over.status == 503
        over.close()
        assert client.get("/metrics", token).status == 200

        @troupe.remote(num_cpus=0)
        class Plain:
            def ready(self) -> bool:
                return True

        actor = Plain.remote()
        assert troupe.get(actor.ready.remote())
        for each in streams:
            each.until("changed", lists="actors")
    finally:
        for each in streams:
            each.close()
