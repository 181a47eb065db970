"""`train(epochs=3)`: the function here, without a cluster, as rank 0 of 1."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from troupe._base import rendezvous as _rendezvous

_TAKEN_BY_OTHERS = ("RANK", "WORLD_SIZE", "MASTER_PORT")
_VARIABLES = {
    "RANK": "0",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "1",
    "LOCAL_WORLD_SIZE": "1",
    "NODE_RANK": "0",
    "GROUP_RANK": "0",
}
_running = threading.Lock()


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function in this process, in a process group of its own if there is none; return or
    raise as it does.

    For its duration the variables are those of rank 0 of 1, so that `init_process_group()` makes a
    group of this process; the group that the function leaves is destroyed, and the variables are as
    they were. Where another launcher, or another call, has set them, nothing is changed.
    """
    if any(name in os.environ for name in _TAKEN_BY_OTHERS) or not _running.acquire(blocking=False):
        return function(*args, **kwargs)
    try:
        with _rendezvous.of_plain_call() as own:
            variables = {**_VARIABLES, **own.variables()}
            before = {name: os.environ.get(name) for name in variables}
            had_group = _has_group()
            os.environ.update(variables)
            try:
                return function(*args, **kwargs)
            finally:
                if not had_group and _has_group():
                    sys.modules["torch.distributed"].destroy_process_group()
                _rendezvous.restore(before)
    finally:
        _running.release()


def _has_group() -> bool:
    """Return True if this process is in one of torch's process groups."""
    module = sys.modules.get("torch.distributed")
    return module is not None and module.is_available() and module.is_initialized()
