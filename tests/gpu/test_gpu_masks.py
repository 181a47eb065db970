"""GPUs that a node offers when it was given their number, or their ids: by --num-gpus, by
CUDA_VISIBLE_DEVICES.

Method: heads and workers started by the command with these; what processes there find, and what
they are told that they have.
"""

from __future__ import annotations

import os
from typing import Any

import card
import pytest
from conftest import Home, eventually

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


def ids() -> tuple[list, dict]:
    """Return Troupe's ids of this process's GPUs."""
    return troupe.get_gpu_ids(), troupe.get_runtime_context().get_accelerator_ids()["GPU"]


class Holder:
    """An actor that looks."""

    def seen(self) -> tuple[str, int, str]:
        return seen()

    def ids(self) -> tuple[list, dict]:
        return ids()


@pytest.fixture
def started(home: Home, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A head with a worker that is started with these options and variables; the worker's node."""
    options, variables = request.param
    values = {
        name: value.format(uuid=card.query("uuid")[0][0]) for name, value in variables.items()
    }
    done = home.run("start", "--head", "--port", "0", "--num-cpus", "4", *options, env=values)
    assert done.returncode == 0
    troupe.init("auto")
    eventually(
        lambda: all(each["zygote_ready"] for each in troupe.state.list_nodes()), what="the zygote"
    )
    return troupe.state.list_nodes()[0]


@pytest.mark.parametrize(
    "started", [((), {"CUDA_VISIBLE_DEVICES": "{uuid}"})], indirect=True, ids=["by uuid"]
)
def test_a_mask_of_uuids_is_kept(started: dict[str, Any]) -> None:
    """Schedulers name devices so: every process is given that name, and finds that device."""
    uuid = card.query("uuid")[0][0]
    assert started["resources"]["GPU"] == 1 and started["labels"]["gpu_type"]
    actor = troupe.remote(num_gpus=1)(Holder).remote()
    assert troupe.get(actor.seen.remote(), timeout=LIMIT_S) == (uuid, 1, uuid.removeprefix("GPU-"))
    assert troupe.get(actor.ids.remote(), timeout=LIMIT_S) == ([uuid], [uuid])
    troupe.kill(actor)
    assert troupe.get(troupe.remote(num_gpus=1)(ids).remote(), timeout=LIMIT_S) == ([uuid], [uuid])
    assert distributed(gpus=1, remote=True, timeout=LIMIT_S)(ids).distributed() == [
        ([uuid], [uuid])
    ]


@pytest.mark.parametrize(
    "started",
    [((), {"CUDA_VISIBLE_DEVICES": ""}), (("--num-gpus", "0"), {})],
    indirect=True,
    ids=["mask", "told"],
)
def test_a_node_may_have_none(started: dict[str, Any]) -> None:
    assert "GPU" not in started["resources"] and "gpu_type" not in started["labels"]
    assert distributed(processes=1, remote=True, timeout=LIMIT_S)(seen).distributed() == [
        ("", 0, "")
    ]
    with pytest.raises(exceptions.PlacementError, match="no node of the cluster has a GPU"):
        distributed(gpus=1, remote=True)(seen).submit()


@pytest.mark.parametrize(
    "started", [(("--num-gpus", "1"), {"CUDA_VISIBLE_DEVICES": "{uuid}"})], indirect=True, ids=["1"]
)
def test_gpus_that_a_node_is_told_to_offer_are_its_own(started: dict[str, Any]) -> None:
    """The node offers the card that its mask leaves, with its type: not a number that may be
    another's."""
    uuid = card.query("uuid")[0][0]
    assert (
        started["resources"]["GPU"] == 1
        and started["devices"] == [card.query("name")[0][0]]
        and started["labels"]["gpu_type"]
    )
    actor = troupe.remote(num_gpus=1)(Holder).remote()
    assert troupe.get(actor.seen.remote(), timeout=LIMIT_S) == (uuid, 1, uuid.removeprefix("GPU-"))


@pytest.mark.parametrize("started", [(("--num-gpus", "64"), {})], indirect=True, ids=["64"])
def test_gpus_beyond_those_of_the_machine_are_logical(started: dict[str, Any]) -> None:
    """The first ones are the machine's, the others nobody's: a process that is given such a one
    finds none."""
    assert started["resources"]["GPU"] == 64 and started["devices"] == [
        name for [name] in card.query("name")
    ]
    actors = [
        troupe.remote(num_cpus=0, num_gpus=1)(Holder).remote() for _ in range(card.count() + 1)
    ]
    found = troupe.get([each.seen.remote() for each in actors], timeout=LIMIT_S)
    assert sorted(number for _, number, _ in found) == [0] + [1] * card.count()
