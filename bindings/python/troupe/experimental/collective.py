"""Ray's `ray.experimental.collective`: groups of actors, made from outside, and collectives as
steps of a graph.

    group = create_collective_group(workers, backend="gloo")     # ranks in this order
    group.get_rank(workers[1])                                   # 1
    destroy_collective_group(group)

    with dag.InputNode() as inp:
        gradients = [worker.gradient.bind(inp) for worker in workers]
        summed = allreduce.bind(gradients, transport="gloo")     # one node each, of the same actor
        applied = [worker.apply.bind(each) for worker, each in zip(workers, summed)]
        graph = dag.MultiOutputNode(applied)

Inside an actor the operations are those of `troupe.util.collective`, by the group's name. View:
groups are known to the process that made them; making and destroying block until every actor has
done its part.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import troupe
from troupe import dag, exceptions
from troupe.util import collective
from troupe.util._collective_types import Backend, ReduceOp, registered

_ACCELERATOR = ("accelerator", "auto")  # Ray's words for the library of the GPUs


class CommunicatorHandle:
    """A group of actors; rank i is `actors[i]`."""

    def __init__(self, actors: Sequence[Any], name: str, backend: str) -> None:
        self._actors, self._name, self._backend = list(actors), name, backend

    def get_rank(self, actor: Any) -> int:
        """The rank of an actor; -1: it is not in the group."""
        return self._actors.index(actor) if actor in self._actors else -1

    @property
    def actors(self) -> list[Any]:
        """In the order of their ranks."""
        return list(self._actors)

    @property
    def name(self) -> str:
        """By which the actors name the group to `troupe.util.collective`."""
        return self._name

    @property
    def backend(self) -> str:
        """The backend that moves the tensors."""
        return self._backend

    def __repr__(self) -> str:
        return f"<group {self._name!r} of {len(self._actors)} actors ({self._backend})>"


_groups: dict[str, CommunicatorHandle] = {}


def create_collective_group(
    actors: Sequence[Any], backend: str, name: str | None = None
) -> CommunicatorHandle:
    """Makes a group of these actors, which are ranks in this order.

    A name of its own unless one is given.

    Raises ValueError for an actor that is there twice, a name that is taken here, or a backend that
    does not exist; RuntimeError for an actor that is in a group of this backend which this process
    made; and what init_collective_group raised in one of the actors.
    """
    if not isinstance(actors, list | tuple) or not actors:
        raise ValueError(f"a group is of a list of actors, at least one, not of {actors!r}")
    if len(set(actors)) != len(actors):
        raise ValueError(f"All actors must be unique, got: {list(actors)}")
    name = name if name is not None else uuid.uuid4().hex
    if name in _groups:
        raise ValueError(
            f"a group named {name!r} exists: {_groups[name]!r}\n  "
            f"destroy_collective_group({name!r}) first"
        )
    for group in list(_groups.values()):
        twice = next((actor for actor in actors if actor in group.actors), None)
        if twice is not None and group.backend == _backend(backend):
            raise RuntimeError(
                f"{twice!r} is in {group!r}, and an actor is in one group of each backend\n"
                f"  destroy_collective_group({group.name!r}) first"
            )
    collective.create_collective_group(actors, len(actors), list(range(len(actors))), backend, name)
    _groups[name] = CommunicatorHandle(actors, name, _backend(backend))
    return _groups[name]


def _backend(name: str) -> str:
    low = str(name).lower()
    return Backend.GLOO if low == "torch_gloo" else low


def get_collective_groups(
    actors: Sequence[Any], backend: str | None = None
) -> list[CommunicatorHandle]:
    """The groups made by this process in which all of these actors are, of one backend if it is
    given."""
    return [
        group
        for group in list(_groups.values())
        if set(actors) <= set(group.actors)
        and (backend is None or group.backend == _backend(backend))
    ]


def destroy_collective_group(group_or_name: CommunicatorHandle | str) -> None:
    """The actors leave the group; those that have ended have left.

    Raises ValueError where this process made no such group.
    """
    if not isinstance(group_or_name, CommunicatorHandle | str):
        raise ValueError(f"Expected CommunicatorHandle or str (group name), not {group_or_name!r}")
    name = group_or_name if isinstance(group_or_name, str) else group_or_name.name
    group = _groups.pop(name, None)
    if group is None:
        raise ValueError(f"No group with name {name} found.")
    for left in [actor.__ray_call__.remote(_leave, name) for actor in group.actors]:
        try:
            troupe.get(left)
        except exceptions.RayActorError:
            continue


def _leave(_instance: Any, name: str) -> None:
    collective.destroy_collective_group(name)


def destroy_all_collective_groups() -> None:
    """Destroy all groups that this process made."""
    for name in list(_groups):
        destroy_collective_group(name)


class _Operation:
    """A collective of a graph: its actors, and their group, which is made with the first
    execution."""

    def __init__(self, kind: str, actors: Sequence[Any], op: ReduceOp, transport: Any) -> None:
        self.kind, self.op, self._actors = kind, op, list(actors)
        self._group = transport if isinstance(transport, CommunicatorHandle) else None
        self._backend = _transport(transport)
        if self._group is not None and set(self._group.actors) != set(actors):
            raise ValueError(
                f"{self._group!r} is not of the actors whose nodes are bound: {self._actors}"
            )

    def group(self) -> str:
        """The name of the group, made if there is none of these actors and this backend yet."""
        if self._group is None or self._group.name not in _groups:
            there = [
                each
                for each in get_collective_groups(self._actors, self._backend)
                if each.actors == self._actors
            ]
            self._group = (
                there[0] if there else create_collective_group(self._actors, self._backend)
            )
        return self._group.name


def _transport(transport: Any) -> str:
    if isinstance(transport, CommunicatorHandle):
        return transport.backend
    name = "accelerator" if transport is None else str(transport).lower()
    if name in _ACCELERATOR:
        return Backend.NCCL
    if name == "cpu":
        return Backend.GLOO
    if name not in (Backend.NCCL, Backend.GLOO) and registered(name) is None:
        raise ValueError(
            f"transport is 'nccl', 'gloo', a registered backend or a group, not {transport!r}"
        )
    return name


class _CollectiveNode(dag.ClassMethodNode):
    """An actor's part of a collective."""

    def __init__(self, operation: _Operation, handle: Any, takes: Sequence[dag.DAGNode]) -> None:
        super().__init__(handle, handle.__ray_call__, takes, {})
        self._operation, self._returns = operation, len(takes)

    def _run(self, values: Any, given: Any) -> Any:
        tensors, _ = self._filled(values)
        return self._method.options(num_returns=self._returns).remote(
            _operate, self._operation.kind, self._operation.op, self._operation.group(), *tensors
        )

    def __repr__(self) -> str:
        return f"<{self._operation.kind} of {self._handle!r}, not made yet>"


def _operate(_instance: Any, kind: str, op: ReduceOp, group: str, *tensors: Any) -> Any:
    """In the actor: the tensors are the graph's values, so what changes is a copy."""
    done = [_OPERATIONS[kind](tensor, op, group) for tensor in tensors]
    return done[0] if len(done) == 1 else tuple(done)


def _allreduce(tensor: Any, op: ReduceOp, group: str) -> Any:
    copy = _copy(tensor)
    collective.allreduce(copy, group, op)
    return copy


def _allgather(tensor: Any, op: ReduceOp, group: str) -> Any:
    """All ranks' tensors along the first axis."""
    import torch

    mine = torch.as_tensor(_copy(tensor))
    parts = [torch.empty_like(mine) for _ in range(collective.get_collective_group_size(group))]
    collective.allgather(parts, mine, group)
    whole = torch.cat(parts)
    return whole if isinstance(tensor, torch.Tensor) else whole.numpy()


def _reducescatter(tensor: Any, op: ReduceOp, group: str) -> Any:
    """This rank's share, along the first axis, of what all ranks' tensors make together."""
    import torch

    size, mine = collective.get_collective_group_size(group), torch.as_tensor(_copy(tensor))
    if mine.dim() == 0 or len(mine) % size:
        raise ValueError(
            f"reducescatter over {size} ranks needs a first axis that {size} divides; the shape is "
            f"{tuple(mine.shape)}"
        )
    parts = list(mine.chunk(size))
    share = torch.empty_like(parts[0])
    collective.reducescatter(share, parts, group, op)
    return share if isinstance(tensor, torch.Tensor) else share.numpy()


def _copy(tensor: Any) -> Any:
    return tensor.clone() if hasattr(tensor, "clone") else tensor.copy()


_OPERATIONS = {"allreduce": _allreduce, "allgather": _allgather, "reducescatter": _reducescatter}


def _bind(kind: str, inputs: Any, op: ReduceOp, transport: Any) -> list[Any]:
    """A node of each actor; a list of them, one for each of its tensors, where lists of nodes are
    given."""
    if not isinstance(op, ReduceOp):
        raise ValueError(f"Unexpected operation: {op}")
    nested = bool(inputs) and isinstance(inputs[0], list | tuple)
    rows = [list(each) for each in inputs] if nested else [list(inputs)]
    if not all(rows) or not all(
        isinstance(node, dag.ClassMethodNode) for row in rows for node in row
    ):
        raise ValueError(
            f"{kind}.bind() takes calls of actors' methods, one of each actor, not {inputs!r}"
        )
    actors = [node._handle for node in rows[0]]
    if len(set(actors)) != len(actors) or any(
        [node._handle for node in row] != actors for row in rows
    ):
        raise ValueError(
            f"{kind}.bind() takes one call of each actor, each list in the same order of actors"
        )
    operation = _Operation(kind, actors, op, transport)
    nodes = [
        _CollectiveNode(operation, actor, [row[rank] for row in rows])
        for rank, actor in enumerate(actors)
    ]
    return [
        list(node.outputs(len(rows))) if len(rows) > 1 else [node] if nested else node
        for node in nodes
    ]


class _AllReduce:
    """`allreduce.bind(nodes, op, transport)` in a graph; `allreduce(tensor, group_name, op)` in an
    actor."""

    def bind(
        self, input_nodes: Sequence[Any], op: ReduceOp = ReduceOp.SUM, transport: Any = None
    ) -> list[Any]:
        """Return a node for each input, on its actor, with the reduction of all tensors."""
        return _bind("allreduce", input_nodes, op, transport)

    def __call__(
        self, tensor: Any, group_name: str = "default", op: ReduceOp = ReduceOp.SUM
    ) -> None:
        """See util.collective."""
        collective.allreduce(tensor, group_name, op)


class _AllGather:
    """`allgather.bind(nodes, transport)` in a graph; `allgather(tensor_list, tensor, group_name)`
    in an actor."""

    def bind(self, input_nodes: Sequence[Any], transport: Any = None) -> list[Any]:
        """Return a node for each input, on its actor, with all tensors joined along the first
        axis."""
        return _bind("allgather", _flat("allgather", input_nodes), ReduceOp.SUM, transport)

    def __call__(
        self, tensor_list: Sequence[Any], tensor: Any, group_name: str = "default"
    ) -> None:
        """See util.collective."""
        collective.allgather(tensor_list, tensor, group_name)


class _ReduceScatter:
    """`reducescatter.bind(nodes, op, transport)` in a graph; `reducescatter(tensor, tensor_list,
    group_name, op)` in an actor."""

    def bind(
        self, input_nodes: Sequence[Any], op: ReduceOp = ReduceOp.SUM, transport: Any = None
    ) -> list[Any]:
        """Return a node for each input, on its actor, with its share, along the first axis, of the
        reduction."""
        return _bind("reducescatter", _flat("reducescatter", input_nodes), op, transport)

    def __call__(
        self,
        tensor: Any,
        tensor_list: Sequence[Any],
        group_name: str = "default",
        op: ReduceOp = ReduceOp.SUM,
    ) -> None:
        """See util.collective."""
        collective.reducescatter(tensor, tensor_list, group_name, op)


def _flat(kind: str, nodes: Sequence[Any]) -> Sequence[Any]:
    if nodes and isinstance(nodes[0], list | tuple):
        raise ValueError(f"lists of lists of nodes are for allreduce, not for {kind}")
    return nodes


allgather, allreduce, reducescatter = _AllGather(), _AllReduce(), _ReduceScatter()

__all__ = [
    "CommunicatorHandle",
    "ReduceOp",
    "allgather",
    "allreduce",
    "create_collective_group",
    "destroy_all_collective_groups",
    "destroy_collective_group",
    "get_collective_groups",
    "reducescatter",
]
