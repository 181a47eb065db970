"""Tensors that stay in an actor of one host and are taken on another.

Method: two workers of this machine that are as two hosts (--force-tcp), actors pinned to them, this
process as the driver, which is on none of them.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from conftest import eventually

import troupe
from troupe import exceptions
from troupe._actors.tensors.fetch import CHANNELS
from troupe._cluster import session
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

torch = pytest.importorskip("torch")
import makers
from makers import LIMIT_S, Maker, let_go

cloudpickle.register_pickle_by_value(
    sys.modules[__name__]
)  # another host would not have these files
cloudpickle.register_pickle_by_value(makers)

LARGE = 4_000_000


def on(node: str, **options: Any) -> Any:
    made = (
        troupe.remote(Maker)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False), **options)
        .remote()
    )
    troupe.get(made.pid.remote(), timeout=LIMIT_S)
    return made


@pytest.mark.parametrize("size", [10, LARGE], ids=["small", "large"])
def test_who_takes_a_tensor_on_another_host_has_a_copy(hosts: dict[str, str], size: int) -> None:
    one, other = on(hosts["a"]), on(hosts["b"])
    ref = one.make.remote(size)
    assert troupe.get(other.total.remote(ref), timeout=LIMIT_S) == size
    assert float(troupe.get(ref, timeout=LIMIT_S).sum()) == size
    assert troupe.get(one.is_own.remote(ref), timeout=LIMIT_S)
    tree = troupe.get(other.give.remote(one.tree.remote(size)), timeout=LIMIT_S)
    assert tree.data is tree.more["same"] and float(tree.data[-1]) == size - 1
    troupe.get(one.change.remote(-1), timeout=LIMIT_S)
    with pytest.raises(exceptions.TensorChangedError, match="its version was 0 then and is 1 now"):
        troupe.get(other.total.remote(ref), timeout=LIMIT_S)
    del ref, tree
    let_go(one)


def test_a_busy_actor_gives_them_all_the_same(hosts: dict[str, str], tmp_path: Path) -> None:
    one, other = on(hosts["a"]), on(hosts["b"])
    ref = one.make.remote(LARGE)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    busy = one.wait_for.remote(str(pipe))
    with open(pipe, "w") as end:
        assert troupe.get(other.total.remote(ref), timeout=LIMIT_S) == LARGE
        end.write("go")
    assert troupe.get(busy, timeout=LIMIT_S)


def test_a_connection_that_was_lost_is_made_anew(hosts: dict[str, str]) -> None:
    one = on(hosts["a"])
    ref = one.make.remote(LARGE)
    assert float(troupe.get(ref, timeout=LIMIT_S).sum()) == LARGE
    for channel in CHANNELS.known(session.current()).values():
        channel.close()
    assert float(troupe.get(ref, timeout=LIMIT_S).sum()) == LARGE


def test_they_are_lost_with_their_owner(hosts: dict[str, str]) -> None:
    one, other = on(hosts["a"]), on(hosts["b"])
    ref = one.make.remote(LARGE)
    troupe.wait([ref], timeout=LIMIT_S)
    pid = troupe.get(one.pid.remote(), timeout=LIMIT_S)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(
        exceptions.OwnerDiedError,
        match=rf"on a, pid {pid} returned \(float32 .*\) are lost: .*SIGKILL",
    ):
        troupe.get(other.total.remote(ref), timeout=LIMIT_S)
    with pytest.raises(exceptions.OwnerDiedError, match="SIGKILL"):
        troupe.get(ref, timeout=LIMIT_S)


def test_a_taker_that_is_killed_holds_nothing(hosts: dict[str, str]) -> None:
    one, other = on(hosts["a"]), on(hosts["b"])
    ref = one.make_and_forget.remote(LARGE)
    assert troupe.get(other.total.remote(ref), timeout=LIMIT_S) == LARGE
    troupe.get(other.keep.remote([ref]), timeout=LIMIT_S)
    troupe.kill(other)
    del ref
    eventually(
        lambda: troupe.get(one.alive.remote(), timeout=LIMIT_S) == 0, what="the end of the tensor"
    )
