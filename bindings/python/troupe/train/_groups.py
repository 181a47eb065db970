"""The process group of this rank, made anew after a death: what `attempts()` and `reform()` are
made of.

How a rank comes to the next group: its former one is destroyed, it joins (`_process.group_epochs`),
learns its rank, size and where the store is, and makes torch's default group there under keys of
that epoch's own, which no epoch before has used.
"""

from __future__ import annotations

import traceback
from datetime import timedelta
from typing import Any

from troupe._base import rendezvous as _rendezvous
from troupe._code import failures
from troupe._process import group_epochs, group_watch, process_groups
from troupe.launch import _context
from troupe.train._errors import GroupAborted

# A node that has fallen silent is lost after 75 s at the latest (docs/reference/deaths.md).
VERDICT_WAIT_S = 90.0
FORM_LIMIT_S = 120.0  # for torch's group to be made, once all have come
_DISTRIBUTED = "torch/distributed/"
_BACKWARD = "torch/autograd/"


def is_of_group(error: BaseException) -> bool:
    """Return True if a collective raised the error because it lost its connection, its patience or
    its group: a death may be the cause."""
    if isinstance(error, GroupAborted) or failures.is_symptom(error):
        return True
    return group_epochs.is_over() and isinstance(error, RuntimeError) and op_of(error) != ""


def op_of(error: BaseException) -> str:
    """The operation of torch's in which it was raised: `all_reduce`, `backward`; "" where none
    was."""
    return _under_way(error)[0]


def _under_way(error: BaseException | None) -> tuple[str, int]:
    """(the operation of torch's in which it was raised, how many its process group has begun here);
    ("", 0) where it was in none."""
    for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None):
        name, file = frame.f_code.co_name, frame.f_code.co_filename
        if name == "wrapper":
            continue
        if _DISTRIBUTED in file:
            return name, group_watch.begun_in(frame.f_locals.get("group"))
        if (
            _BACKWARD in file
        ):  # a bucket of DDP's, whose group is the default one unless the program says otherwise
            return "backward", group_watch.begun_in(None)
    return "", 0


def word_on(error: BaseException) -> GroupAborted | None:
    """Return the death that caused a collective's failure, as the head reports it; None if no rank
    died within VERDICT_WAIT_S. Blocks meanwhile."""
    if not is_of_group(error):
        return None
    if not group_epochs.is_over() and not group_epochs.wait_lost(VERDICT_WAIT_S):
        return None
    return aborted(error)


def aborted(
    error: BaseException | None = None,
    *,
    epoch: int | None = None,
    outlived: dict[int, dict[str, Any]] | None = None,
) -> GroupAborted:
    """The end of this process's group, for people and programs; of a former one, its epoch and the
    deaths that were known when it was formed."""
    before = error if isinstance(error, GroupAborted) else None
    op, seq = (before.op, before.seq) if before is not None else _under_way(error)
    late = group_watch.late_rank() if before is None else before.first_late_rank
    dead = group_epochs.dead_since(group_epochs.outlived() if outlived is None else outlived)
    made = GroupAborted.of(
        _context.current().name,
        group_epochs.epoch() if epoch is None else epoch,
        dead,
        op,
        seq,
        late,
    )
    made.__cause__ = before.__cause__ if before is not None else error
    return made


def leave() -> None:
    """This process is in no group any more."""
    import torch.distributed as dist

    if not dist.is_initialized():
        return
    abort = getattr(dist.distributed_c10d, "_abort_process_group", None)
    others = any(backend != "gloo" for backend in _backends(dist))
    if (
        others and abort is not None
    ):  # after a death a communicator of NCCL is only aborted, never destroyed
        abort()
    else:
        dist.destroy_process_group()


def _backends(dist: Any) -> set[str]:
    return {str(entry[0]) for entry in dist.distributed_c10d._world.pg_map.values()}


def form(backend: str | None, timeout: float | None) -> None:
    """Makes torch's default group of this epoch, after those deaths that this process knows of.

    Blocks until all ranks that live have come.

    Raises what making it raises; a death meanwhile is told by `group_epochs.is_over()`.
    """
    import torch.distributed as dist

    given: dict[str, Any] = {} if timeout is None else {"timeout": timedelta(seconds=timeout)}
    if not group_epochs.is_over():  # the gang as it began
        dist.init_process_group(backend, **given)
        return None
    leave()
    formed = group_epochs.join()
    context = _context.current()
    context.regrouped(formed)
    _rendezvous.moved()
    process_groups.begin_epoch(context.group_epoch)
    patience = timedelta(seconds=FORM_LIMIT_S)
    host, port = formed["master_host"], formed["master_port"]
    group_epochs.meets(port)
    store = dist.TCPStore(host, port, None, False, patience)
    if group_epochs.is_over():
        raise aborted()
    keys = dist.PrefixStore(f"troupe group {context.epoch}.{context.group_epoch}", store)
    dist.init_process_group(
        backend, store=keys, rank=context.rank, world_size=context.world_size, timeout=patience
    )
    usual = given.get("timeout") or dist.distributed_c10d._get_default_timeout(dist.get_backend())
    dist.distributed_c10d._set_pg_timeout(usual, dist.group.WORLD)
