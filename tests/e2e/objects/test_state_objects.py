"""Objects that a process knows: troupe.state.list_objects, and Ray's list_objects, get_objects and
summarize_objects."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Home, eventually

import troupe
from troupe.util import state

np = pytest.importorskip("numpy")

MIB = 1 << 20


@troupe.remote(num_cpus=0)
class Keeper:
    """Has objects of its own and others'."""

    def keep(self, value: Any) -> None:
        self.kept = value

    def make(self) -> list[Any]:
        self.made = troupe.put(np.zeros(MIB, dtype=np.uint8))
        return [self.made]

    def drop(self) -> None:
        self.kept = self.made = None

    def listed(self) -> list[dict[str, Any]]:
        return [dict(each) for each in state.list_objects()]


def none_left() -> None:
    eventually(lambda: troupe.state.list_objects() == [], what="the end of all objects here")


def test_objects_are_listed_by_their_refs_and_by_who_holds_them(idle: Home) -> None:
    none_left()
    keeper = Keeper.remote()
    ref = troupe.put(np.zeros(MIB, dtype=np.uint8))
    small = troupe.put(1)
    [mine] = troupe.state.list_objects()
    assert (
        mine["object_id"] == ref.hex()
        and mine["owned"]
        and mine["state"] == "memory"
        and mine["handles"] == 1
    )
    assert MIB <= mine["bytes"] < 2 * MIB and mine["lent"] == mine["views"] == 0
    troupe.get(keeper.keep.remote([ref, small]))
    by_id = {each["object_id"]: each for each in troupe.state.list_objects()}
    assert by_id[ref.hex()]["lent"] >= 1 and by_id[small.hex()]["state"] == "inline", (
        "what another knows is an object"
    )
    theirs = {each["object_id"]: each for each in troupe.get(keeper.listed.remote())}
    assert set(theirs) == {ref.hex(), small.hex()}
    assert not theirs[ref.hex()]["owned"] and theirs[ref.hex()]["type"] == "WORKER"
    array = troupe.get(ref)
    assert {each["object_id"]: each["views"] for each in troupe.state.list_objects()}[
        ref.hex()
    ] == 1
    troupe.get(keeper.drop.remote())
    del array, ref, small, by_id
    none_left()


def test_by_rays_names(idle: Home) -> None:
    none_left()
    keeper = Keeper.remote()
    [borrowed] = troupe.get(keeper.make.remote())
    own = [troupe.put(np.zeros(MIB, dtype=np.uint8)) for _ in range(3)]
    found = state.list_objects(filters=[("owned", "=", "True")])
    assert {each.object_id for each in found} == {each.hex() for each in own}
    assert all(each.reference_type == "LOCAL_REFERENCE" and each.type == "DRIVER" for each in found)
    [record] = state.get_objects(borrowed)
    assert record.object_id == borrowed.hex() and not record.owned
    assert state.get_objects(borrowed.hex()) == [record] and state.get_objects("00") == []
    assert len(state.list_objects(limit=2)) == 2
    summary = state.summarize_objects()["cluster"]
    assert (
        summary["total_objects"] == 4
        and summary["summary"]["LOCAL_REFERENCE"]["total_objects"] == 4
    )
    assert summary["total_size_mb"] >= 3 * MIB / 1e6
    troupe.get(keeper.drop.remote())
    del own, borrowed
    none_left()
