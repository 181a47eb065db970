"""The driver of a `@ray_launch(api="ray")`, as it is submitted: the function, which becomes Ray's driver where it arrives."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from troupe import _pickled


class OverRay:
    """Stands for the function in the pickle of a launch; `troupe._ray_cluster.driver` is what it is there."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.__func__ = getattr(function, "__func__", function)  # what it captures is looked for there
        self._function = function

    def __reduce__(self) -> tuple:
        return _pickled.ray_driver, (self._function,)
