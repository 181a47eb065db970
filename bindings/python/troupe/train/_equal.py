"""A check that replicas of a model are equal on all ranks, bit for bit."""

from __future__ import annotations

import socket
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from troupe import _pickled
from troupe.exceptions import TroupeError

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

_SHOWN_MAX = 8


class DivergedError(TroupeError):
    """Replicas are not equal.

    Fields: `tensors` (name -> the ranks of the group whose values are not those of most; empty
    where the ranks have tensors of several names, shapes or types).
    """

    tensors: Mapping[str, Sequence[int]] = {}


def check_equal(
    what: torch.nn.Module | Mapping[str, torch.Tensor], *, group: dist.ProcessGroup | None = None
) -> None:
    """Raises DivergedError, on all ranks alike, unless parameters and buffers of `what` have the
    same bytes on each of them.

    `what`: a module, or tensors by name; `group`: of torch.distributed, all ranks by default.
    Called by all ranks of the group, it blocks until all have: a digest of 64 bits of each tensor
    is computed where the tensor is (`_digest`), and these go round. So 1 GB of parameters on a GPU
    costs a few passes over them and no copy to the host. Silent differences are what it finds: a
    rank that has skipped a step, unequal seeds of dropout in a buffer, a GPU that computes wrongly.
    NaNs are compared as bytes; 0.0 and -0.0 differ.

        for step, batch in enumerate(batches):
            train(batch)
            if step % 1000 == 0:
                troupe.train.check_equal(model)

    Raises TypeError for tensors that are sharded over ranks (FSDP): their parts differ on purpose.
    RuntimeError without a process group.
    """
    import torch
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        raise RuntimeError(
            "check_equal() compares the ranks of a process group: call "
            "torch.distributed.init_process_group() first"
        )
    tensors = _tensors_of(what)
    device = _device_of(group)
    structure = zlib.crc32(
        repr(
            [(name, tuple(each.shape), str(each.dtype)) for name, each in tensors.items()]
        ).encode()
    )
    if len({tuple(each) for each in _gathered([len(tensors), structure], device, group)}) > 1:
        raise _of_structure(dist, tensors, group)
    if not tensors:
        return
    from troupe.train import _digest

    own = torch.stack([_digest.of(each).to(device) for each in tensors.values()])
    rows = _gathered(own, device, group)
    differing = {
        name: ranks
        for name, digests in zip(tensors, zip(*rows, strict=True), strict=True)
        if (ranks := outliers(digests))
    }
    if differing:
        raise _of_values(differing, len(tensors), _hosts(dist, group))


def digest(tensor: torch.Tensor) -> int:
    """64 bits of what a tensor holds: equal for equal bytes in the same order of elements, whatever
    device they are on and whatever their shape.

    For whoever wants to know that a transfer has brought what was sent: sender and receiver compute
    it, and compare. Computed where the tensor is, in one pass over its memory on an NVIDIA GPU;
    blocks until it is. It finds faults, not forgeries.

        ref = worker.weights.remote()                    # tensor_transport="auto"
        assert troupe.train.digest(troupe.get(ref)) == troupe.get(worker.digest_of_weights.remote())

    Raises TypeError for what is no tensor.
    """
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"digest() takes a torch.Tensor, not {type(tensor).__name__}")
    from troupe.train import _digest

    return int(_digest.of(tensor)) & ((1 << 64) - 1)


def outliers(digests: Sequence[int]) -> list[int]:
    """The ranks whose digest is not that of most; of several that are as frequent, the one that the
    lowest rank has counts. Pure."""
    if len(set(digests)) == 1:
        return []
    counts = Counter(digests)
    most = max(counts.values())
    usual = next(each for each in digests if counts[each] == most)
    return [rank for rank, each in enumerate(digests) if each != usual]


def _tensors_of(what: Any) -> dict[str, torch.Tensor]:
    import torch

    if isinstance(what, torch.nn.Module):
        found = dict([*what.named_parameters(), *what.named_buffers()])
    elif isinstance(what, Mapping) and all(
        isinstance(each, torch.Tensor) for each in what.values()
    ):
        found = {str(name): each for name, each in what.items()}
    else:
        raise TypeError(
            f"check_equal() takes a torch.nn.Module, or tensors by name, not {type(what).__name__}"
        )
    for name, each in found.items():
        if type(each).__name__ == "DTensor" and any(
            not placed.is_replicate() for placed in each.placements
        ):
            raise TypeError(
                f"check_equal(): {name} is sharded over ranks ({each.placements}), whose parts "
                "differ on purpose: "
                "it compares replicas, over the group of ranks that hold the same part, of tensors "
                "that these ranks have whole (to_local())"
            )
    return {
        name: each.to_local() if type(each).__name__ == "DTensor" else each
        for name, each in found.items()
    }


def _device_of(group: Any) -> Any:
    """Return the device from which the group's collectives take numbers."""
    import torch
    import torch.distributed as dist

    return (
        torch.device("cuda", torch.cuda.current_device())
        if "nccl" in str(dist.get_backend(group))
        else torch.device("cpu")
    )


def _gathered(own: Any, device: Any, group: Any) -> list[list[int]]:
    """Return the numbers of all ranks."""
    import torch
    import torch.distributed as dist

    numbers = torch.as_tensor(own, dtype=torch.int64, device=device)
    rows = [torch.empty_like(numbers) for _ in range(dist.get_world_size(group))]
    dist.all_gather(rows, numbers, group=group)
    return [each.tolist() for each in rows]


def _hosts(dist: Any, group: Any) -> list[str]:
    hosts: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(hosts, socket.gethostname(), group=group)
    return hosts


def _of_structure(dist: Any, tensors: dict[str, torch.Tensor], group: Any) -> DivergedError:
    all_of: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(
        all_of,
        (
            {name: f"{each.dtype} {tuple(each.shape)}" for name, each in tensors.items()},
            socket.gethostname(),
        ),
        group=group,
    )
    first = all_of[0][0]
    lines = []
    for rank, (names, host) in enumerate(all_of):
        other = next(
            (name for name in [*first, *names] if first.get(name) != names.get(name)), None
        )
        if other is not None:
            lines.append(
                f"\n  rank {rank} ({host}): {other} is {names.get(other, 'not there')}; on rank 0 "
                f"it is {first.get(other, 'not there')}"
            )
        elif list(names) != list(first):
            lines.append(f"\n  rank {rank} ({host}): the same tensors in another order")
    return DivergedError("the ranks have different tensors" + "".join(lines[:_SHOWN_MAX]))


def _of_values(differing: dict[str, list[int]], count: int, hosts: list[str]) -> DivergedError:
    ranks = sorted({rank for each in differing.values() for rank in each})
    named = ", ".join(f"rank {rank} ({hosts[rank]})" for rank in ranks[:_SHOWN_MAX]) + (
        f" and {len(ranks) - _SHOWN_MAX} more" if len(ranks) > _SHOWN_MAX else ""
    )
    lines = [
        f"\n  {name}: on {', '.join(map(str, each))}"
        for name, each in list(differing.items())[:_SHOWN_MAX]
    ]
    more = f"\n  and {len(differing) - _SHOWN_MAX} more" if len(differing) > _SHOWN_MAX else ""
    error = DivergedError(
        f"{named} {'has' if len(ranks) == 1 else 'have'} other values than most of {len(hosts)} "
        f"ranks, in {len(differing)} of {count} tensors:" + "".join(lines) + more
    )
    error.tensors = differing
    return error


_pickled.named_in("troupe.train", DivergedError, check_equal, digest)
