"""The GPUs this process may use, by the names that people and frameworks give them."""

from __future__ import annotations

import os

from troupe._base.context import ActorContext
from troupe._cluster import variables


def get_gpu_ids() -> list[int] | list[str]:
    """Ids of the GPUs this process may use, as the node's CUDA_VISIBLE_DEVICES names them: numbers,
    where it has none or has such, else texts (`GPU-d885309d...`, `MIG-...`)."""
    ours = ActorContext.current.gpu_ids if ActorContext.current is not None else None
    began = os.environ if variables.began_with is None else variables.began_with
    named = [
        part.strip() for part in began.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()
    ]
    if ours is not None and len(named) != len(ours):
        return list(
            ours
        )  # the program chooses the device itself (RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES)
    return [int(each) for each in named] if all(each.isdigit() for each in named) else named
