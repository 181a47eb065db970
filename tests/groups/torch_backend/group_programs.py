"""Programs of ranks in the tests of the backend `troupe`: functions of one rank, that import what
they need."""

from __future__ import annotations

import functools
import hashlib
from typing import Any


def learns(backend: str, how: str) -> tuple[str, str, float]:
    """(the backend that served, a digest of all parameters, the last loss) after some steps of DDP
    or FSDP2 on data of this rank's own."""
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(backend)
    layers = nn.Sequential(
        *[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(3)], nn.Linear(64, 10)
    )
    rank, size = dist.get_rank(), dist.get_world_size()
    if how == "ddp":
        model: Any = nn.parallel.DistributedDataParallel(layers)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (size,))
        for layer in layers:
            fully_shard(layer, mesh=mesh)
        model = fully_shard(layers, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    own = torch.Generator().manual_seed(rank)
    x, y = torch.randn(32, 64, generator=own), torch.randint(0, 10, (32,), generator=own)
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    digest = hashlib.sha256()
    for parameter in model.parameters():
        whole = parameter.full_tensor() if how == "fsdp2" else parameter
        digest.update(whole.detach().numpy().tobytes())
    served = dist.get_backend(), digest.hexdigest(), loss.item()
    dist.destroy_process_group()
    return served


def loses_rank_2(folder: str) -> None:
    """Trains by DDP until rank 2 kills itself; what the others' backward() raised goes into a file
    of theirs."""
    import os
    import pathlib
    import signal

    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    signal.signal(
        signal.SIGTERM, lambda *_: None
    )  # else it is raised in the middle of what is written below
    dist.init_process_group("troupe")
    rank = dist.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Linear(512, 512))
    step = 0
    while True:
        loss = model(torch.randn(8, 512)).sum()
        if rank == 2 and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            loss.backward()
        except RuntimeError as error:
            pathlib.Path(folder, str(rank)).write_text(f"{type(error).__name__}: {error}")
            raise
        step += 1


_TYPES = ("float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool")
_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def like_gloo() -> list[str]:
    """Runs every operation over Gloo and over `troupe` with the same tensors; what differs.

    What Gloo refuses is only asked of it.
    """
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("troupe")
    gloo = dist.new_group(backend="gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    found: list[str] = []

    def values(kind: Any, count: int = 6, of: int = rank) -> Any:
        made = (torch.arange(count) * 3 + of * 5) % 7
        return (made % 2 if kind is torch.bool else made).to(kind)

    def compare(what: str, run: Any) -> None:
        """`run(group)` -> tensors."""
        try:
            expected = run(gloo)
        except (RuntimeError, ValueError) as refused:
            expected = refused
        try:
            got = run(dist.group.WORLD)
        except (RuntimeError, ValueError, TypeError) as refused:
            got = refused
        if isinstance(expected, Exception):
            return  # more than Gloo has is no difference
        if isinstance(got, Exception) or not all(
            torch.equal(a.bool(), b.bool()) if a.dtype is torch.bool else torch.equal(a, b)
            for a, b in zip(expected, got, strict=True)
        ):
            found.append(f"{what}: gloo {expected}, troupe {got}")

    for name in _TYPES:
        kind = getattr(torch, name)
        for op_name in _OPS:
            op = getattr(dist.ReduceOp, op_name)

            def all_reduce(group: Any, kind: Any = kind, op: Any = op) -> Any:
                tensor = values(kind)
                dist.all_reduce(tensor, op, group=group)
                return [tensor]

            def reduce(group: Any, kind: Any = kind, op: Any = op) -> Any:
                tensor = values(kind)
                dist.reduce(tensor, size - 1, op, group=group)
                return [tensor] if rank == size - 1 else []

            def reduce_scatter(group: Any, kind: Any = kind, op: Any = op) -> Any:
                part = torch.zeros(2, dtype=kind)
                dist.reduce_scatter_tensor(part, values(kind, 2 * size), op, group=group)
                return [part]

            for each in (all_reduce, reduce, reduce_scatter):
                compare(f"{each.__name__} {op_name} {name}", each)
        for run in [*_movements(name), *_exchanges(name)]:
            compare(f"{run.__name__} {name}", run)
    dist.barrier()
    dist.destroy_process_group()
    return found


def _values(name: str, count: int = 6) -> Any:
    """Return a tensor of a type, another one on each rank."""
    import torch
    import torch.distributed as dist

    kind, rank = getattr(torch, name), dist.get_rank()
    return (
        ((torch.arange(count) + rank) % 2).to(kind)
        if name == "bool"
        else (torch.arange(count) + 10 * rank).to(kind)
    )


def _movements(name: str) -> list[Any]:
    """Operations that move tensors of a type from or to all: each of a group -> tensors."""
    import torch
    import torch.distributed as dist

    kind, values = getattr(torch, name), functools.partial(_values, name)
    rank, size = dist.get_rank(), dist.get_world_size()

    def broadcast(group: Any) -> Any:
        tensor = values()
        dist.broadcast(tensor, 1, group=group)
        return [tensor]

    def all_gather(group: Any) -> Any:
        outputs = [torch.zeros(2, 3, dtype=kind) for _ in range(size)]
        dist.all_gather(outputs, values().view(2, 3), group=group)
        return outputs

    def all_gather_into_tensor(group: Any) -> Any:
        output = torch.zeros(6 * size, dtype=kind)
        dist.all_gather_into_tensor(output, values(), group=group)
        return [output]

    def gather(group: Any) -> Any:
        outputs = [torch.zeros(6, dtype=kind) for _ in range(size)] if rank == 1 else None
        dist.gather(values(), outputs, dst=1, group=group)
        return outputs or []

    def scatter(group: Any) -> Any:
        output = torch.zeros(6, dtype=kind)
        dist.scatter(
            output,
            [values() + each if name != "bool" else values() for each in range(size)]
            if rank == 0
            else None,
            src=0,
            group=group,
        )
        return [output]

    return [broadcast, all_gather, all_gather_into_tensor, gather, scatter]


def _exchanges(name: str) -> list[Any]:
    """Operations by which ranks exchange tensors of a type: each of a group -> tensors."""
    import torch
    import torch.distributed as dist

    kind, values = getattr(torch, name), functools.partial(_values, name)
    rank, size = dist.get_rank(), dist.get_world_size()

    def all_to_all_single(group: Any) -> Any:
        output = torch.zeros(2 * size, dtype=kind)
        dist.all_to_all_single(output, values(2 * size), group=group)
        return [output]

    def all_to_all_of_unequal(group: Any) -> Any:
        splits = [rank + each for each in range(size)]
        output = torch.zeros(sum(splits), 2, dtype=kind)
        dist.all_to_all_single(
            output, values(2 * sum(splits)).view(-1, 2), splits, splits, group=group
        )
        return [output]

    def send_and_recv(group: Any) -> Any:
        got, mine = torch.zeros(6, dtype=kind), values()
        sent = dist.isend(mine, (rank + 1) % size, group=group, tag=3)
        dist.recv(got, (rank - 1) % size, group=group, tag=3)
        sent.wait()
        return [got]

    return [all_to_all_single, all_to_all_of_unequal, send_and_recv]


def lists_and_objects() -> Any:
    """Return results without a counterpart over Gloo, or that go through pickles: (all_to_all's
    lists, objects gathered, the source of a message, contents of non-contiguous tensors, which Gloo
    takes as contiguous, a sum in a recreated group)."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("troupe")
    rank, size = dist.get_rank(), dist.get_world_size()
    outputs = [torch.zeros(2) for _ in range(size)]
    dist.all_to_all(outputs, [torch.full((2,), 10.0 * rank + each) for each in range(size)])
    objects: list[Any] = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    apart = torch.arange(6.0) + 10 * rank
    dist.broadcast(apart[::2], 0)
    dist.all_reduce(apart.view(2, 3).t(), dist.ReduceOp.MAX)
    source = -1
    if rank == 0:
        dist.send(torch.ones(1), 1)
    elif rank == 1:
        source = dist.recv(torch.zeros(1))
    dist.destroy_process_group()
    dist.init_process_group("troupe")  # created again, in the same store
    again = torch.ones(1)
    dist.all_reduce(again)
    return [each.tolist() for each in outputs], objects, source, apart.tolist(), again.item()


def waits_in_vain(absent: int = 1, after_s: float = 0.2) -> str:
    """A rank does not come to an all-reduce: what that said on the others after the group's own
    time, by which all of them must have come."""
    import datetime

    import torch
    import torch.distributed as dist

    dist.init_process_group("troupe", timeout=datetime.timedelta(seconds=60))
    group = dist.new_group(timeout=datetime.timedelta(seconds=after_s))
    try:
        if dist.get_rank() != absent:
            dist.all_reduce(torch.ones(3), group=group)
    except RuntimeError as error:
        return str(error)
    finally:
        dist.barrier()
    return ""
