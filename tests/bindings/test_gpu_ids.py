"""get_gpu_ids(): the names that the node's devices have, in every kind of process.

Method: the process's beginning and its actor are data.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import troupe
from troupe._base.context import ActorContext
from troupe._cluster import variables

# (environment at the start, GPUs that the node gave the actor (None: a rank or a driver), ids)
CASES = [
    ({"CUDA_VISIBLE_DEVICES": "0,1"}, None, [0, 1]),
    ({"CUDA_VISIBLE_DEVICES": "3"}, [0], [3]),
    ({"CUDA_VISIBLE_DEVICES": "GPU-d885309d,MIG-1"}, None, ["GPU-d885309d", "MIG-1"]),
    ({"CUDA_VISIBLE_DEVICES": "GPU-d885309d"}, [0], ["GPU-d885309d"]),
    ({"CUDA_VISIBLE_DEVICES": ""}, [], []),
    ({}, None, []),
    ({}, [2], [2]),  # the program chooses the device itself
    ({"CUDA_VISIBLE_DEVICES": "4,5,6"}, [2], [2]),
]


@pytest.mark.parametrize(("began", "given", "ids"), CASES)
def test_ids_are_as_the_nodes_mask_names_them(
    monkeypatch: pytest.MonkeyPatch, began: dict, given: list | None, ids: list
) -> None:
    monkeypatch.setattr(variables, "began_with", began)
    monkeypatch.setattr(
        ActorContext, "current", None if given is None else SimpleNamespace(gpu_ids=given)
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")  # set by the program since
    assert troupe.get_gpu_ids() == ids
