"""Groups of torch on CPU ranks: where a program asks for NCCL, which needs GPUs, it gets Gloo, said
once. No call of CUDA's is changed.

Only where the runtime has made CPU ranks of those that asked for GPUs (TROUPE_CPU_RANKS=1 in the
rank): elsewhere a backend is what it says. Interpreters that a CPU rank starts, or becomes, load
this file by its path (`stand_ins/path/start/sitecustomize.py`), whether or not they have the
package: it imports nothing of it.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any

BELOW = "TROUPE_GLOO_FOR_NCCL"
"""Set by a CPU rank for all that it starts."""
_NCCL, _GLOO = "nccl", "gloo"
_OF_GPUS = {"pg_options": None, "device_id": None}
"""Parameters that say more of NCCL, or of the GPU that it is to use."""
# on the functions that were changed; others change them again, which keeps it
_MARK = "_troupe_gloo_for_nccl"
_said = False


def wrap(module: Any) -> None:
    """Change `module`, torch.distributed.distributed_c10d, once it was imported in a process of CPU
    ranks."""
    for name in ("init_process_group", "new_group"):
        original = getattr(module, name, None)
        if original is None or hasattr(original, _MARK):
            continue
        made = _instead(original)
        setattr(made, _MARK, True)
        for each in filter(None, (module, sys.modules.get("torch.distributed"))):
            setattr(each, name, made)


def without_nccl(backend: str) -> str:
    """Return what such a backend is without NCCL.

    Pure.

    >>> [without_nccl(each) for each in ("NCCL", "cpu:gloo,cuda:nccl", "cuda:nccl", "troupe")]
    ['gloo', 'cpu:gloo', 'gloo', 'troupe']
    """
    if backend.lower() == _NCCL:
        return _GLOO
    pairs = backend.split(",")
    left = [each for each in pairs if each.partition(":")[2].lower() != _NCCL]
    return backend if len(left) == len(pairs) else ",".join(left) or _GLOO


def _instead(original: Any) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def make_group(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:  # the original reports the error better
            return original(*args, **kwargs)
        backend = given.arguments.get("backend")
        if isinstance(backend, str) and (other := without_nccl(backend)) != backend:
            _say(backend, other, given.arguments.get("rank"))
            given.arguments["backend"] = other
            given.arguments.update(
                {name: value for name, value in _OF_GPUS.items() if name in given.arguments}
            )
        return original(*given.args, **given.kwargs)

    return make_group


def _say(asked: str, other: str, rank: Any) -> None:
    """Say it once, where this is the group's rank 0, by what the program gives as rank or else by
    the launcher's variable."""
    global _said
    if (
        not _said
        and str(rank if isinstance(rank, int) and rank >= 0 else os.environ.get("RANK", "0")) == "0"
    ):
        print(
            f"troupe: torch.distributed backend {asked!r} is {other!r} on these ranks, which have "
            "no GPUs",
            file=sys.stderr,
            flush=True,
        )
    _said = True
