"""A program written for Ray needs no `ray.init()`: its first call starts a cluster of this machine,
as Ray's does."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any

from troupe._cluster import session

NAMES = ("cancel", "get", "get_actor", "get_gpu_ids", "get_runtime_context", "kill", "put", "wait")
"""Ray's functions that start a cluster where there is none; `remote(...)` and placement groups do
too."""
_lock = threading.RLock()


def start() -> None:
    """A session for a call that finds none: in a forked child with the cluster of its parent, else
    as `ray.init()` makes one. Says so on stderr, once; blocks. Raises what init() does."""
    troupe = importlib.import_module("troupe")
    with _lock:
        if session.current_or_none() is not None or sys.is_finalizing():
            return
        context = troupe.init(session.address_before_fork() or None)
        embedded = session.started().embedded is not None
        cpus = (
            f" ({troupe.cluster_resources().get('CPU', 0):g} CPUs); it ends with this program"
            if embedded
            else ""
        )
        print(
            "troupe: no ray.init() before this call: "
            f"{'started a cluster of this machine' if embedded else 'joined the cluster at ' + context.address}"
            f"{cpus}",
            file=sys.stderr,
            flush=True,
        )


@functools.cache
def starting(name: str) -> Callable[..., Any]:
    """The function of this name of `troupe`, which starts a cluster where there is none.

    It travels as `ray.<name>`.
    """
    function = getattr(importlib.import_module("troupe"), name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if session.current_or_none() is None:
            session.ensure()
        return function(*args, **kwargs)

    call.__module__ = "ray"
    return call
