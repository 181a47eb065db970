"""The session in which a sweep or a pipeline is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from troupe._cluster import session as _session


@contextmanager
def as_current(session: _session.Session | None) -> Iterator[None]:
    """Make the session the process's own meanwhile; None: leave the one that there is."""
    if session is None:
        yield
        return
    before = _session.set_current(session)
    try:
        yield
    finally:
        _session.set_current(before)
