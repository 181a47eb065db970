"""Waits of this process: what goes around each, where its task lends its CPUs meanwhile
(`_tasks.waits`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

around_wait: Any = None
"""In a process for tasks: a context for waits, called with the refs, the timeout and how many of
the refs are to be there."""


def lending(bound: Callable[..., Any]) -> Callable[..., Any]:
    """`bound`, within `around_wait` where it is called with refs that are still to come: it waits
    for them."""
    from troupe._base import calls as _calls

    def call(*args: Any, **kwargs: Any) -> Any:
        if all(type(each) is not _calls.Ref or each.done() for each in (*args, *kwargs.values())):
            return bound(*args, **kwargs)
        refs = [each for each in (*args, *kwargs.values()) if type(each) is _calls.Ref]
        with around_wait(refs, None):
            return bound(*args, **kwargs)

    return call
