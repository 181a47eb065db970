"""Options of collective groups: the types of their operations, and the backends that offer them."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any


class Backend:
    """Names of the libraries that move the tensors; those registered are here too, in capitals."""

    NCCL = "nccl"
    GLOO = "gloo"
    TROUPE = "troupe"


class ReduceOp(enum.Enum):
    """How values of several ranks become one."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3


UNSET_TIMEOUT = datetime.timedelta(milliseconds=-1)


@dataclasses.dataclass
class AllReduceOptions:
    """Options of `allreduce`."""

    reduceOp: ReduceOp = ReduceOp.SUM
    timeout_ms: datetime.timedelta = UNSET_TIMEOUT


@dataclasses.dataclass
class BarrierOptions:
    """Options of `barrier`."""

    timeout_ms: datetime.timedelta = UNSET_TIMEOUT


@dataclasses.dataclass
class ReduceOptions:
    """Options of `reduce`; `root_tensor` is always 0 (one GPU a process)."""

    reduceOp: ReduceOp = ReduceOp.SUM
    root_rank: int = 0
    root_tensor: int = 0
    timeout_ms: datetime.timedelta = UNSET_TIMEOUT


@dataclasses.dataclass
class AllGatherOptions:
    """Options of `allgather`."""

    timeout_ms: datetime.timedelta = UNSET_TIMEOUT


@dataclasses.dataclass
class BroadcastOptions:
    """Options of `broadcast`."""

    root_rank: int = 0
    root_tensor: int = 0
    timeout_ms: datetime.timedelta = UNSET_TIMEOUT


@dataclasses.dataclass
class ReduceScatterOptions:
    """Options of `reducescatter`."""

    reduceOp: ReduceOp = ReduceOp.SUM
    timeout_ms: datetime.timedelta = UNSET_TIMEOUT


@dataclasses.dataclass
class SendOptions:
    """Options of `send`."""

    dst_rank: int = 0
    dst_gpu_index: int = 0
    n_elements: int = 0
    timeout_ms: datetime.timedelta = UNSET_TIMEOUT


@dataclasses.dataclass
class RecvOptions:
    """Options of `recv`."""

    src_rank: int = 0
    src_gpu_index: int = 0
    n_elements: int = 0
    timeout_ms: datetime.timedelta = UNSET_TIMEOUT


class BaseGroup(metaclass=ABCMeta):
    """This process's part of a group.

    A backend of one's own is a subclass that is given to register_collective_backend() in every
    process of its groups; it is made with (world_size, rank, group_name), and finds its fellows
    itself. An operation returns when this process's part is done.
    """

    def __init__(self, world_size: int, rank: int, group_name: str) -> None:
        self._world_size, self._rank, self._group_name = world_size, rank, group_name

    @property
    def rank(self) -> int:
        """This process's."""
        return self._rank

    @property
    def world_size(self) -> int:
        """How many processes the group has."""
        return self._world_size

    @property
    def group_name(self) -> str:
        """As it was given."""
        return self._group_name

    def destroy_group(self) -> None:
        """This process leaves."""

    @classmethod
    def backend(cls) -> str:
        """The name that it is registered by."""
        raise NotImplementedError

    @classmethod
    @abstractmethod
    def check_backend_availability(cls) -> bool:
        """Return True if the backend works in this process."""

    @abstractmethod
    def allreduce(
        self, tensor: Any, allreduce_options: AllReduceOptions = AllReduceOptions()
    ) -> None:
        """See util.collective, as of all that follow."""

    @abstractmethod
    def barrier(self, barrier_options: BarrierOptions = BarrierOptions()) -> None: ...

    @abstractmethod
    def reduce(self, tensor: Any, reduce_options: ReduceOptions = ReduceOptions()) -> None: ...

    @abstractmethod
    def allgather(
        self,
        tensor_list: Sequence[Any],
        tensor: Any,
        allgather_options: AllGatherOptions = AllGatherOptions(),
    ) -> None: ...

    @abstractmethod
    def broadcast(
        self, tensor: Any, broadcast_options: BroadcastOptions = BroadcastOptions()
    ) -> None: ...

    @abstractmethod
    def reducescatter(
        self,
        tensor: Any,
        tensor_list: Sequence[Any],
        reducescatter_options: ReduceScatterOptions = ReduceScatterOptions(),
    ) -> None: ...

    @abstractmethod
    def send(self, tensor: Any, send_options: SendOptions) -> None: ...

    @abstractmethod
    def recv(self, tensor: Any, recv_options: RecvOptions) -> None: ...


_registered: dict[str, type[BaseGroup]] = {}  # by name in small letters


def register_collective_backend(name: str, group_cls: type[BaseGroup]) -> None:
    """From now on backend=`name` (capitals or not) makes groups of this class, in this process; the
    others of a group, and who calls create_collective_group(), say the same.

    Raises TypeError for a class that is not derived from BaseGroup, and ValueError for a name that
    is taken.
    """
    if not isinstance(group_cls, type) or not issubclass(group_cls, BaseGroup):
        raise TypeError(f"{group_cls!r} is not a subclass of BaseGroup")
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"a backend's name is an identifier, not {name!r}")
    if name.lower() in (*_registered, Backend.NCCL, Backend.GLOO, Backend.TROUPE, "torch_gloo"):
        raise ValueError(f"Backend {name.upper()} already registered")
    _registered[name.lower()] = group_cls
    setattr(Backend, name.upper(), name.upper())


def registered(name: str) -> type[BaseGroup] | None:
    """The class of a backend that was registered."""
    return _registered.get(name.lower())
