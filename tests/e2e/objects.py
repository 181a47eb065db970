"""What tests of objects share: whether anything is held still."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conftest import eventually

import troupe
from troupe._bridge import native


def nothing_held(figures: Callable[[], dict]) -> Callable[[], bool]:
    return lambda: all(figures()[what] == 0 for what in ("owned", "borrowed", "pool_in_use"))


def all_released(*actors: Any) -> None:
    """Nobody holds an object any more, here and there."""
    eventually(nothing_held(native._object_figures), what="the end of all objects here")
    for made in actors:
        eventually(nothing_held(lambda made=made: troupe.get(made.figures.remote(), timeout=20)),
                   what="the end of all objects there")
