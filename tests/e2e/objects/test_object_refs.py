"""Refs inside values: who may use them, how long what they name lives, what is left when a process
ends."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, eventually
from objects import all_released, nothing_held

import troupe
from troupe import exceptions
from troupe._base.bridge import native

np = pytest.importorskip("numpy")

MIB = 1 << 20


@dataclasses.dataclass
class Parcel:
    label: str
    refs: list


class Keeper:
    """Keeps what it is given, gives it on, makes refs of its own."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def keep(self, name: str, value: Any) -> None:
        self.kept[name] = value

    def drop(self, name: str) -> None:
        self.kept.pop(name, None)

    def give(self, name: str) -> Any:
        return self.kept[name]

    def value_of(self, name: str) -> Any:
        value = troupe.get(self.kept[name], timeout=20)
        return int(value.astype(np.uint64).sum()) if hasattr(value, "astype") else value

    def get_all(self, refs: Any) -> list:
        return troupe.get(list(refs.values() if isinstance(refs, dict) else refs), timeout=20)

    def put(self, value: Any) -> list:
        return [troupe.put(value)]

    def puts(self, size: int) -> dict:
        return {"array": troupe.put(np.full(size, 7, dtype=np.uint8)), "plain": troupe.put("plain")}

    def call(self, function: Any) -> Any:
        return function()

    def hex_of(self, refs: list) -> list:
        return [ref.hex() for ref in refs]

    def pass_on(self, other: Any, refs: list) -> None:
        troupe.get(other.keep.remote("passed", refs), timeout=20)

    def pass_own(self, other: Any, value: Any) -> None:
        troupe.get(other.keep.remote("own", troupe.put([troupe.put(value)])), timeout=20)

    def same(self, first: list, second: list) -> tuple:
        return (
            first[0] == second[0],
            hash(first[0]) == hash(second[0]),
            first[0] != second[0],
            first[0] == 5,
        )

    def figures(self) -> dict:
        return native._object_figures()

    def pid(self) -> int:
        return os.getpid()


class Falling(Keeper):
    """A keeper whose process ends at the first attempt."""

    def falls_once(self, mark: str, refs: dict) -> list:
        if not os.path.exists(mark):
            with open(mark, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        return self.get_all(refs)


class Awaiting:
    async def awaits(self, refs: list) -> list:
        return [await refs[0], await asyncio.wrap_future(refs[1].future())]


class Gate:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def wait_for_it(self, value: Any) -> Any:
        assert self.opened.wait(30)
        return value

    def wait_and_raise(self) -> None:
        assert self.opened.wait(30)
        raise KeyError("from the gate")

    def open(self) -> None:
        self.opened.set()


def start(cls: type = Keeper, **options: Any) -> Any:
    made = (troupe.remote(**options)(cls) if options else troupe.remote(cls)).remote()
    if cls is Keeper:
        troupe.get(made.pid.remote(), timeout=20)
    return made


def killed(actor: Any) -> None:
    os.kill(troupe.get(actor.pid.remote(), timeout=20), signal.SIGKILL)
    with pytest.raises(exceptions.ActorError):
        troupe.get(actor.pid.remote(), timeout=20)


def owner_died(ref: Any) -> bool:
    try:
        troupe.get(ref, timeout=20)
    except exceptions.OwnerDiedError:
        return True
    return False


def test_refs_in_arguments_are_refs_there(idle: Home) -> None:
    made = start()
    array = np.arange(MIB, dtype=np.uint8)
    refs = [troupe.put("small"), troupe.put(array), troupe.put(None)]
    got = troupe.get(made.get_all.remote(refs), timeout=20)
    assert got[0] == "small" and (got[1] == array).all() and got[2] is None
    parcel = Parcel("p", [refs[0]])
    troupe.get(made.keep.remote("parcel", parcel), timeout=20)
    back = troupe.get(made.give.remote("parcel"), timeout=20)
    assert back.label == "p" and back.refs == [refs[0]] and troupe.get(back.refs[0]) == "small"
    assert troupe.get(made.call.remote(lambda: troupe.get(refs[1])[5].item()), timeout=20) == 5, (
        "in a closure"
    )
    assert troupe.get(made.hex_of.remote(refs), timeout=20) == [ref.hex() for ref in refs]
    assert troupe.get(made.same.remote([refs[0]], [refs[0]]), timeout=20) == (
        True,
        True,
        False,
        False,
    )
    assert troupe.get(made.same.remote([refs[0]], [refs[1]]), timeout=20)[0] is False
    troupe.get(made.drop.remote("parcel"), timeout=20)
    del refs, parcel, back, got
    all_released(made)
    troupe.kill(made)


def test_a_kept_ref_outlives_the_senders(idle: Home) -> None:
    made = start()
    size = 3 * MIB
    for name, value in (("large", np.full(size, 2, dtype=np.uint8)), ("small", "text")):
        ref = troupe.put(value)
        del value
        troupe.get(made.keep.remote(name, [ref]), timeout=20)
        del ref
    eventually(
        lambda: native._object_figures()["owned"] == 2, what="two objects that are held there"
    )
    assert native._object_figures()["pool_in_use"] == 1
    troupe.get(made.keep.remote("first", None), timeout=20)
    assert troupe.get(made.call.remote(lambda: None), timeout=20) is None
    refs = troupe.get(made.give.remote("large"), timeout=20)
    assert int(troupe.get(refs[0])[7]) == 2, "its owner gets it back"
    del refs
    assert troupe.get(troupe.get(made.give.remote("small"), timeout=20)[0]) == "text"
    troupe.get(made.drop.remote("large"), timeout=20)
    eventually(
        lambda: native._object_figures()["pool_in_use"] == 0, what="the end of the large one"
    )
    troupe.get(made.drop.remote("small"), timeout=20)
    all_released(made)
    troupe.kill(made)


def test_refs_in_results(idle: Home) -> None:
    made, other = start(), start()
    given = made.puts.remote(2 * MIB)
    got = troupe.get(given, timeout=20)
    assert (
        troupe.get(got["plain"], timeout=20) == "plain"
        and int(troupe.get(got["array"], timeout=20)[-1]) == 7
    )
    assert troupe.get(other.get_all.remote(list(got.values())), timeout=20)[1] == "plain", (
        "handed on by a borrower"
    )
    troupe.get(other.keep.remote("theirs", got["array"]), timeout=20)
    troupe.get(other.keep.remote("nested", [got["array"]]), timeout=20)
    assert troupe.get(other.get_all.remote(given), timeout=20)[1] == "plain", (
        "a value that holds refs, resolved"
    )
    del given, got
    troupe.get(other.drop.remote("theirs"), timeout=20)
    refs = troupe.get(other.give.remote("nested"), timeout=20)
    assert int(troupe.get(refs[0], timeout=20)[0]) == 7
    del refs
    troupe.get(other.drop.remote("nested"), timeout=20)
    all_released(made, other)
    troupe.kill(made)
    troupe.kill(other)


def test_what_put_does_not_take_is_said(idle: Home) -> None:
    with pytest.raises(TypeError, match="takes the handle of an actor, not <object"):
        troupe.put(1, _owner=object())
    with pytest.raises(ValueError, match="tensor_transport='nixl' is not supported"):
        troupe.put(1, _tensor_transport="nixl")
    assert troupe.get(troupe.put(1, _owner=None, _tensor_transport=None)) == 1


@troupe.remote(num_cpus=0)
class Putter:
    """Puts for another, and for itself."""

    def put_at(self, owner: object, value: object) -> list:
        return [troupe.put(value, _owner=owner)]

    def put_own(self, value: object) -> list:
        return [troupe.put(value, _owner=troupe.get_runtime_context().current_actor)]


def test_a_value_put_for_an_owner_outlives_who_put_it(idle: Home) -> None:
    owner, putter = Putter.remote(), Putter.remote()
    [large] = troupe.get(putter.put_at.remote(owner, np.full(MIB, 7, dtype=np.uint8)), timeout=20)
    [small] = troupe.get(putter.put_at.remote(owner, {"a": 1}), timeout=20)
    [own] = troupe.get(owner.put_own.remote("mine"), timeout=20)
    troupe.kill(putter)
    assert troupe.get(own, timeout=20) == "mine"
    assert troupe.get(small, timeout=20) == {"a": 1}
    assert int(troupe.get(large, timeout=20)[0]) == 7
    inner = troupe.put("inside")
    held = troupe.put([inner], _owner=owner)
    assert troupe.get(troupe.get(held, timeout=20)[0], timeout=20) == "inside", (
        "refs inside travel along"
    )
    troupe.kill(owner)
    eventually(lambda: lost(large), what="the end of the value with its owner")
    with pytest.raises(exceptions.ActorDiedError):
        troupe.put(1, _owner=owner)


def lost(ref: object) -> bool:
    try:
        troupe.get(ref, timeout=20)
    except exceptions.OwnerDiedError:
        return True
    return False


def test_values_that_are_put_may_hold_refs(idle: Home) -> None:
    made = start()
    inner = troupe.put(np.full(MIB, 1, dtype=np.uint8))
    outer = troupe.put({"inner": inner, "bulk": np.zeros(MIB, dtype=np.uint8)})
    outmost = troupe.put([outer])
    del inner, outer
    troupe.get(made.keep.remote("it", [outmost]), timeout=20)
    del outmost
    middle = troupe.get(troupe.get(made.give.remote("it"), timeout=20)[0], timeout=20)[0]
    assert int(troupe.get(troupe.get(middle, timeout=20)["inner"], timeout=20)[3]) == 1
    del middle
    assert native._object_figures()["pool_in_use"] == 2, "held by what is kept there"
    troupe.get(made.drop.remote("it"), timeout=20)
    all_released(made)
    troupe.kill(made)


def test_results_still_to_come(idle: Home) -> None:
    made, gate = start(max_concurrency=4), start(Gate, max_concurrency=4)
    small, large = (
        gate.wait_for_it.remote(11),
        gate.wait_for_it.remote(np.full(MIB, 3, dtype=np.uint8)),
    )
    wrong = gate.wait_and_raise.remote()
    asked = [made.get_all.remote([small, large]), made.get_all.remote([wrong])]
    awaited = (awaiting := start(Awaiting)).awaits.remote([small, small])
    troupe.get(made.keep.remote("small", [small]), timeout=20)
    del small, large, wrong
    assert troupe.wait(asked, timeout=0)[0] == []
    troupe.get(gate.open.remote(), timeout=20)
    got = troupe.get(asked[0], timeout=20)
    assert got[0] == 11 and got[1].nbytes == MIB and int(got[1][9]) == 3
    with pytest.raises(KeyError, match="from the gate"):
        troupe.get(asked[1], timeout=20)
    assert troupe.get(awaited, timeout=20) == [11, 11]
    assert troupe.get(troupe.get(made.give.remote("small"), timeout=20)[0], timeout=20) == 11
    troupe.get(made.drop.remote("small"), timeout=20)
    del asked, awaited, got
    eventually(nothing_held(native._object_figures), what="the end of all objects")
    for each in (made, gate, awaiting):
        troupe.kill(each)


def test_a_borrower_is_killed(idle: Home) -> None:
    made, other = start(), start()
    ref = troupe.put(np.full(MIB, 1, dtype=np.uint8))
    troupe.get(made.keep.remote("it", [ref]), timeout=20)
    troupe.get(made.pass_on.remote(other, [ref]), timeout=20)
    del ref
    killed(made)
    assert (
        int(troupe.get(troupe.get(other.give.remote("passed"), timeout=20)[0], timeout=20)[0]) == 1
    )
    killed(other)
    eventually(nothing_held(native._object_figures), what="the end of what they borrowed")


def test_the_owner_is_killed(idle: Home) -> None:
    made, owner = start(), start()
    troupe.get(owner.pass_own.remote(made, np.full(MIB, 5, dtype=np.uint8)), timeout=20)
    refs = troupe.get(owner.puts.remote(MIB), timeout=20)
    array = troupe.get(refs["array"], timeout=20)
    pending = troupe.get(owner.puts.remote(MIB), timeout=20)
    killed(owner)
    eventually(lambda: owner_died(refs["array"]), what="the news of the owner's end")
    with pytest.raises(exceptions.OwnerDiedError):
        troupe.get(made.get_all.remote([pending["plain"]]), timeout=20)
    with pytest.raises(exceptions.OwnerDiedError):
        troupe.get(troupe.get(made.give.remote("own"), timeout=20)[0], timeout=20)
    assert (array == 7).all(), "what was mapped stays"
    troupe.get(made.drop.remote("own"), timeout=20)
    del refs, pending, array
    all_released(made)
    troupe.kill(made)


def test_an_owner_dies_before_its_result_is_there(idle: Home) -> None:
    class Middle:
        def hand(self, gate: Any, other: Any) -> None:
            troupe.get(other.keep.remote("pending", [gate.wait_for_it.remote(1)]), timeout=20)

        def pid(self) -> int:
            return os.getpid()

    made, gate, middle = start(), start(Gate, max_concurrency=2), start(Middle)
    troupe.get(middle.hand.remote(gate, made), timeout=20)
    asked = made.call.remote(lambda: None)
    troupe.get(asked, timeout=20)
    ref = troupe.get(made.give.remote("pending"), timeout=20)[0]
    assert not ref.done()
    killed(middle)
    with pytest.raises(exceptions.OwnerDiedError):
        troupe.get(ref, timeout=20)
    troupe.get(gate.open.remote(), timeout=20)
    troupe.get(made.drop.remote("pending"), timeout=20)
    del ref
    all_released(made)
    for each in (made, gate):
        troupe.kill(each)


def test_many_refs(idle: Home) -> None:
    made = start()
    refs = [troupe.put(i) for i in range(3000)]
    assert troupe.get(made.get_all.remote(refs), timeout=60) == list(range(3000))
    troupe.get(made.keep.remote("many", troupe.put(refs)), timeout=60)
    del refs
    assert troupe.get(troupe.get(made.give.remote("many"), timeout=60)[2999], timeout=60) == 2999
    troupe.get(made.drop.remote("many"), timeout=20)
    all_released(made)
    troupe.kill(made)


class Unloadable:
    def __reduce__(self) -> tuple:
        return int, ("no number",)


def test_many_refs_of_which_some_are_loaded(idle: Home) -> None:
    """A ref is loaded twice; and refs of a value whose loading ends in an exception half-way."""
    made = start()
    refs = [troupe.put(i) for i in range(19)] + [troupe.put(np.full(MIB, 9, dtype=np.uint8))]
    for value in (
        troupe.get(troupe.put(refs + refs[::-1])),
        troupe.get(made.call.remote(lambda: refs + refs[::-1])),
    ):
        assert value == refs + refs[::-1]
        del value
    with pytest.raises(ValueError, match="no number"):
        troupe.get(troupe.put([refs[:10], Unloadable(), refs[10:]]))
    with pytest.raises(exceptions.TaskError, match="no number"):
        troupe.get(made.keep.remote("half", [refs[:10], Unloadable(), refs[10:]]), timeout=20)
    assert troupe.get(made.get_all.remote(refs[:19]), timeout=20) == list(range(19))
    del refs
    all_released(made)
    troupe.kill(made)
    eventually(nothing_held(native._object_figures), what="the end of all objects")


def test_refs_of_one_object_are_equal(idle: Home) -> None:
    ref = troupe.put(1)
    again = troupe.get(troupe.put([ref]))[0]
    assert (
        again == ref
        and hash(again) == hash(ref)
        and again.hex() == ref.hex()
        and len({again, ref}) == 1
    )
    assert ref != troupe.put(1) and ref != 1
    name = bytes.fromhex("00" * 8 + "11" * 16)
    with pytest.raises(exceptions.ObjectLostError):
        native._borrowed_ref(name)
    del ref, again
    eventually(nothing_held(native._object_figures), what="the end of all objects")


def test_a_copy_of_a_ref_is_that_ref(idle: Home) -> None:
    ref = troupe.put(np.zeros(MIB))
    same = [
        copy.copy(ref),
        copy.deepcopy({"deep": [ref]})["deep"][0],
        dataclasses.asdict(Parcel("a", [ref]))["refs"][0],
    ]
    assert all(each is ref for each in same)
    del ref
    assert troupe.get(same.pop()).nbytes == 8 * MIB
    del same
    eventually(nothing_held(native._object_figures), what="the end of all objects")


def test_a_call_that_is_made_again_brings_its_refs_again(idle: Home, tmp_path: Path) -> None:
    made = start(Falling, max_restarts=1, max_task_retries=1)
    refs = {"large": troupe.put(np.full(MIB, 3, dtype=np.uint8)), "small": troupe.put("small")}
    waiting = made.falls_once.remote(str(tmp_path / "mark"), refs)
    del refs
    large, small = troupe.get(waiting, timeout=60)
    assert int(large[-1]) == 3 and small == "small" and (tmp_path / "mark").exists()
    del large, waiting
    troupe.kill(made)
    all_released()
