"""Names in pickles of handles, refs and groups: troupe._pickled and public modules.

The rest: tests/bindings/test_pickled.py.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from conftest import TIMEOUT_S, Home

import troupe
from troupe._base.bridge import native
from troupe._code import capture
from troupe.util import placement_group, remove_placement_group


class Keeper:
    def keep(self, value: Any) -> Any:
        self.value = value
        return value

    @troupe.method(num_returns="dynamic")
    def parts(self) -> Any:
        yield from range(3)


class Noting(pickle.Unpickler):
    """Notes the modules of ours that a pickle names."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.named: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "troupe":
            self.named.add(module)
        return super().find_class(module, name)


def named(data: bytes) -> set[str]:
    noting = Noting(data)
    noting.load()
    return noting.named


def test_handles_refs_and_groups_name_what_never_moves(idle: Home) -> None:
    keeper = troupe.remote(Keeper).remote()
    detached = troupe.remote(Keeper).options(name="pickled", lifetime="detached").remote()
    group = placement_group([{"CPU": 1}])
    ref = troupe.put([1, 2])
    dynamic = troupe.get(keeper.parts.remote(), timeout=TIMEOUT_S)
    refs = native.TakenRefs()
    for value in (keeper, detached, group, ref, dynamic, [keeper, {"ref": ref, "group": group}]):
        data = refs.take(lambda value=value: capture.dumps(value, (), {}, what="it"))
        assert named(data) <= {"troupe._pickled", "troupe.util.placement_group"}, value
    assert named(pickle.dumps(ref)) == {"troupe._pickled"}
    kept = troupe.get(keeper.keep.remote([detached, group, {"ref": ref}]), timeout=TIMEOUT_S)
    assert (
        kept[0] == detached
        and kept[1] == group
        and troupe.get(kept[2]["ref"], timeout=TIMEOUT_S) == [1, 2]
    )
    troupe.kill(detached)
    troupe.kill(keeper)
    remove_placement_group(group)
