"""Refs inside values between hosts: who may use them, how long what they name lives, what is left
after faults.

Method: two workers of this machine that are as two hosts (--force-tcp), actors pinned to them, this
process as the driver: a third host. Actors of one node share a host. Counters of each process's
object store say what is held.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import cloudpickle
import objects
import pytest
import tcp_cuts
from conftest import eventually, stand_still
from objects import all_released
from tcp_cuts import cut_tcp, port_of

import troupe
from troupe import exceptions
from troupe._base.bridge import native
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

np = pytest.importorskip("numpy")
for module in (sys.modules[__name__], objects, tcp_cuts):
    cloudpickle.register_pickle_by_value(module)  # another host would not have these files

MIB = 1 << 20
KEPT_S = 30  # objects held by a process that cannot be reached are kept so long


class Keeper:
    """Keeps what it is given, gives it on, makes refs of its own."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.opened = threading.Event()

    def keep(self, name: str, value: Any) -> None:
        self.kept[name] = value

    def drop(self, *names: str) -> None:
        for name in names or list(self.kept):
            self.kept.pop(name, None)

    def give(self, name: str) -> Any:
        return self.kept[name]

    def value_of(self, name: str, timeout: float = 60) -> Any:
        value = troupe.get(self.kept[name], timeout=timeout)
        return int(value.astype(np.uint64).sum()) if hasattr(value, "astype") else value

    def get_all(self, refs: Any) -> list:
        return troupe.get(list(refs.values() if isinstance(refs, dict) else refs), timeout=60)

    def puts(self, size: int) -> dict:
        return {"array": troupe.put(np.full(size, 7, dtype=np.uint8)), "plain": troupe.put("plain")}

    def put_nested(self, size: int) -> list:
        return [
            troupe.put("inside"),
            troupe.put({"bulk": np.zeros(size, dtype=np.uint8), "it": troupe.put(1)}),
        ]

    def put_many(self, count: int) -> Iterator:
        for i in range(count):
            yield [troupe.put(i)]

    def call(self, function: Any) -> Any:
        return function()

    def hex_of(self, refs: list) -> list:
        return [ref.hex() for ref in refs]

    def pass_on(self, other: Any, name: str) -> None:
        troupe.get(other.keep.remote("passed", [self.kept[name]]), timeout=60)

    def pass_own(self, other: Any, size: int) -> None:
        troupe.get(
            other.keep.remote("own", [troupe.put(np.full(size, 5, dtype=np.uint8))]), timeout=60
        )

    def is_kept(self, name: str, refs: list) -> bool:
        return refs[0] == self.kept[name][0] and hash(refs[0]) == hash(self.kept[name][0])

    def wait_for_it(self, value: Any) -> Any:
        assert self.opened.wait(60)
        return value

    def wait_and_raise(self) -> None:
        assert self.opened.wait(60)
        raise KeyError("from the gate")

    def open(self) -> None:
        self.opened.set()

    def figures(self) -> dict:
        return native._object_figures()

    def pid(self) -> int:
        return os.getpid()


def on(node: str, **options: Any) -> Any:
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    made = troupe.remote(Keeper).options(scheduling_strategy=strategy, **options).remote()
    troupe.get(made.pid.remote(), timeout=60)
    return made


def ended(*actors: Any) -> None:
    for actor in actors:
        troupe.kill(actor)


def held_here(what: str, count: int) -> None:
    eventually(
        lambda: native._object_figures()[what] == count,
        what=f"{count} {what} ({native._object_figures()})",
    )


def figure_of(actor: Any, what: str) -> int:
    return troupe.get(actor.figures.remote(), timeout=20)[what]


def test_refs_in_arguments_are_refs_there(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    array = np.arange(20 * MIB, dtype=np.uint8)
    refs = [
        troupe.put("small"),
        troupe.put(array),
        troupe.put(None),
        troupe.put(b"x" * (300 << 10)),
    ]
    got = troupe.get(made.get_all.remote(refs), timeout=60)
    assert (
        got[0] == "small"
        and (got[1] == array).all()
        and got[2] is None
        and got[3] == b"x" * (300 << 10)
    )
    assert (
        troupe.get(made.get_all.remote({"again": refs[1], "twice": refs[1]}), timeout=60)[1].nbytes
        == 20 * MIB
    )
    assert troupe.get(made.hex_of.remote(refs), timeout=60) == [ref.hex() for ref in refs]
    troupe.get(made.keep.remote("it", [refs[0]]), timeout=60)
    assert troupe.get(made.is_kept.remote("it", [refs[0]]), timeout=60), "one object, one ref"
    assert not troupe.get(made.is_kept.remote("it", [refs[1]]), timeout=60)
    assert troupe.get(made.call.remote(lambda: troupe.get(refs[1])[5].item()), timeout=60) == 5, (
        "in a closure"
    )
    troupe.get(made.drop.remote(), timeout=60)
    del refs, got
    all_released(made)
    ended(made)


def test_a_kept_ref_outlives_the_senders_and_is_fetched_when_it_is_asked_for(
    hosts: dict[str, str],
) -> None:
    made = on(hosts["a"])
    troupe.get(
        made.keep.remote("large", [troupe.put(np.full(3 * MIB, 2, dtype=np.uint8))]), timeout=60
    )
    troupe.get(
        made.keep.remote("unread", [troupe.put(np.full(2 * MIB, 1, dtype=np.uint8))]), timeout=60
    )
    troupe.get(made.keep.remote("small", troupe.put("text")), timeout=60)
    held_here("owned", 2)
    assert native._object_figures()["pool_in_use"] == 2 and figure_of(made, "pool_in_use") == 0, (
        "nothing was fetched"
    )
    ref = troupe.get(made.give.remote("large"), timeout=60)[0]
    assert int(troupe.get(ref)[7]) == 2 and figure_of(made, "pool_in_use") == 0, (
        "its owner gets it back, as it is"
    )
    del ref
    assert (
        troupe.get(
            made.get_all.remote(troupe.get(made.give.remote("large"), timeout=60)), timeout=60
        )[0].nbytes
        == 3 * MIB
    )
    eventually(
        lambda: figure_of(made, "pool_in_use") == 1,
        what="one value there, once the result of the call is taken",
    )
    held_here("pool_in_use", 1)  # the value is the actor's now
    troupe.get(made.drop.remote("unread"), timeout=60)
    held_here("pool_in_use", 0)
    assert (
        int(troupe.get(troupe.get(made.give.remote("large"), timeout=60)[0], timeout=60)[1]) == 2
    ), "fetched back"
    troupe.get(made.drop.remote(), timeout=60)
    all_released(made)
    ended(made)


def test_values_still_to_come_and_errors(hosts: dict[str, str]) -> None:
    made, gate = on(hosts["a"], max_concurrency=4), on(hosts["b"], max_concurrency=4)
    small, large = (
        gate.wait_for_it.remote(11),
        gate.wait_for_it.remote(np.full(2 * MIB, 3, dtype=np.uint8)),
    )
    wrong = gate.wait_and_raise.remote()
    asked = [made.get_all.remote([small, large]), made.get_all.remote([wrong])]
    troupe.get(made.keep.remote("small", [small]), timeout=60)
    with pytest.raises(
        TimeoutError
    ):  # a timeout of the method's get, not of this one: as in Ray no GetTimeoutError
        troupe.get(made.call.remote(lambda: troupe.get(large, timeout=0.2)), timeout=60)
    assert troupe.wait(asked, timeout=0)[0] == []
    del small, large, wrong
    troupe.get(gate.open.remote(), timeout=60)
    got = troupe.get(asked[0], timeout=60)
    assert got[0] == 11 and got[1].nbytes == 2 * MIB and int(got[1][9]) == 3
    with pytest.raises(KeyError, match="from the gate"):
        troupe.get(asked[1], timeout=60)
    troupe.get(made.drop.remote(), timeout=60)
    del asked, got
    all_released()
    ended(made, gate)


def test_refs_in_results(hosts: dict[str, str]) -> None:
    made, other, neighbour = on(hosts["a"]), on(hosts["b"]), on(hosts["a"])
    late = other.get_all.remote(made.puts.remote(2 * MIB))
    assert troupe.get(late, timeout=60)[1] == "plain", (
        "a value that holds refs, which the call waited for"
    )
    nested = neighbour.get_all.remote(made.put_nested.remote(2 * MIB))
    assert troupe.get(nested, timeout=60)[0] == "inside", (
        "in memory, from one host to another and on"
    )
    del late, nested
    given = made.puts.remote(2 * MIB)
    got = troupe.get(given, timeout=60)
    eventually(lambda: figure_of(made, "owned") == 2, what="the end of all but those two")
    held_here("pool_in_use", 0)  # nothing was fetched
    assert (
        troupe.get(got["plain"], timeout=60) == "plain"
        and int(troupe.get(got["array"], timeout=60)[-1]) == 7
    )
    for taker in (other, neighbour, made):
        assert troupe.get(taker.get_all.remote(list(got.values())), timeout=60)[1] == "plain", (
            "handed on"
        )
        assert troupe.get(taker.get_all.remote(given), timeout=60)[1] == "plain", (
            "a value that holds refs, resolved"
        )
    assert troupe.get(other.hex_of.remote(list(got.values())), timeout=60) == [
        ref.hex() for ref in got.values()
    ]
    troupe.get(other.keep.remote("theirs", [got["array"]]), timeout=60)
    del given, got
    assert (
        int(troupe.get(troupe.get(other.give.remote("theirs"), timeout=60)[0], timeout=60)[0]) == 7
    )
    troupe.get(other.drop.remote("theirs"), timeout=60)
    all_released(made, other, neighbour)
    ended(made, other, neighbour)


def test_refs_in_items_of_streams_and_in_several_results(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    items = made.put_many.options(num_returns="streaming").remote(40)
    for i, item in enumerate(items):
        assert troupe.get(troupe.get(item, timeout=60)[0], timeout=60) == i
    several = made.put_many.options(num_returns=3).remote(3)
    assert [troupe.get(each[0], timeout=60) for each in troupe.get(several, timeout=60)] == [
        0,
        1,
        2,
    ]
    left = made.put_many.options(num_returns="streaming").remote(12)
    assert troupe.get(troupe.get(next(left), timeout=60)[0], timeout=60) == 0
    del items, item, several, left
    all_released(made)
    ended(made)


def test_values_that_are_put_may_hold_refs(hosts: dict[str, str]) -> None:
    made, neighbour = on(hosts["a"]), on(hosts["a"])
    inner = troupe.put(np.full(MIB, 1, dtype=np.uint8))
    outer = troupe.put({"inner": inner, "bulk": np.zeros(4 * MIB, dtype=np.uint8)})
    outmost = troupe.put([outer])
    assert troupe.get(made.get_all.remote([outmost]), timeout=60)[0] == [outer]  # itself, come back
    value = troupe.get(made.get_all.remote([outer]), timeout=60)[0]
    assert value["inner"] == inner and value["bulk"].nbytes == 4 * MIB
    troupe.get(made.keep.remote("outer", outer), timeout=60)  # by its value
    troupe.get(made.keep.remote("it", [outmost]), timeout=60)
    del inner, outer, outmost, value

    def inside(refs: list) -> int:
        middle = troupe.get(refs[0], timeout=60)[0]
        return int(
            troupe.get(troupe.get(middle, timeout=60)["inner"], timeout=60).astype(np.uint64).sum()
        )

    refs = troupe.get(made.give.remote("it"), timeout=60)
    assert inside(refs) == MIB
    troupe.get(made.pass_on.remote(neighbour, "it"), timeout=60)
    passed = troupe.get(neighbour.give.remote("passed"), timeout=60)
    assert inside(passed[0]) == MIB, "to another process of that host"
    kept = troupe.get(made.give.remote("outer"), timeout=60)
    assert int(troupe.get(kept["inner"], timeout=60)[0]) == 1
    del refs, passed, kept
    for each in (made, neighbour):
        troupe.get(each.drop.remote(), timeout=60)
    all_released(made, neighbour)
    ended(made, neighbour)


def test_refs_handed_on_within_a_host_and_to_a_third(hosts: dict[str, str]) -> None:
    a, neighbour, b = on(hosts["a"]), on(hosts["a"]), on(hosts["b"])
    ref = troupe.put(np.full(2 * MIB, 4, dtype=np.uint8))
    name = ref.hex()
    troupe.get(a.keep.remote("it", [ref]), timeout=60)
    for taker in (neighbour, b):
        troupe.get(a.pass_on.remote(taker, "it"), timeout=60)
    del ref
    troupe.get(a.drop.remote(), timeout=60)
    for taker in (neighbour, b):
        passed = troupe.get(taker.give.remote("passed"), timeout=60)[0]
        assert passed[0].hex() == name
        assert int(troupe.get(passed[0], timeout=60)[5]) == 4
        assert troupe.get(taker.get_all.remote(passed), timeout=60)[0].nbytes == 2 * MIB
        del passed
        troupe.get(taker.drop.remote(), timeout=60)
    all_released(a, neighbour, b)
    ended(a, neighbour, b)


def test_many_refs(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    refs = [troupe.put(i) for i in range(3000)]
    assert troupe.get(made.get_all.remote(refs), timeout=90) == list(range(3000))
    troupe.get(made.keep.remote("many", [troupe.put(refs)]), timeout=90)
    del refs
    inner = troupe.get(troupe.get(made.give.remote("many"), timeout=90)[0], timeout=90)
    assert troupe.get(inner[2999], timeout=90) == 2999
    del inner
    troupe.get(made.drop.remote(), timeout=20)
    all_released(made)
    ended(made)


def test_an_actor_that_nobody_called_yet_gets_refs(hosts: dict[str, str]) -> None:
    """The actor's place is not known when the call is made."""
    strategy = NodeAffinitySchedulingStrategy(hosts["b"], soft=False)
    ref = troupe.put({"inner": troupe.put(5), "bulk": np.zeros(2 * MIB, dtype=np.uint8)})
    made = troupe.remote(Keeper).options(scheduling_strategy=strategy).remote()
    first = made.get_all.remote([ref])
    second = made.keep.remote("it", ref)
    assert troupe.get(troupe.get(first, timeout=60)[0]["inner"], timeout=60) == 5
    troupe.get(second, timeout=60)
    assert troupe.get(troupe.get(made.give.remote("it"), timeout=60)["inner"], timeout=60) == 5
    troupe.get(made.drop.remote(), timeout=60)
    del ref, first
    all_released(made)
    ended(made)


# ---- faults
# ----------------------------------------------------------------------------------------


def test_a_receiver_that_is_killed_leaves_nothing(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    troupe.get(
        made.keep.remote("it", [troupe.put(np.full(MIB, 1, dtype=np.uint8)), troupe.put("text")]),
        timeout=60,
    )
    held_here("owned", 2)
    os.kill(troupe.get(made.pid.remote(), timeout=20), signal.SIGKILL)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(made.pid.remote(), timeout=60)
    all_released()


def test_an_owner_that_is_killed(hosts: dict[str, str]) -> None:
    made, owner = on(hosts["a"]), on(hosts["b"])
    refs = troupe.get(owner.puts.remote(2 * MIB), timeout=60)
    array = troupe.get(refs["array"], timeout=60)
    troupe.get(owner.pass_own.remote(made, MIB), timeout=60)
    unread = troupe.get(owner.puts.remote(2 * MIB), timeout=60)
    os.kill(troupe.get(owner.pid.remote(), timeout=20), signal.SIGKILL)
    with pytest.raises(
        exceptions.OwnerDiedError, match="the process that the ref came from is gone"
    ):
        troupe.get(unread["array"], timeout=60)
    with pytest.raises(exceptions.OwnerDiedError):
        troupe.get(made.get_all.remote([unread["plain"]]), timeout=60)
    with pytest.raises(exceptions.OwnerDiedError):  # learns of it by the lost connections alone
        troupe.get(troupe.get(made.give.remote("own"), timeout=60)[0], timeout=KEPT_S + 60)
    assert (array == 7).all() and troupe.get(refs["array"]) is not None, "what came stays"
    troupe.get(made.drop.remote(), timeout=60)
    del refs, unread, array
    all_released(made)
    ended(made)


def test_connections_that_are_cut(hosts: dict[str, str]) -> None:
    made = on(hosts["a"])
    port = port_of(hosts["a"])
    array = np.arange(24 * MIB, dtype=np.uint8)
    total = int(array.astype(np.uint64).sum())
    cuts = 0
    for i in range(6):
        troupe.get(
            made.keep.remote("mine", troupe.put([troupe.put(array)])), timeout=60
        )  # the value: a list of a ref
        cuts += cut_tcp({port})
        theirs = made.puts.remote(16 * MIB)
        asked = made.call.remote(lambda: None)
        for _ in range(3):
            troupe.wait([theirs, asked], num_returns=2, timeout=0.03 * i)
            cuts += cut_tcp({port})
        refs = troupe.get(made.give.remote("mine"), timeout=60)
        summed = made.get_all.remote(refs)
        troupe.wait([summed], timeout=0.05 * i)
        cuts += cut_tcp({port})
        assert int(troupe.get(summed, timeout=90)[0].astype(np.uint64).sum()) == total
        got = troupe.get(theirs, timeout=90)["array"]
        troupe.wait([got], timeout=0.02 * i)
        cuts += cut_tcp({port})
        assert (troupe.get(got, timeout=90) == 7).all()
        del refs, summed, got, theirs, asked
    assert cuts != 0
    troupe.get(made.drop.remote(), timeout=60)
    all_released(made)
    ended(made)


def test_refs_outlive_the_handle_over_which_they_went(hosts: dict[str, str]) -> None:
    class Giver:
        """Has a connection to its taker for a moment."""

        def give(self, name: str, size: int) -> None:
            taker = troupe.get_actor(name)
            troupe.get(
                taker.keep.remote("it", [troupe.put(np.full(size, 9, dtype=np.uint8))]), timeout=60
            )

        def figures(self) -> dict:
            return native._object_figures()

    taker = on(hosts["a"], name="taker")
    giver = (
        troupe.remote(Giver)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(hosts["b"], soft=False))
        .remote()
    )
    troupe.get(giver.give.remote("taker", 2 * MIB), timeout=60)
    assert troupe.get(giver.figures.remote(), timeout=20)["pool_in_use"] == 1
    assert int(troupe.get(troupe.get(taker.give.remote("it"), timeout=60)[0], timeout=60)[0]) == 9
    troupe.get(giver.give.remote("taker", 3 * MIB), timeout=60)
    troupe.get(taker.drop.remote(), timeout=60)
    all_released(giver, taker)
    ended(giver, taker)


def test_a_ref_of_a_process_that_is_stopped(hosts: dict[str, str]) -> None:
    """Nobody waits for ever: get has its limit, and is interrupted."""
    made = on(hosts["a"])
    refs = troupe.get(made.puts.remote(2 * MIB), timeout=60)
    pid = troupe.get(made.pid.remote(), timeout=20)
    stand_still(pid)
    try:
        with pytest.raises(exceptions.GetTimeoutError):
            troupe.get(refs["plain"], timeout=1)
        assert troupe.wait([refs["array"]], timeout=0)[0] == []
        interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            troupe.get(refs["array"], timeout=60)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert troupe.get(refs["plain"], timeout=60) == "plain"
    del refs
    all_released(made)
    ended(made)
