"""Chains of calls between actors of different hosts, with values of every size.

Method: as test_objects_away: two workers of this machine that are as two hosts.
"""

from __future__ import annotations

import sys
from typing import Any

import cloudpickle
import pytest

import troupe
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

np = pytest.importorskip("numpy")
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@troupe.remote(num_cpus=0)
class Store:
    def make(self, value: int, size: int) -> Any:
        return np.full(size, value, dtype=np.uint8)

    def more(self, array: Any) -> Any:
        return array + 1

    def look(self, array: Any) -> tuple:
        return array.nbytes, int(array[0]), int(array[-1])


def on(node: str) -> Any:
    return Store.options(
        scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node, soft=False)
    ).remote()


@pytest.mark.parametrize("size", [10, 200_000, 5_000_000, 40_000_000])
def test_values_that_come_late_cross_from_host_to_host(hosts: dict[str, str], size: int) -> None:
    a, b = on(hosts["a"]), on(hosts["b"])  # not known yet where they are to be
    assert troupe.get(b.look.remote(a.more.remote(b.make.remote(1, size))), timeout=60) == (
        size,
        2,
        2,
    )
    looks = [b.look.remote(a.more.remote(b.more.remote(a.make.remote(i, size)))) for i in range(5)]
    assert troupe.get(looks, timeout=60) == [(size, i + 2, i + 2) for i in range(5)]
