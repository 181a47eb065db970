"""torch's NCCL groups of this process, and their end from another thread.

A rank that waits for a GPU in a collective whose peer is gone waits for the watchdog's ten minutes.
Aborting the communicators ends their kernels. All together, as one NCCL group: one that is aborted
alone may wait for the kernel of another (pytorch#119797).

Only where the program makes its groups anew from a checkpoint afterwards (`troupe.train.attempts`).
What an aborted kernel leaves in memory is anything, and kernels that the program had queued behind
it (an optimizer's step) run on that: a rank that is to end is better ended without, than to write
such parameters into the checkpoint of its last word.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any

_MODULE = "torch.distributed.distributed_c10d"


def abort_all() -> threading.Thread | None:
    """Begins to abort the communicators of all groups of torch.distributed that are there, from any
    thread. None: there are none. Does not block: the thread that is given ends when they are gone,
    which may take as long as NCCL's abort does."""
    backends = _backends(sys.modules.get(_MODULE))
    if not backends:
        return None
    aborting = threading.Thread(
        target=_abort, args=(backends,), name="abort of NCCL groups", daemon=True
    )
    aborting.start()
    return aborting


def _backends(module: Any) -> list[Any]:
    """Return the NCCL backends of all groups, each once, the latest first."""
    kind = getattr(module, "ProcessGroupNCCL", None)
    if kind is None:
        return []
    import torch

    found: list[Any] = []
    for group in reversed(list(module._world.pg_map)):
        with contextlib.suppress(
            RuntimeError, AttributeError
        ):  # the group has no backend for GPUs; this rank is not in it
            backend = group._get_backend(torch.device("cuda"))
            if isinstance(backend, kind) and not any(backend is each for each in found):
                found.append(backend)
    return found


def _abort(backends: list[Any]) -> None:
    first = backends[0]
    first._group_start()
    try:
        for each in backends:
            with contextlib.suppress(RuntimeError):  # the group had not been used yet
                each.abort()
    finally:
        first._group_end()
