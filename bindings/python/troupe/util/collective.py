"""Ray's `ray.util.collective`: collective communication between actors (or tasks) by torch's Gloo
and NCCL, and by Troupe's own backend.

    @troupe.remote
    class Worker:
        def setup(self, world_size, rank):
            collective.init_collective_group(world_size, rank, backend="gloo", group_name="all")
        def step(self):
            gradient = np.ones(4)
            collective.allreduce(gradient, "all")     # in place
            return gradient

Each process is one rank of a group; a process may be in several groups. Tensors are numpy arrays
and torch tensors on the CPU for "gloo" and "troupe" (docs/guides/collectives.md), torch tensors on
this process's GPU for "nccl"; they are changed in place. Every call blocks until this process's
part is done; all members make the same calls in the same order. A member that is gone ends the
others' calls with RuntimeError, which names the group, the rank and the operation, at the latest
after `gloo_timeout` milliseconds. Needs torch; a backend of one's own
(`register_collective_backend`) needs what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import troupe
from troupe import _pickled
from troupe.util import _collective_torch, _collective_types as types
from troupe.util._collective_torch import gloo_available, nccl_available
from troupe.util._collective_types import Backend, BaseGroup, ReduceOp, register_collective_backend

_pickled.named_in(
    __name__,
    Backend,
    BaseGroup,
    ReduceOp,
    register_collective_backend,
    gloo_available,
    nccl_available,
)
_TIMEOUT_MS = 30000

_groups: dict[str, BaseGroup] = {}

_WITHOUT_A_GPU = " with CUDA and a GPU (backend=gloo and backend=troupe work without)"


def init_collective_group(
    world_size: int,
    rank: int,
    backend: str = Backend.NCCL,
    group_name: str = "default",
    gloo_timeout: int = _TIMEOUT_MS,
) -> None:
    """Makes this process rank `rank` of a group of `world_size`; returns when all are there.

    Raises ValueError for a rank that cannot be, or that does not go with what the others said,
    RuntimeError where the process is in that group already or the backend cannot be used here,
    TimeoutError with the ranks that did not come within `gloo_timeout` milliseconds.
    """
    backend = _checked(world_size, [rank], backend, group_name, gloo_timeout)
    if group_name in _groups:
        raise RuntimeError(
            f"this process is in the collective group {group_name!r} already\n  "
            "destroy_collective_group() first"
        )
    own = types.registered(backend)
    _check_available(backend, own)
    if own is not None:
        _groups[group_name] = own(world_size, rank, group_name)
        return
    try:
        _groups[group_name] = _collective_torch.TorchGroup(
            world_size, rank, group_name, backend, gloo_timeout
        )
    except (TimeoutError, ValueError) as error:
        what = getattr(error, "cause", None) or error  # as the meeting raised it
        kind = TimeoutError if isinstance(error, TimeoutError) else ValueError
        raise kind(f"the collective group {group_name!r}: {what}") from None


def _check_available(backend: str, own: type[BaseGroup] | None) -> None:
    if own is not None:
        if not own.check_backend_availability():
            raise RuntimeError(
                f"backend {backend!r} cannot be used here: "
                f"{own.__name__}.check_backend_availability() says no"
            )
    elif not (nccl_available() if backend == Backend.NCCL else gloo_available()):
        raise RuntimeError(
            f"backend {backend!r} cannot be used here: it needs torch"
            f"{_WITHOUT_A_GPU if backend == Backend.NCCL else ''}"
        )


def create_collective_group(
    actors: Sequence[Any],
    world_size: int,
    ranks: Sequence[int],
    backend: str = Backend.NCCL,
    group_name: str = "default",
    gloo_timeout: int = _TIMEOUT_MS,
) -> None:
    """Create a collective group of these actors, from outside: `actors[i]` becomes rank `ranks[i]`.

    Returns when they are a group; raises what init_collective_group raised in one of them.
    """
    _checked(world_size, ranks, backend, group_name, gloo_timeout)
    if len(actors) != len(ranks) or sorted(ranks) != list(range(world_size)):
        raise ValueError(
            f"each of {world_size} ranks needs one actor: there are {len(actors)} actors, and "
            f"ranks are {list(ranks)}"
        )
    troupe.get(
        [
            actor.__ray_call__.remote(_join, world_size, rank, backend, group_name, gloo_timeout)
            for actor, rank in zip(actors, ranks, strict=True)
        ],
        timeout=gloo_timeout / 1000 + 60,
    )


def _join(_instance: Any, *args: Any) -> None:
    init_collective_group(*args)


def _checked(
    world_size: int, ranks: Sequence[int], backend: Any, group_name: Any, timeout_ms: Any
) -> str:
    if isinstance(world_size, bool) or not isinstance(world_size, int) or world_size < 1:
        raise ValueError(f"world_size must be a whole number of at least 1, not {world_size!r}")
    for rank in ranks:
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < world_size:
            raise ValueError(
                f"a rank of {world_size} is a whole number from 0 to {world_size - 1}, not {rank!r}"
            )
    if not isinstance(group_name, str) or not group_name:
        raise ValueError(f"group_name must be a text, not {group_name!r}")
    if not isinstance(timeout_ms, int) or timeout_ms < 1:
        raise ValueError(f"gloo_timeout must be a number of milliseconds, not {timeout_ms!r}")
    name = str(backend).lower()
    if types.registered(name) is not None:
        return name
    if name not in (Backend.NCCL, Backend.GLOO, Backend.TROUPE, "torch_gloo"):
        raise ValueError(
            "backend must be 'nccl', 'gloo' or 'troupe', or one that "
            "register_collective_backend() was given in this process, "
            f"not {backend!r}"
        )
    return Backend.GLOO if name == "torch_gloo" else name


def destroy_collective_group(group_name: str = "default") -> None:
    """This process leaves the group.

    Afterwards it, or one that replaces it, can make a group of that name anew.
    """
    group = _groups.pop(group_name, None)
    if group is not None:
        group.destroy_group()


def is_group_initialized(group_name: str = "default") -> bool:
    """Return True if this process is in that group."""
    return group_name in _groups


def get_rank(group_name: str = "default") -> int:
    """This process's rank in a group; -1: it is not in it."""
    return _groups[group_name].rank if group_name in _groups else -1


def get_collective_group_size(group_name: str = "default") -> int:
    """How many ranks it has; -1: this process is not in it."""
    return _groups[group_name].world_size if group_name in _groups else -1


def _group(name: str, other: int = 0) -> BaseGroup:
    if name not in _groups:
        raise RuntimeError(
            f"this process is not in the collective group {name!r}\n"
            "  init_collective_group() here, or create_collective_group() for its actor, comes "
            "first"
        )
    if not 0 <= other < _groups[name].world_size:
        raise ValueError(
            f"a rank of the group {name!r} is from 0 to {_groups[name].world_size - 1}, not "
            f"{other!r}"
        )
    return _groups[name]


def _op(op: ReduceOp) -> ReduceOp:
    if not isinstance(op, ReduceOp):
        raise ValueError(f"op must be a ReduceOp, not {op!r}")
    return op


def allreduce(tensor: Any, group_name: str = "default", op: ReduceOp = ReduceOp.SUM) -> None:
    """Every rank's tensor becomes what all of them make together."""
    _group(group_name).allreduce(tensor, types.AllReduceOptions(_op(op)))


def reduce(
    tensor: Any, dst_rank: int = 0, group_name: str = "default", op: ReduceOp = ReduceOp.SUM
) -> None:
    """Reduce the tensors of all ranks into the tensor of rank `dst_rank`; the other ranks' tensors
    are undefined afterwards."""
    _group(group_name, dst_rank).reduce(tensor, types.ReduceOptions(_op(op), dst_rank))


def broadcast(tensor: Any, src_rank: int = 0, group_name: str = "default") -> None:
    """Every rank's tensor becomes that of rank `src_rank`."""
    _group(group_name, src_rank).broadcast(tensor, types.BroadcastOptions(src_rank))


def allgather(tensor_list: Sequence[Any], tensor: Any, group_name: str = "default") -> None:
    """`tensor_list[i]` becomes the tensor of rank i."""
    group = _group(group_name)
    group.allgather(_one_each(group, tensor_list), tensor, types.AllGatherOptions())


def reducescatter(
    tensor: Any,
    tensor_list: Sequence[Any],
    group_name: str = "default",
    op: ReduceOp = ReduceOp.SUM,
) -> None:
    """`tensor` of rank i becomes what all ranks' `tensor_list[i]` make together."""
    group = _group(group_name)
    group.reducescatter(tensor, _one_each(group, tensor_list), types.ReduceScatterOptions(_op(op)))


def _one_each(group: BaseGroup, tensors: Sequence[Any]) -> Sequence[Any]:
    if len(tensors) != group.world_size:
        raise ValueError(
            f"tensor_list needs one tensor for each of {group.world_size} ranks, it has "
            f"{len(tensors)}"
        )
    return tensors


def send(tensor: Any, dst_rank: int, group_name: str = "default") -> None:
    """To another rank, which receives it by recv()."""
    group = _group(group_name, dst_rank)
    _other(group, dst_rank)
    group.send(tensor, types.SendOptions(dst_rank))


def recv(tensor: Any, src_rank: int, group_name: str = "default") -> None:
    """From another rank, into `tensor`."""
    group = _group(group_name, src_rank)
    _other(group, src_rank)
    group.recv(tensor, types.RecvOptions(src_rank))


def _other(group: BaseGroup, rank: int) -> None:
    if rank == group.rank:
        raise ValueError(f"rank {rank} cannot send to itself")


def barrier(group_name: str = "default") -> None:
    """Until all ranks are here."""
    _group(group_name).barrier(types.BarrierOptions())


def synchronize(gpu_id: int) -> None:
    """Until what was begun on this GPU is done."""
    import torch

    torch.cuda.synchronize(gpu_id)
