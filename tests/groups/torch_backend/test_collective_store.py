"""The store of torch over the actor in which a collective group meets: every method that torch's
C++ may call, through a PrefixStore, as torch does.

Method: a real actor; a second store of the same round sees what the first has said.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from e2e_conftest import Home

import troupe

dist = pytest.importorskip("torch.distributed")
MINUTE = datetime.timedelta(seconds=60)


@pytest.fixture
def stores(idle: Home) -> Iterator[tuple[Any, Any]]:
    """Two ranks' own, of one group."""
    from troupe.util._collective_meeting import Meeting, MeetingStore

    actor = troupe.remote(Meeting).options(num_cpus=0).remote()
    kept = [MeetingStore(actor, 0, MINUTE) for _ in range(2)]
    yield dist.PrefixStore("group", kept[0]), dist.PrefixStore("group", kept[1])
    troupe.kill(actor)


def test_every_method_of_torchs_stores(stores: tuple[Any, Any]) -> None:
    one, other = stores
    one.set("key", "value")
    assert (
        other.get("key") == b"value" and other.check(["key"]) and not other.check(["key", "none"])
    )
    other.wait(["key"], MINUTE)
    assert (one.add("count", 2), other.add("count", 3)) == (2, 5)
    assert one.num_keys() == 2
    one.append("parts", "a")
    other.append("parts", "b")
    assert one.get("parts") == b"ab"
    one.multi_set(["x", "y"], ["1", "2"])
    assert other.multi_get(["x", "y"]) == [b"1", b"2"] and other.has_extended_api()
    assert one.clone().get("x") == b"1"
    assert other.delete_key("x") and not one.check(["x"]) and not other.delete_key("x")


def test_compare_set_sets_what_is_as_expected(stores: tuple[Any, Any]) -> None:
    one, other = stores
    assert one.compare_set("new", "old", "value") == b"old" and not one.check(["new"])
    assert one.compare_set("new", "", "first") == b"first"
    assert other.compare_set("new", "other", "second") == b"first"
    assert other.compare_set("new", "first", "second") == b"second" and one.get("new") == b"second"
