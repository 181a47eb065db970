"""This rank's number, and the number of ranks.

Outside of a launch: rank 0 of 1.

The variables of the launcher win (RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, NODE_RANK),
whichever launcher has set them, so that the answer is the same before, in and after a process
group, and under torchrun is torchrun's.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def _number(name: str, otherwise: int) -> int:
    """A variable as a number. Raises ValueError, naming it, where it is none."""
    text = os.environ.get(name, "").strip()
    if not text:
        return otherwise
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"{name}={text!r} is no whole number: a launcher sets it; unset it to run as one "
            "process"
        ) from None


def _torch_group() -> Any:
    """torch.distributed where this process is in a process group, else None."""
    module = sys.modules.get("torch.distributed")
    return (
        module if module is not None and module.is_available() and module.is_initialized() else None
    )


def get_global_rank(group: Any = None) -> int:
    """This process's rank among all of the launch; with a process group of torch's, its rank there
    (-1: it is not in it)."""
    if group is not None:
        import torch.distributed

        found: int = torch.distributed.get_rank(group)
        return found
    torch_group = _torch_group()
    return _number("RANK", torch_group.get_rank() if torch_group is not None else 0)


def get_world_size() -> int:
    """How many ranks there are, over all nodes."""
    torch_group = _torch_group()
    return _number("WORLD_SIZE", torch_group.get_world_size() if torch_group is not None else 1)


def get_local_rank() -> int:
    """This process's rank among those of its node; indexes the node's devices."""
    return _number("LOCAL_RANK", 0)


def get_local_world_size() -> int:
    """How many ranks this node has."""
    return _number("LOCAL_WORLD_SIZE", 1)


def get_node_rank() -> int:
    """The number of this rank's node among the launch's, from 0."""
    return _number("NODE_RANK", _number("GROUP_RANK", 0))


def get_replica_rank() -> int:
    """Return the replica of the model that this rank belongs to: as each rank has a whole one (data
    parallel), its global rank.

    A program whose replicas are spread over several ranks says which by the variable REPLICA_RANK.
    """
    return _number("REPLICA_RANK", get_global_rank())


__all__ = [
    "get_global_rank",
    "get_local_rank",
    "get_local_world_size",
    "get_node_rank",
    "get_replica_rank",
    "get_world_size",
]
