"""The loop of an actor with coroutines: what it asks before it waits, and what it must not miss
meanwhile."""

from __future__ import annotations

import asyncio
import socket

import pytest

from troupe._process import event_loop

POLLS = 1_000  # far more than a loop with anything else to do may need


class Polls:
    """Says that it ran something until the loop has `seen` what is wanted."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.count, self.seen, self._loop = 0, False, loop

    def __call__(self) -> bool:
        self.count += 1
        if self.seen or self.count >= POLLS:
            self._loop.stop()
        return True

    def see(self) -> None:
        self.seen = True


@pytest.fixture()
def loop():
    made = event_loop.new()
    assert isinstance(made, event_loop._PollingLoop)
    yield made
    made.close()


def test_a_socket_is_seen_beside_polls_that_always_run_something(loop) -> None:
    here, there = socket.socketpair()
    with here, there:
        polls = Polls(loop)
        loop.add_reader(here, polls.see)
        there.send(b"x")
        loop.poll_first(polls)
        loop.run_forever()
        loop.remove_reader(here)
    assert polls.seen, f"the socket was not looked at in {polls.count} polls"
    assert polls.count <= 3


def test_it_does_not_wait_after_a_poll_that_ran_something(
    loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float | None] = []
    select = event_loop.selectors.DefaultSelector.select
    monkeypatch.setattr(
        event_loop.selectors.DefaultSelector,
        "select",
        lambda self, timeout=None: (waits.append(timeout), select(self, timeout))[1],
    )
    polls = Polls(loop)
    loop.poll_first(polls)
    loop.run_forever()
    assert polls.count == POLLS
    assert set(waits) == {0}, "it waited although a poll had just run something"


def test_a_loop_that_a_poll_has_stopped_ends(loop) -> None:
    def poll() -> bool:
        loop.stop()
        return True

    loop.poll_first(poll)
    loop.run_forever()
