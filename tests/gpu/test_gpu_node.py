"""A node's facts about its GPUs, and refused requests where there are none such.

Method: a head and a worker started by the command; what they say against what NVIDIA's own command
says.
"""

from __future__ import annotations

import os

import card
import pytest
from conftest import Home

import troupe
from troupe import exceptions
from troupe.launch import distributed

pytestmark = pytest.mark.gpu
LIMIT_S = 60.0


def seen() -> tuple[str, int, str]:
    """The mask, how many devices CUDA finds, and the first one's uuid."""
    import torch

    uuid = str(torch.cuda.get_device_properties(0).uuid) if torch.cuda.is_available() else ""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "unset"), torch.cuda.device_count(), uuid


class Holder:
    """An actor that looks."""

    def seen(self) -> tuple[str, int, str]:
        return seen()


def a_type() -> str:
    """The label that a node of this machine has."""
    return troupe.state.list_nodes()[0]["labels"].get("gpu_type", "")


def test_a_node_finds_its_gpus(node: Home) -> None:
    [there] = troupe.state.list_nodes()
    assert there["resources"]["GPU"] == card.count() == there["free"]["GPU"]
    assert there["devices"] == [name for [name] in card.query("name")]
    kind = there["labels"]["gpu_type"]
    assert kind and kind in there["devices"][0]
    assert troupe.cluster_resources()["GPU"] == card.count()
    assert troupe.cluster_resources()[f"accelerator_type:{kind}"] == 1
    status = node.run("status").stdout
    assert f"{card.count()} GPU" in status
    assert f"0/{card.count()}" in node.run("list", "nodes").stdout
    assert node.json("status")["nodes"][0]["devices"] == there["devices"]


def test_its_type_chooses_it_and_another_is_refused_with_what_there_is(idle: Home) -> None:
    kind = a_type()
    launch = distributed(gpus=1, gpu_type=kind.lower(), remote=True, timeout=LIMIT_S)(seen)
    assert launch.distributed()[0][1] == 1
    actor = troupe.remote(num_gpus=1, accelerator_type=kind)(Holder).remote()
    assert troupe.get(actor.seen.remote(), timeout=LIMIT_S)[1] == 1
    troupe.kill(actor)
    with pytest.raises(exceptions.PlacementError, match="K80") as caught:
        distributed(gpus=1, gpu_type="K80", remote=True)(seen).submit()
    assert f"{card.count()} x {kind}" in str(caught.value)


def test_more_gpus_than_there_are_are_refused_with_what_there_is(idle: Home) -> None:
    more = card.count() + 1
    with pytest.raises(exceptions.PlacementError) as caught:
        distributed(gpus=more, remote=True)(seen).submit()
    assert "can never be placed" in str(
        caught.value
    ) and f"GPUs of the cluster: {card.count()} x {a_type()}" in str(caught.value)
    with pytest.raises(exceptions.PlacementError, match=f"{{GPU: {more}}} can never be placed"):
        troupe.get(troupe.remote(num_gpus=more)(Holder).remote().seen.remote(), timeout=LIMIT_S)
    with pytest.raises(exceptions.PlacementError):
        troupe.get(troupe.remote(num_gpus=more)(seen).remote(), timeout=LIMIT_S)
