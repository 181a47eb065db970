"""Large values between hosts: as arguments and as results of actors that share no memory with their
caller.

Method: two workers of this machine that are as two hosts (--force-tcp), actors pinned to them, this
process as the driver: whatever is as large as these values goes over the link for large values, in
parts.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pytest
from conftest import eventually, stand_still
from objects import all_released, arrays_of, differing, nothing_held, unaligned
from tcp_cuts import cut_tcp, port_of

import troupe
from troupe import exceptions
from troupe._base.bridge import native
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

np = pytest.importorskip("numpy")
for _module in (__name__, "objects"):  # another host would not have these files
    cloudpickle.register_pickle_by_value(sys.modules[_module])

MIB = 1 << 20
KEPT_S = 30  # objects that wait for a process that cannot be reached are kept so long


class Store:
    """Looks at values, keeps some, makes some, passes some on."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def look(self, array: Any) -> tuple:
        return (
            type(array).__name__,
            array.nbytes,
            int(array[0]),
            int(array[-1]),
            array.flags.writeable,
        )

    def sum_of(self, array: Any) -> int:
        return int(array.astype(np.uint64).sum())

    def size_of(self, value: Any) -> int:
        return len(value)

    def keep(self, name: str, value: Any) -> None:
        self.kept[name] = value

    def drop(self) -> None:
        self.kept.clear()

    def make(self, value: int, size: int) -> Any:
        return np.full(size, value, dtype=np.uint8)

    def parts(self, count: int, size: int) -> list:
        return [np.full(size, i, dtype=np.uint8) for i in range(count)]

    def stream(self, count: int, size: int) -> Iterator:
        yield from self.parts(count, size)

    def ask(self, other: Any, value: int, size: int) -> int:
        """Send an object made by an actor of the other host back to it."""
        made = other.make.remote(value, size)
        return troupe.get(other.sum_of.remote(made), timeout=60)

    def hand_over(self, other: Any, size: int) -> int:
        return troupe.get(other.size_of.remote(np.ones(size, dtype=np.uint8)), timeout=120)

    def limit_memory(self, more: int) -> None:
        """As a host whose memory is nearly full: this process gets so much more, and no more."""
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + more, resource.RLIM_INFINITY))

    def unlimit_memory(self) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def give(self, name: str) -> Any:
        return self.kept[name]

    def unaligned(self, *values: Any) -> list[str]:
        return unaligned(values)

    def figures(self) -> dict:
        return native._object_figures()

    def pid(self) -> int:
        return os.getpid()


def on(node: str) -> Any:
    made = (
        troupe.remote(Store)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False))
        .remote()
    )
    troupe.get(made.pid.remote(), timeout=60)
    return made


def test_a_large_argument_arrives_read_only_in_the_actors_own_memory(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    array = np.arange(64 * MIB, dtype=np.uint8)
    assert troupe.get(made.look.remote(array), timeout=60) == ("ndarray", 64 * MIB, 0, 255, False)
    ref = troupe.put(array)
    assert troupe.get(made.sum_of.remote(ref), timeout=60) == int(array.astype(np.uint64).sum())
    del ref
    all_released(made)
    troupe.kill(made)


def test_large_results_become_the_callers(hosts: dict[str, str]) -> None:
    made = on(hosts["b"])
    refs = [made.make.remote(i, size * MIB) for i, size in enumerate((3, 40, 2, 17, 64))]
    arrays = troupe.get(refs, timeout=90)
    assert [(int(each[0]), int(each[-1]), each.nbytes // MIB) for each in arrays] == [
        (0, 0, 3),
        (1, 1, 40),
        (2, 2, 2),
        (3, 3, 17),
        (4, 4, 64),
    ]
    assert not any(each.flags.writeable for each in arrays)
    troupe.kill(made)  # the objects are here
    assert int(arrays[1].astype(np.uint64).sum()) == 40 * MIB
    assert troupe.get(on(hosts["a"]).look.remote(refs[3]), timeout=60) == (
        "ndarray",
        17 * MIB,
        3,
        3,
        False,
    )
    del refs, arrays
    all_released()


def test_arrays_start_on_64_bytes_between_hosts(hosts: dict[str, str]) -> None:
    pytest.importorskip("torch")
    made = {name: on(hosts[name]) for name in "ab"}
    for size in (
        1 << 10,
        48 << 10,
        200 << 10,
        2 * MIB,
    ):  # in frames, and over the link for large values
        arrays = arrays_of(size)
        ref = troupe.put({"arrays": arrays})
        assert troupe.get(
            [each.unaligned.remote(ref, arrays, *arrays.values()) for each in made.values()],
            timeout=90,
        ) == [[], []]
        troupe.get(made["a"].keep.remote("it", arrays), timeout=60)
        result = made["a"].give.remote("it")
        assert troupe.get(made["b"].unaligned.remote(result), timeout=60) == []
        got = troupe.get(result, timeout=60)
        assert unaligned(got) == [] and differing(got, arrays) == []
        troupe.get(made["a"].drop.remote(), timeout=60)
        del ref, result, got
    all_released(*made.values())
    for each in made.values():
        troupe.kill(each)


def test_an_actor_that_nobody_holds_ends_when_its_result_was_taken(hosts: dict[str, str]) -> None:
    arrays = troupe.get([on(hosts[name]).make.remote(4, 64 * MIB) for name in "ab"], timeout=90)
    assert all(each.nbytes == 64 * MIB and (each == 4).all() for each in arrays)
    del arrays
    all_released()


def test_values_of_every_kind_and_size(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    tree = {
        "weights": [np.arange(300_000), np.arange(2_000_000.0)],
        "text": "é" * (3 * MIB),
        "small": 1,
    }
    for value in (b"x" * (30 * MIB), "y" * (20 * MIB), tree, b"z" * (MIB - 100), b"z" * MIB):
        troupe.get(made.keep.remote("it", value), timeout=60)
        got = troupe.get(made.give.remote("it"), timeout=60)
        if value is not tree:
            assert got == value
            continue
        assert all((here == there).all() for here, there in zip(got["weights"], tree["weights"]))
        assert got["text"] == tree["text"] and got["small"] == 1
    del got
    early = (
        troupe.remote(Store)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(hosts["b"], soft=False))
        .remote()
    )
    assert (
        troupe.get(early.size_of.remote(b"q" * (50 * MIB)), timeout=60) == 50 * MIB
    )  # the host was not known
    troupe.get(made.drop.remote(), timeout=60)
    all_released(made, early)
    troupe.kill(made)
    troupe.kill(early)


def test_many_arguments_in_one_call_and_one_in_many(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    ref = troupe.put(np.full(24 * MIB, 2, dtype=np.uint8))
    for name in "abcdef":
        troupe.get(made.keep.remote(name, ref), timeout=60)
    assert troupe.get(made.figures.remote(), timeout=60)["pool_in_use"] == 1, (
        "one copy, as long as it is there"
    )
    sums = [made.sum_of.remote(np.full(size * MIB, 1, dtype=np.uint8)) for size in (30, 1, 5, 2)]
    assert troupe.get(sums, timeout=60) == [30 * MIB, MIB, 5 * MIB, 2 * MIB]
    troupe.get(made.drop.remote(), timeout=60)
    del ref
    all_released(made)
    troupe.kill(made)


def test_large_items_of_streams_and_of_several_results(hosts: dict[str, str]) -> None:
    made = on(hosts["b"])
    parts = made.parts.options(num_returns=3).remote(3, 9 * MIB)
    assert [(int(each[0]), each.nbytes) for each in troupe.get(parts, timeout=60)] == [
        (i, 9 * MIB) for i in range(3)
    ]
    items = made.stream.options(num_returns="streaming").remote(
        12, 8 * MIB
    )  # more than a stream may be ahead
    for i, item in enumerate(items):
        array = troupe.get(item, timeout=60)
        assert array.nbytes == 8 * MIB and (array == i).all()
    left = made.stream.options(num_returns="streaming").remote(12, 8 * MIB)
    assert int(troupe.get(next(left), timeout=60)[0]) == 0
    del parts, items, item, array, left
    all_released(made)
    troupe.kill(made)


def test_actors_of_two_hosts_exchange_large_values(hosts: dict[str, str]) -> None:
    a, b = on(hosts["a"]), on(hosts["b"])
    assert troupe.get([a.ask.remote(b, 3, 20 * MIB), a.ask.remote(b, 5, 9 * MIB)], timeout=90) == [
        60 * MIB,
        45 * MIB,
    ]
    assert troupe.get(b.ask.remote(a, 2, 33 * MIB), timeout=90) == 66 * MIB
    all_released(a, b)
    troupe.kill(a)
    troupe.kill(b)


# ---- faults
# ----------------------------------------------------------------------------------------


def stopped_in_mid_argument(a: Any, b: Any, pid: int) -> tuple[Any, int]:
    """A call by which `a`, stopped since, hands `b` a large argument, of which a part has come; its
    bytes."""
    size = 64 * MIB
    while True:
        asked = a.hand_over.remote(b, size)
        while not troupe.wait([asked], timeout=0)[0]:
            if troupe.get(b.figures.remote(), timeout=20)["pool_in_use"] == 0:
                continue
            stand_still(pid)
            troupe.wait([asked], timeout=3)  # objects on their way arrive
            if troupe.get(b.figures.remote(), timeout=20)["pool_in_use"] != 0:
                return asked, size
            os.kill(pid, signal.SIGCONT)
        assert size < 2048 * MIB, (
            "arguments of any size come before their caller can be stopped"
        )  # the call was faster
        size *= 2


def test_other_callers_do_not_wait_for_an_argument_on_its_way(hosts: dict[str, str]) -> None:
    a, b = on(hosts["a"]), on(hosts["b"])
    pid = troupe.get(a.pid.remote(), timeout=60)
    asked, size = stopped_in_mid_argument(a, b, pid)
    try:
        for _ in range(20):
            troupe.get(b.pid.remote(), timeout=20)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert troupe.get(asked, timeout=90) == size
    all_released(a, b)
    troupe.kill(a)
    troupe.kill(b)


def test_transfers_go_on_over_another_connection(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    port = port_of(hosts["a"])
    array = np.arange(48 * MIB, dtype=np.uint8)
    total = int(array.astype(np.uint64).sum())
    cuts = 0
    for i in range(4):
        there, back = made.sum_of.remote(array), made.make.remote(7, 48 * MIB)
        for _ in range(3):
            troupe.wait([there, back], num_returns=2, timeout=0.04 * i)
            cuts += cut_tcp({port})
        assert troupe.get(there, timeout=90) == total
        got = troupe.get(back, timeout=90)
        assert got.nbytes == 48 * MIB and (got == 7).all()
    assert cuts != 0
    del got, back
    all_released(made)
    troupe.kill(made)


def stopped_in_mid_result(made: Any, pid: int) -> Any:
    """A result of which a part has come, and no more will: its actor is stopped."""
    size = 64 * MIB
    while True:
        ref = made.make.remote(1, size)
        while native._object_figures()["pool_in_use"] == 0:
            troupe.wait([ref], timeout=0)
        stand_still(pid)
        if not troupe.wait([ref], timeout=3)[0]:
            return ref
        os.kill(pid, signal.SIGCONT)  # the call was faster
        del ref
        all_released()
        assert size < 2048 * MIB, "results of any size come before their actor can be stopped"
        size *= 2


def test_an_actor_that_is_killed_while_its_result_comes(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    pid = troupe.get(made.pid.remote(), timeout=60)
    ref = stopped_in_mid_result(made, pid)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(
        exceptions.ObjectLostError, match="could not be fetched from its actor's host"
    ):
        troupe.get(ref, timeout=60)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(made.pid.remote(), timeout=60)
    del ref
    all_released()


def test_an_actor_that_is_killed_while_it_takes_an_argument(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    pid = troupe.get(made.pid.remote(), timeout=60)
    stand_still(pid)
    ref = made.sum_of.remote(np.ones(64 * MIB, dtype=np.uint8))
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(ref, timeout=60)
    del ref
    all_released()


def test_a_caller_that_is_killed_leaves_nothing(hosts: dict[str, str]) -> None:
    """In mid-argument, and with a result that it did not take."""
    a, b = on(hosts["a"]), on(hosts["b"])
    pid = troupe.get(a.pid.remote(), timeout=60)
    asked, _ = stopped_in_mid_argument(a, b, pid)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(asked, timeout=60)
    eventually(
        nothing_held(lambda: troupe.get(b.figures.remote(), timeout=20)),
        timeout=KEPT_S + 60,
        what="the end of what it had begun to send",
    )
    troupe.kill(b)


def test_a_process_without_memory_for_an_argument_says_so(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    troupe.get(made.look.remote(np.ones(2 * MIB, dtype=np.uint8)), timeout=60)
    troupe.get(made.limit_memory.remote(96 * MIB), timeout=60)
    with pytest.raises(exceptions.TooLargeError, match="argument could not be fetched"):
        troupe.get(made.look.remote(np.ones(160 * MIB, dtype=np.uint8)), timeout=60)
    troupe.get(made.unlimit_memory.remote(), timeout=60)
    assert troupe.get(made.look.remote(np.ones(3 * MIB, dtype=np.uint8)), timeout=60)[1] == 3 * MIB
    all_released(made)
    troupe.kill(made)
