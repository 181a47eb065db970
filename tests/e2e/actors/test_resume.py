"""Calls whose connection is lost though both ends live: each runs once, and each is answered.

Method: actors on two nodes that share no Unix socket (--force-tcp), called by this process and by
each other over TLS. The connections are ended from inside a process that holds them: its own
descriptors are shut down, as a reset or a firewall would end them. What ran is counted by the actor
that ran it.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator

import cloudpickle
import pytest
from tcp_cuts import cut_tcp, port_of

import troupe
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # another host would not have this file


class Counter:
    """Counts what it runs; calls others, and can lose its own connections."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def count(self, number: int) -> int:
        self.seen.append(number)
        return len(self.seen)

    def slow(self, number: int, seconds: float) -> int:
        time.sleep(seconds)  # lint-ok: the method under test is slow on purpose
        return self.count(number)

    def all(self) -> list[int]:
        return self.seen

    def large(self, size: int) -> bytes:
        self.seen.append(size)
        return bytes(size)

    def storm(self, other: object, port: int, rounds: int) -> tuple[list[int], int]:
        """Many calls to another actor, the connection to which is cut while they are under way."""
        answers: list[int] = []
        cuts = 0
        for number in range(rounds):
            start = len(answers)
            refs = [other.count.remote(start + i) for i in range(200)]
            troupe.wait(refs, num_returns=1 + number * 7 % 190, timeout=60)
            cuts += cut_tcp({port})
            answers += troupe.get(refs, timeout=60)
        return answers, cuts


def on(node_id: str) -> object:
    return (
        troupe.remote(Counter)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False))
        .remote()
    )


@pytest.fixture
def pair(hosts: dict[str, str]) -> Iterator[tuple]:
    """A Counter on either host, both there; killed after the test."""
    made = on(hosts["a"]), on(hosts["b"])
    assert troupe.get([each.all.remote() for each in made], timeout=60) == [[], []]
    yield made
    for each in made:
        troupe.kill(each)


def test_an_idle_connection_that_was_dropped_is_no_failure(
    hosts: dict[str, str], pair: tuple
) -> None:
    _, b = pair
    for number in range(5):
        assert cut_tcp({port_of(hosts["b"])}) >= 1
        assert troupe.get(b.count.remote(number), timeout=60) == number + 1
    assert troupe.get(b.all.remote(), timeout=60) == list(range(5))


@pytest.mark.parametrize("how", [socket.SHUT_RDWR, socket.SHUT_WR, socket.SHUT_RD])
def test_a_cut_in_the_middle_of_slow_calls(hosts: dict[str, str], pair: tuple, how: int) -> None:
    """The first is running, the others are on their way or at its host."""
    _, b = pair
    refs = [b.slow.remote(number, 0.3) for number in range(4)]
    troupe.wait(refs, num_returns=1, timeout=0.05)
    assert cut_tcp({port_of(hosts["b"])}, how) >= 1
    assert troupe.get(refs[0], timeout=60) == 1
    cut_tcp({port_of(hosts["b"])}, how)
    assert troupe.get(refs, timeout=60) == [1, 2, 3, 4]
    assert troupe.get(b.all.remote(), timeout=60) == [0, 1, 2, 3]


def test_cuts_under_many_small_calls_between_two_actors(hosts: dict[str, str], pair: tuple) -> None:
    a, b = pair
    answers, cuts = troupe.get(a.storm.remote(b, port_of(hosts["b"]), 20), timeout=120)
    assert cuts >= 20
    assert answers == list(range(1, 4001))
    assert troupe.get(b.all.remote(), timeout=60) == list(range(4000))


def test_large_answers_that_were_lost_come_again(hosts: dict[str, str], pair: tuple) -> None:
    _, b = pair
    sizes = [6 << 20, 10, 3 << 20, 20]
    refs = [b.large.remote(size) for size in sizes]
    cut_tcp({port_of(hosts["b"])})
    troupe.wait(refs, num_returns=1, timeout=60)
    cut_tcp({port_of(hosts["b"])})
    assert [len(value) for value in troupe.get(refs, timeout=60)] == sizes
    assert troupe.get(b.all.remote(), timeout=60) == sizes


def test_threads_of_one_caller_each_get_their_answers(hosts: dict[str, str], pair: tuple) -> None:
    _, b = pair
    answers: list[int] = []
    more = threading.Condition()

    def call(start: int) -> None:
        for number in range(start, start + 200):
            answer = troupe.get(b.count.remote(number), timeout=60)
            with more:
                answers.append(answer)
                more.notify()

    threads = [threading.Thread(target=call, args=(1000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    seen = 0
    while seen < 700:
        with (
            more
        ):  # more than the four that may have come over the connection before: there is another one
            assert more.wait_for(lambda: len(answers) >= seen + 40, timeout=60)
        assert cut_tcp({port_of(hosts["b"])}) >= 1
        seen = len(answers)
    for thread in threads:
        thread.join()
    assert sorted(answers) == list(range(1, 801))
    assert sorted(troupe.get(b.all.remote(), timeout=60)) == sorted(
        1000 * i + k for i in range(4) for k in range(200)
    )
