"""Actors as their callers have them: classes, handles, options, retries, streams."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "ActorClass":  # as pickles of 0.1.0 name it
        from troupe._actors.classes import ActorClass

        return ActorClass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
