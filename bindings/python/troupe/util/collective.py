"""Ray's `ray.util.collective`: collective communication between actors (or tasks) by torch's Gloo and NCCL.

    @troupe.remote
    class Worker:
        def setup(self, world_size, rank):
            collective.init_collective_group(world_size, rank, backend="gloo", group_name="all")
        def step(self):
            gradient = np.ones(4)
            collective.allreduce(gradient, "all")     # in place
            return gradient

Each process is one rank of a group; a process may be in several groups. Tensors are numpy arrays and torch tensors on the CPU for
"gloo", torch tensors on this process's GPU for "nccl"; they are changed in place. Every call blocks until this process's part is
done; all members make the same calls in the same order. A member that is gone ends the others' calls with RuntimeError, which
names the group, the rank and the operation, at the latest after `gloo_timeout` milliseconds. Needs torch.
"""
from __future__ import annotations

import datetime
import enum
import os
from collections.abc import Callable, Sequence
from typing import Any

import troupe
from troupe._identity import boot_id
from troupe.util import get_node_ip_address

_TIMEOUT_MS = 30000


class Backend:
    """Names of the libraries that move the tensors."""

    NCCL = "nccl"
    GLOO = "gloo"


class ReduceOp(enum.Enum):
    """How values of several ranks become one."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3


class _Group:
    """This process's part of a group."""

    def __init__(self, name: str, rank: int, world_size: int, backend: str, timeout_ms: int) -> None:
        from troupe import _collective

        self.name, self.rank, self.world_size, self.backend = name, rank, world_size, backend
        self.timeout = datetime.timedelta(milliseconds=timeout_ms)
        me = _collective.Member(rank, world_size, backend, boot_id())
        self.meeting, number, hosts = _collective.join(name, me, timeout_ms / 1000)
        store = _collective.MeetingStore(self.meeting, number, self.timeout)
        self.torch_group = (self._nccl if backend == Backend.NCCL else self._gloo)(store, len(set(hosts)) == 1)

    def _gloo(self, store: Any, one_host: bool) -> Any:
        import torch.distributed as dist

        from troupe import _collective

        gloo = dist.ProcessGroupGloo
        options = gloo._Options()
        options._timeout = self.timeout
        if one_host:
            options._devices = [gloo.create_device(hostname="127.0.0.1")]
        elif os.environ.get("GLOO_SOCKET_IFNAME"):
            options._devices = [gloo.create_device(interface=os.environ["GLOO_SOCKET_IFNAME"].split(",")[0])]
        else:
            options._devices = [gloo.create_device(hostname=get_node_ip_address())]
        return gloo(store, self.rank, self.world_size, options)

    def _nccl(self, store: Any, one_host: bool) -> Any:
        import torch
        import torch.distributed as dist

        if one_host:
            os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = self.timeout
        made = dist.ProcessGroupNCCL(store, self.rank, self.world_size, options)
        made.eager_connect_single_device(torch.device("cuda", torch.cuda.current_device()))
        return made

    def run(self, what: str, begin: Callable[[Any], Any]) -> None:
        """One operation, to its end. RuntimeError: what became of it, and where."""
        try:
            begin(self.torch_group).wait()
            if self.backend == Backend.NCCL:
                import torch

                torch.cuda.current_stream().synchronize()
        except RuntimeError as error:
            raise RuntimeError(f"{what} of the collective group {self.name!r} failed at rank {self.rank} of {self.world_size} "
                               f"({self.backend}): {error}\n  a member ended or came late; destroy the group and make it "
                               "anew") from error


_groups: dict[str, _Group] = {}


def gloo_available() -> bool:
    """Whether backend="gloo" works here."""
    return _has("is_gloo_available")


def nccl_available() -> bool:
    """Whether backend="nccl" works here: torch with NCCL, and a GPU."""
    if not _has("is_nccl_available"):
        return False
    import torch

    return torch.cuda.is_available()


def _has(which: str) -> bool:
    try:
        import torch.distributed as dist
    except ImportError:
        return False
    return dist.is_available() and getattr(dist, which)()


def init_collective_group(world_size: int, rank: int, backend: str = Backend.NCCL, group_name: str = "default",
                          gloo_timeout: int = _TIMEOUT_MS) -> None:
    """Makes this process rank `rank` of a group of `world_size`; returns when all are there.

    Raises ValueError for a rank that cannot be, or that does not go with what the others said, RuntimeError where the
    process is in that group already or the backend cannot be used here, TimeoutError with the ranks that did not come within
    `gloo_timeout` milliseconds.
    """
    backend = _checked(world_size, [rank], backend, group_name, gloo_timeout)
    if group_name in _groups:
        raise RuntimeError(f"this process is in the collective group {group_name!r} already\n  destroy_collective_group() first")
    if not (nccl_available() if backend == Backend.NCCL else gloo_available()):
        raise RuntimeError(f"backend {backend!r} cannot be used here: it needs torch"
                           f"{' with CUDA and a GPU (backend=gloo works without)' if backend == Backend.NCCL else ''}")
    try:
        _groups[group_name] = _Group(group_name, rank, world_size, backend, gloo_timeout)
    except (TimeoutError, ValueError) as error:
        what = getattr(error, "cause", None) or error  # as the meeting raised it
        kind = TimeoutError if isinstance(error, TimeoutError) else ValueError
        raise kind(f"the collective group {group_name!r}: {what}") from None


def create_collective_group(actors: Sequence[Any], world_size: int, ranks: Sequence[int], backend: str = Backend.NCCL,
                            group_name: str = "default", gloo_timeout: int = _TIMEOUT_MS) -> None:
    """The same for these actors, from outside: `actors[i]` becomes rank `ranks[i]`. Returns when they are a group; raises what
    init_collective_group raised in one of them."""
    _checked(world_size, ranks, backend, group_name, gloo_timeout)
    if len(actors) != len(ranks) or sorted(ranks) != list(range(world_size)):
        raise ValueError(f"each of {world_size} ranks needs one actor: there are {len(actors)} actors, and ranks are {list(ranks)}")
    troupe.get([actor.__ray_call__.remote(_join, world_size, rank, backend, group_name, gloo_timeout)
                for actor, rank in zip(actors, ranks)], timeout=gloo_timeout / 1000 + 60)


def _join(_instance: Any, *args: Any) -> None:
    init_collective_group(*args)


def _checked(world_size: int, ranks: Sequence[int], backend: Any, group_name: Any, timeout_ms: Any) -> str:
    if isinstance(world_size, bool) or not isinstance(world_size, int) or world_size < 1:
        raise ValueError(f"world_size must be a whole number of at least 1, not {world_size!r}")
    for rank in ranks:
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < world_size:
            raise ValueError(f"a rank of {world_size} is a whole number from 0 to {world_size - 1}, not {rank!r}")
    if not isinstance(group_name, str) or not group_name:
        raise ValueError(f"group_name must be a text, not {group_name!r}")
    if not isinstance(timeout_ms, int) or timeout_ms < 1:
        raise ValueError(f"gloo_timeout must be a number of milliseconds, not {timeout_ms!r}")
    name = str(backend).lower()
    if name not in (Backend.NCCL, Backend.GLOO, "torch_gloo"):
        raise ValueError(f"backend must be 'nccl' or 'gloo', not {backend!r}")
    return Backend.NCCL if name == Backend.NCCL else Backend.GLOO


def destroy_collective_group(group_name: str = "default") -> None:
    """This process leaves the group. Afterwards it, or one that replaces it, can make a group of that name anew."""
    group = _groups.pop(group_name, None)
    if group is not None:
        group.torch_group.shutdown()


def is_group_initialized(group_name: str = "default") -> bool:
    """Whether this process is in that group."""
    return group_name in _groups


def get_rank(group_name: str = "default") -> int:
    """This process's rank in a group; -1: it is not in it."""
    return _groups[group_name].rank if group_name in _groups else -1


def get_collective_group_size(group_name: str = "default") -> int:
    """How many ranks it has; -1: this process is not in it."""
    return _groups[group_name].world_size if group_name in _groups else -1


def _group(name: str, other: int = 0) -> _Group:
    if name not in _groups:
        raise RuntimeError(f"this process is not in the collective group {name!r}\n"
                           "  init_collective_group() here, or create_collective_group() for its actor, comes first")
    if not 0 <= other < _groups[name].world_size:
        raise ValueError(f"a rank of the group {name!r} is from 0 to {_groups[name].world_size - 1}, not {other!r}")
    return _groups[name]


def _tensor(group: _Group, value: Any) -> Any:
    """torch's tensor over the same memory."""
    import numpy as np
    import torch

    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            raise ValueError("the array is read-only (a value that was got is): pass a copy")
        value = torch.from_numpy(value)
    elif not isinstance(value, torch.Tensor):
        if not hasattr(value, "__dlpack__"):
            raise ValueError(f"a tensor is a numpy array or a torch tensor, not {type(value).__name__}")
        value = torch.from_dlpack(value)
    device = "cuda" if group.backend == Backend.NCCL else "cpu"
    if value.device.type != device:
        raise ValueError(f"backend {group.backend!r} takes tensors on {device}, this one is on {value.device}")
    return value


def _dense(group: _Group, value: Any) -> tuple[Any, Callable[[], None]]:
    """The tensor as torch's backends take it, and what brings a result back where that is a copy."""
    tensor = _tensor(group, value)
    if tensor.is_contiguous():
        return tensor, lambda: None
    copy = tensor.contiguous()
    return copy, lambda: tensor.copy_(copy)


def _op(op: ReduceOp) -> Any:
    import torch.distributed as dist

    if not isinstance(op, ReduceOp):
        raise ValueError(f"op must be a ReduceOp, not {op!r}")
    return getattr(dist.ReduceOp, op.name)


def allreduce(tensor: Any, group_name: str = "default", op: ReduceOp = ReduceOp.SUM) -> None:
    """Every rank's tensor becomes what all of them make together."""
    import torch.distributed as dist

    group, options = _group(group_name), dist.AllreduceOptions()
    options.reduceOp = _op(op)
    dense, back = _dense(group, tensor)
    group.run("allreduce", lambda pg: pg.allreduce([dense], options))
    back()


def reduce(tensor: Any, dst_rank: int = 0, group_name: str = "default", op: ReduceOp = ReduceOp.SUM) -> None:
    """The same for the tensor of rank `dst_rank` alone; those of others mean nothing afterwards."""
    import torch.distributed as dist

    group, options = _group(group_name, dst_rank), dist.ReduceOptions()
    options.reduceOp, options.rootRank = _op(op), dst_rank
    dense, back = _dense(group, tensor)
    group.run("reduce", lambda pg: pg.reduce([dense], options))
    back()


def broadcast(tensor: Any, src_rank: int = 0, group_name: str = "default") -> None:
    """Every rank's tensor becomes that of rank `src_rank`."""
    import torch.distributed as dist

    group, options = _group(group_name, src_rank), dist.BroadcastOptions()
    options.rootRank = src_rank
    dense, back = _dense(group, tensor)
    group.run("broadcast", lambda pg: pg.broadcast([dense], options))
    back()


def allgather(tensor_list: Sequence[Any], tensor: Any, group_name: str = "default") -> None:
    """`tensor_list[i]` becomes the tensor of rank i."""
    group = _group(group_name)
    into = _all_of(group, tensor_list)
    dense, _ = _dense(group, tensor)
    group.run("allgather", lambda pg: pg.allgather([[each for each, _ in into]], [dense]))
    for _, back in into:
        back()


def reducescatter(tensor: Any, tensor_list: Sequence[Any], group_name: str = "default", op: ReduceOp = ReduceOp.SUM) -> None:
    """`tensor` of rank i becomes what all ranks' `tensor_list[i]` make together."""
    import torch.distributed as dist

    group, options = _group(group_name), dist.ReduceScatterOptions()
    options.reduceOp = _op(op)
    parts = [each for each, _ in _all_of(group, tensor_list)]
    dense, back = _dense(group, tensor)
    group.run("reducescatter", lambda pg: pg.reduce_scatter([dense], [parts], options))
    back()


def _all_of(group: _Group, tensors: Sequence[Any]) -> list[tuple[Any, Callable[[], None]]]:
    if len(tensors) != group.world_size:
        raise ValueError(f"tensor_list needs one tensor for each of {group.world_size} ranks, it has {len(tensors)}")
    return [_dense(group, each) for each in tensors]


def send(tensor: Any, dst_rank: int, group_name: str = "default") -> None:
    """To another rank, which receives it by recv()."""
    group = _group(group_name, dst_rank)
    _other(group, dst_rank)
    dense, _ = _dense(group, tensor)
    group.run(f"send to rank {dst_rank}", lambda pg: pg.send([dense], dst_rank, 0))


def recv(tensor: Any, src_rank: int, group_name: str = "default") -> None:
    """From another rank, into `tensor`."""
    group = _group(group_name, src_rank)
    _other(group, src_rank)
    dense, back = _dense(group, tensor)
    group.run(f"recv from rank {src_rank}", lambda pg: pg.recv([dense], src_rank, 0))
    back()


def _other(group: _Group, rank: int) -> None:
    if rank == group.rank:
        raise ValueError(f"rank {rank} cannot send to itself")


def barrier(group_name: str = "default") -> None:
    """Until all ranks are here."""
    _group(group_name).run("barrier", lambda pg: pg.barrier())


def synchronize(gpu_id: int) -> None:
    """Until what was begun on this GPU is done."""
    import torch

    torch.cuda.synchronize(gpu_id)

