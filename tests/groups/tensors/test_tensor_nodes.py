"""Tensors that stay in an actor whose node is lost.

Method: two workers that are as two hosts; the one that the owner is on is killed.
"""

from __future__ import annotations

import os
import signal
import sys

import cloudpickle
import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

torch = pytest.importorskip("torch")
import makers
from makers import LIMIT_S, Maker

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(makers)


def test_tensors_are_lost_with_their_node(home: Home) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    pids = {
        name: home.json(
            "start",
            "--address",
            head["address"],
            "--token-file",
            home.token(),
            "--node-name",
            name,
            "--num-cpus",
            "2",
            "--force-tcp",
        )["pid"]
        for name in ("a", "b")
    }
    troupe.init(head["address"])
    ids = {node["NodeName"]: node["NodeID"] for node in troupe.nodes()}
    owner, other = (
        troupe.remote(Maker)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(ids[name], soft=False))
        .remote()
        for name in ("a", "b")
    )
    ref, taken = owner.make.remote(5), owner.make.remote(6)
    assert troupe.get(other.total.remote(taken), timeout=LIMIT_S) == 6
    troupe.wait([ref], timeout=LIMIT_S)
    pid = troupe.get(owner.pid.remote(), timeout=LIMIT_S)
    os.kill(pids["a"], signal.SIGKILL)
    eventually(lambda: pid not in home.processes(), what="the end of the node's processes")
    text = rf"make\(\) of actor Maker\(.*\) on a, pid {pid} returned \(float32 of shape .*\) are lost: "
    for lost in (ref, taken):
        with pytest.raises(exceptions.OwnerDiedError, match=text):
            troupe.get(other.total.remote(lost), timeout=LIMIT_S)
        with pytest.raises(exceptions.OwnerDiedError, match=text):
            troupe.get(lost, timeout=LIMIT_S)
    assert troupe.get(other.total.remote(other.make.remote(7)), timeout=LIMIT_S) == 7
