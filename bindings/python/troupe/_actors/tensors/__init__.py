"""Tensors that stay in the actor whose method returned them, while a ref of the result travels
(docs/guides/tensors.md)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

_thread = threading.local()


@contextlib.contextmanager
def left_where_they_are() -> Iterator[None]:
    """Leave tensors where they are while this thread loads values only to pass them on or look at
    them."""
    before = are_left()
    _thread.left = True
    try:
        yield
    finally:
        _thread.left = before


def are_left() -> bool:
    """Return True if this thread loads values to pass them on."""
    return getattr(_thread, "left", False)
