"""Tasks: remote functions, and the processes that are leased for them."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "RemoteFunction":  # as pickles of 0.1.0 name it
        from troupe._tasks.functions import RemoteFunction

        return RemoteFunction
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
