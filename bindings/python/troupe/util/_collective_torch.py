"""Groups whose tensors torch's backends move: Gloo, NCCL and Troupe's own."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Sequence
from typing import Any

from troupe._base.bridge import native
from troupe._base.identity import boot_id
from troupe._code import arrays
from troupe.util import (
    _collective_meeting as meeting,
    _collective_types as types,
    get_node_ip_address,
)
from troupe.util._collective_types import Backend


class TorchGroup(types.BaseGroup):
    """This process's part of a group of one of those backends."""

    def __init__(
        self, world_size: int, rank: int, group_name: str, backend: str, timeout_ms: int
    ) -> None:
        super().__init__(world_size, rank, group_name)
        self._library = backend
        native._map_privately()  # arrays that come from now on can be changed in place
        self._timeout = datetime.timedelta(milliseconds=timeout_ms)
        me = meeting.Member(rank, world_size, backend, boot_id())
        self._meeting, number, hosts = meeting.join(group_name, me, timeout_ms / 1000)
        store = meeting.MeetingStore(self._meeting, number, self._timeout)
        make = {Backend.NCCL: self._nccl, Backend.GLOO: self._gloo, Backend.TROUPE: self._troupe}[
            backend
        ]
        self._torch_group = make(store, len(set(hosts)) == 1)

    @classmethod
    def check_backend_availability(cls) -> bool:
        """Return True if torch has any backend that works here."""
        return gloo_available() or nccl_available()

    def destroy_group(self) -> None:
        """Leaves."""
        self._torch_group.shutdown()

    def _gloo(self, store: Any, one_host: bool) -> Any:
        import torch.distributed as dist

        gloo = dist.ProcessGroupGloo
        options = gloo._Options()
        options._timeout = self._timeout
        if one_host:
            options._devices = [gloo.create_device(hostname="127.0.0.1")]
        elif os.environ.get("GLOO_SOCKET_IFNAME"):
            options._devices = [
                gloo.create_device(interface=os.environ["GLOO_SOCKET_IFNAME"].split(",")[0])
            ]
        else:
            options._devices = [gloo.create_device(hostname=get_node_ip_address())]
        return gloo(store, self.rank, self.world_size, options)

    def _nccl(self, store: Any, one_host: bool) -> Any:
        import torch
        import torch.distributed as dist

        if one_host:
            os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = self._timeout
        made = dist.ProcessGroupNCCL(store, self.rank, self.world_size, options)
        made.eager_connect_single_device(torch.device("cuda", torch.cuda.current_device()))
        return made

    def _troupe(self, store: Any, one_host: bool) -> Any:
        from troupe._process import torch_backend

        return torch_backend.make(store, self.rank, self.world_size, self.group_name, self._timeout)

    def _run(self, what: str, begin: Callable[[Any], Any]) -> None:
        """Run one operation and wait for it. Raises RuntimeError that names the operation and the
        group."""
        try:
            begin(self._torch_group).wait()
            if self._library == Backend.NCCL:
                import torch

                torch.cuda.current_stream().synchronize()
        except RuntimeError as error:
            raise RuntimeError(
                f"{what} of the collective group {self.group_name!r} failed at rank {self.rank} of "
                f"{self.world_size} ({self._library}): {error}\n  a member ended or came late; "
                "destroy the "
                "group and make it anew"
            ) from error

    def allreduce(
        self, tensor: Any, allreduce_options: types.AllReduceOptions = types.AllReduceOptions()
    ) -> None:
        import torch.distributed as dist

        options = dist.AllreduceOptions()
        options.reduceOp = _op(allreduce_options.reduceOp)
        dense, back = self._dense(tensor)
        self._run("allreduce", lambda pg: pg.allreduce([dense], options))
        back()

    def reduce(
        self, tensor: Any, reduce_options: types.ReduceOptions = types.ReduceOptions()
    ) -> None:
        import torch.distributed as dist

        options = dist.ReduceOptions()
        options.reduceOp, options.rootRank = _op(reduce_options.reduceOp), reduce_options.root_rank
        dense, back = self._dense(tensor)
        self._run("reduce", lambda pg: pg.reduce([dense], options))
        back()

    def broadcast(
        self, tensor: Any, broadcast_options: types.BroadcastOptions = types.BroadcastOptions()
    ) -> None:
        import torch.distributed as dist

        options = dist.BroadcastOptions()
        options.rootRank = broadcast_options.root_rank
        dense, back = self._dense(tensor)
        self._run("broadcast", lambda pg: pg.broadcast([dense], options))
        back()

    def allgather(
        self,
        tensor_list: Sequence[Any],
        tensor: Any,
        allgather_options: types.AllGatherOptions = types.AllGatherOptions(),
    ) -> None:
        into = [self._dense(each) for each in tensor_list]
        dense = self._dense_input(tensor)
        self._run("allgather", lambda pg: pg.allgather([[each for each, _ in into]], [dense]))
        for _, back in into:
            back()

    def reducescatter(
        self,
        tensor: Any,
        tensor_list: Sequence[Any],
        reducescatter_options: types.ReduceScatterOptions = types.ReduceScatterOptions(),
    ) -> None:
        import torch.distributed as dist

        options = dist.ReduceScatterOptions()
        options.reduceOp = _op(reducescatter_options.reduceOp)
        parts = [self._dense_input(each) for each in tensor_list]
        dense, back = self._dense(tensor)
        self._run("reducescatter", lambda pg: pg.reduce_scatter([dense], [parts], options))
        back()

    def send(self, tensor: Any, send_options: types.SendOptions) -> None:
        dense = self._dense_input(tensor)
        to = send_options.dst_rank
        self._run(f"send to rank {to}", lambda pg: pg.send([dense], to, 0))

    def recv(self, tensor: Any, recv_options: types.RecvOptions) -> None:
        dense, back = self._dense(tensor)
        source = recv_options.src_rank
        self._run(f"recv from rank {source}", lambda pg: pg.recv([dense], source, 0))
        back()

    def barrier(self, barrier_options: types.BarrierOptions = types.BarrierOptions()) -> None:
        self._run("barrier", lambda pg: pg.barrier())

    def _tensor(self, value: Any) -> Any:
        """Return torch's tensor over the same memory.

        A read-only array is taken where it came in a value and nobody else reads its memory.
        ValueError for others.
        """
        import numpy as np
        import torch

        if isinstance(value, np.ndarray):
            mine = value if value.flags.writeable else arrays.writable(value)
            if mine is None:
                raise ValueError(
                    "the array is read-only: it came before this process joined a group, and "
                    "others read its memory, "
                    "or the program made it so\n  pass array.copy()"
                )
            value = torch.from_numpy(mine)
        elif not isinstance(value, torch.Tensor):
            if not hasattr(value, "__dlpack__"):
                raise ValueError(
                    f"a tensor is a numpy array or a torch tensor, not {type(value).__name__}"
                )
            value = torch.from_dlpack(value)
        device = "cuda" if self._library == Backend.NCCL else "cpu"
        if value.device.type != device:
            raise ValueError(
                f"backend {self._library!r} takes tensors on {device}, this one is on "
                f"{value.device}"
            )
        return value

    def _dense(self, value: Any) -> tuple[Any, Callable[[], None]]:
        """The tensor as torch's backends take it, and what brings a result back where that is a
        copy."""
        tensor = self._tensor(value)
        if tensor.is_contiguous():
            return tensor, lambda: None
        copy = tensor.contiguous()
        return copy, lambda: tensor.copy_(copy)

    def _dense_input(self, value: Any) -> Any:
        """Return the tensor as torch's backends take it, for an operation that only reads it."""
        import numpy as np

        if isinstance(value, np.ndarray) and not value.flags.writeable:
            mine = arrays.writable(value)
            value = value.copy() if mine is None else mine  # torch has no read-only tensors
        return self._dense(value)[0]


def _op(op: types.ReduceOp) -> Any:
    import torch.distributed as dist

    return getattr(dist.ReduceOp, op.name)


def gloo_available() -> bool:
    """Return True if backend="gloo" works here."""
    return _has("is_gloo_available")


def nccl_available() -> bool:
    """Return True if backend="nccl" works here: torch with NCCL, and a GPU."""
    if not _has("is_nccl_available"):
        return False
    import torch

    return bool(torch.cuda.is_available())


def _has(which: str) -> bool:
    try:
        import torch.distributed as dist
    except ImportError:
        return False
    found: bool = dist.is_available() and getattr(dist, which)()
    return found
