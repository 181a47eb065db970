"""Two nodes that are as two hosts (--force-tcp): calls, values, blobs, launches and deaths over
TLS.

Method: a head and two workers of this machine, none of which shares a Unix socket with another nor
with this driver; actors are pinned to a node each. What is listened to is checked by the kernel's
own tables.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import pytest
from conftest import eventually
from handles import all_looked_at

import troupe
from troupe import exceptions
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # another host would not have this file


class Peer:
    """An actor that others call, and that calls others."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def whoami(self) -> tuple[str, int]:
        return troupe.get_runtime_context().get_node_id(), os.getpid()

    def echo(self, value: object) -> object:
        return value

    def note(self, value: object) -> int:
        self.calls.append(value)
        return len(self.calls)

    def noted(self) -> list[object]:
        return self.calls

    def ask(self, other: object, method: str, *args: object) -> object:
        return troupe.get(getattr(other, method).remote(*args), timeout=30)

    def storm(self, other: object, count: int) -> list[int]:
        return troupe.get([other.note.remote(i) for i in range(count)], timeout=60)

    def fail(self) -> None:
        raise KeyError("nothing here")

    def big(self, size: int) -> bytes:
        return bytes(size)

    def sleep(self, seconds: float) -> float:
        time.sleep(seconds)  # lint-ok: the method under test is slow on purpose
        return seconds

    def sockets(self) -> list[str]:
        """Return the peers of this process's connections, by family."""
        found = []
        for name in os.listdir("/proc/self/fd"):
            try:
                duplicate = socket.socket(fileno=os.dup(int(name)))
                with duplicate:
                    if duplicate.family != socket.AF_UNIX:
                        found.append(str(duplicate.getpeername()))
            except OSError:
                continue
        return found


def on(node: str, **options: object) -> object:
    """A Peer on that node."""
    return (
        troupe.remote(Peer)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False), **options)
        .remote()
    )


@pytest.fixture
def pair(hosts: dict[str, str]) -> Iterator[tuple]:
    """A Peer on either host, killed after the test."""
    made = on(hosts["a"]), on(hosts["b"])
    yield made
    for each in made:
        troupe.kill(each)
    eventually(
        lambda: troupe.available_resources() == troupe.cluster_resources(),
        timeout=20,
        what="the return of all resources",
    )


def test_the_driver_calls_both_and_they_are_where_they_should_be(
    hosts: dict[str, str], pair: tuple
) -> None:
    where = troupe.get([each.whoami.remote() for each in pair], timeout=60)
    assert [node for node, _ in where] == [hosts["a"], hosts["b"]]
    assert troupe.get([each.echo.remote(i) for i, each in enumerate(pair)], timeout=30) == [0, 1]
    assert all(troupe.get(each.sockets.remote(), timeout=30) for each in pair)  # not by Unix socket


def test_actors_call_each_other_both_ways(pair: tuple) -> None:
    a, b = pair
    pids = [pid for _, pid in troupe.get([a.whoami.remote(), b.whoami.remote()], timeout=60)]
    assert troupe.get(a.ask.remote(b, "whoami"), timeout=60)[1] == pids[1]
    assert troupe.get(b.ask.remote(a, "whoami"), timeout=60)[1] == pids[0]


def test_calls_run_in_order_and_once(pair: tuple) -> None:
    a, b = pair
    assert troupe.get(a.storm.remote(b, 3000), timeout=90) == list(range(1, 3001))
    assert troupe.get(b.noted.remote(), timeout=30) == list(range(3000))
    assert troupe.get([b.note.remote(None) for _ in range(3000)], timeout=60)[-1] == 6000


def test_values_of_every_size_pass(pair: tuple) -> None:
    a, b = pair
    for size in (0, 1, 16383, 16384, 16385, 100_000, 1 << 20, (8 << 20) + 3):
        value = os.urandom(size)
        assert troupe.get(a.echo.remote(value), timeout=60) == value
    assert len(troupe.get(a.ask.remote(b, "big", 4 << 20), timeout=60)) == 4 << 20
    assert troupe.get(a.ask.remote(b, "echo", {"k": [1, (2, "x")]}), timeout=30) == {
        "k": [1, (2, "x")]
    }


def test_refs_of_one_host_are_arguments_on_the_other(pair: tuple) -> None:
    a, b = pair
    large = troupe.put(b"z" * (2 << 20))
    assert len(troupe.get(b.echo.remote(large), timeout=60)) == 2 << 20
    assert troupe.get(b.echo.remote(a.big.remote(1 << 20)), timeout=60) == bytes(1 << 20)


def test_what_a_frame_has_room_for_reaches_an_actor_that_is_not_there_yet(
    hosts: dict[str, str],
) -> None:
    value = os.urandom(15 << 20)
    actor = on(hosts["b"])
    assert (
        troupe.get(actor.echo.remote(value), timeout=60) == value
    )  # submitted before its host was known
    troupe.kill(actor)


def test_an_exception_keeps_its_type_across_hosts(pair: tuple) -> None:
    a, b = pair
    with pytest.raises(KeyError, match="nothing here"):
        troupe.get(b.fail.remote(), timeout=60)
    with pytest.raises(KeyError, match="nothing here"):
        troupe.get(a.ask.remote(b, "fail"), timeout=60)


def test_a_caller_gets_in_while_a_method_runs(pair: tuple) -> None:
    """The handshake is not the serving thread's: it succeeds long before the method's end."""
    a, b = pair
    slow = b.sleep.remote(2.0)
    assert troupe.get(a.ask.remote(b, "echo", 7), timeout=60) == 7
    assert troupe.get(slow, timeout=30) == 2.0


def test_a_busy_actor_with_a_full_socket_is_not_unreachable(pair: tuple) -> None:
    """Longer than the time after which a silent peer counts as lost: it answers the kernel's
    probes."""
    a, b = pair
    slow = b.sleep.remote(7.0)
    value = os.urandom(12 << 20)
    waiting = b.echo.remote(value)
    assert troupe.get(a.ask.remote(b, "note", bytes(4 << 20)), timeout=60) == 1
    assert troupe.get(waiting, timeout=60) == value and troupe.get(slow, timeout=1) == 7.0


def test_a_killed_callee_is_a_death_with_its_cause_at_every_caller(
    hosts: dict[str, str], pair: tuple
) -> None:
    a, _ = pair
    victim = on(hosts["b"])
    pid = troupe.get(victim.whoami.remote(), timeout=60)[1]
    assert troupe.get(a.ask.remote(victim, "echo", 1), timeout=60) == 1
    from_actor, from_driver = a.ask.remote(victim, "sleep", 60.0), victim.sleep.remote(60.0)
    assert troupe.wait([from_actor, from_driver], num_returns=1, timeout=0.5)[0] == []
    os.kill(pid, signal.SIGKILL)
    for ref in (from_driver, from_actor, victim.echo.remote(1)):
        with pytest.raises(exceptions.ActorDiedError, match="SIGKILL"):
            troupe.get(ref, timeout=20)


def test_many_callers_at_once(hosts: dict[str, str], pair: tuple) -> None:
    """More of one host than the door takes at a time: those turned away come again."""
    _, b = pair
    troupe.get(b.whoami.remote(), timeout=60)
    callers = [on(hosts["a"], num_cpus=0.1) for _ in range(20)]
    troupe.get([each.whoami.remote() for each in callers], timeout=90)
    answers = troupe.get(
        [each.ask.remote(b, "echo", i) for i, each in enumerate(callers)], timeout=90
    )
    assert answers == list(range(20))
    for each in callers:
        troupe.kill(each)


def test_threads_of_the_driver_share_a_channel(pair: tuple) -> None:
    _, b = pair
    with ThreadPoolExecutor(8) as pool:
        rounds = list(
            pool.map(
                lambda i: [troupe.get(b.echo.remote((i, k)), timeout=60) for k in range(50)],
                range(8),
            )
        )
    assert rounds == [[(i, k) for k in range(50)] for i in range(8)]


def test_a_class_too_large_for_a_message_comes_from_the_other_host(hosts: dict[str, str]) -> None:
    """The class's bytes lie with one node's worker; the other node fetches them over TLS."""
    ballast = os.urandom(9 << 20)

    class Heavy:
        def digest(self) -> tuple[int, bytes]:
            return len(ballast), ballast[:16] + ballast[-16:]

    for name in ("a", "b"):
        made = (
            troupe.remote(Heavy)
            .options(scheduling_strategy=NodeAffinitySchedulingStrategy(hosts[name], soft=False))
            .remote()
        )
        assert troupe.get(made.digest.remote(), timeout=90) == (
            len(ballast),
            ballast[:16] + ballast[-16:],
        )
        troupe.kill(made)


def test_an_actor_makes_a_heavy_actor_on_the_other_host(hosts: dict[str, str]) -> None:
    """The actor puts the class on a worker and asks that one by its own certificate."""

    class Maker:
        def make(self, node: str, size: int) -> int:
            from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

            ballast = bytes(size)

            class Heavy:
                def size(self) -> int:
                    return len(ballast)

            made = troupe.remote(Heavy).options(scheduling_strategy=On(node, soft=False)).remote()
            size = troupe.get(made.size.remote(), timeout=60)
            troupe.kill(made)
            return size

    for here, there in (("a", "b"), ("b", "a")):
        maker = (
            troupe.remote(Maker)
            .options(scheduling_strategy=NodeAffinitySchedulingStrategy(hosts[here], soft=False))
            .remote()
        )
        assert troupe.get(maker.make.remote(hosts[there], 1 << 20), timeout=90) == 1 << 20
        troupe.kill(maker)


def test_the_driver_of_a_launch_reaches_its_ranks_on_the_other_host(hosts: dict[str, str]) -> None:
    from troupe.launch import ray_launch

    @ray_launch(processes=4, remote=True, strategy="SPREAD", timeout=90)
    def drive() -> tuple:
        from troupe.launch import current

        context = current()

        class Holder:
            def size(self, value: bytes) -> int:
                return len(value)

        nodes = {rank.node for rank in context.ranks}
        parts = [rank.run(lambda: os.getpid()) for rank in context.ranks]
        holders = [troupe.remote(num_cpus=1)(Holder).remote() for _ in range(3)]
        sizes = troupe.get([each.size.remote(b"x" * 300_000) for each in holders], timeout=60)
        return len(nodes), len(set(parts)), sizes

    assert drive.distributed()[0] == (2, 4, [300_000] * 3)


def test_large_results_come_back_from_both_hosts(hosts: dict[str, str]) -> None:
    from troupe.launch import distributed

    @distributed(processes=4, remote=True, strategy="SPREAD", timeout=90)
    def work() -> bytes:
        return os.environ["RANK"].encode() * (3 << 20)

    assert [value[:1] + bytes([len(value) >> 20]) for value in work.distributed()] == [
        str(rank).encode() + b"\x03" for rank in range(4)
    ]


def test_a_handle_on_another_host_is_not_counted(hosts: dict[str, str]) -> None:
    actor, peer = on(hosts["a"]), on(hosts["b"])
    peer.note.remote([actor])  # before it is known where either is
    pid = troupe.get(actor.whoami.remote(), timeout=60)[1]
    troupe.get(peer.note.remote([actor]), timeout=30)
    troupe.get(peer.note.remote(troupe.put([actor])), timeout=30)
    given_back = troupe.get(peer.echo.remote(actor), timeout=30)
    del actor
    all_looked_at()
    for number in range(3):
        asked = peer.__ray_call__.remote(
            lambda self, number: troupe.get(self.calls[number][0].whoami.remote())[1], number
        )
        assert troupe.get(asked, timeout=30) == pid
    assert troupe.get(given_back.whoami.remote(), timeout=30)[1] == pid
    troupe.kill(given_back)
