"""The driver of a `@ray_launch(api="ray")`, as it is submitted: the function, which becomes Ray's
driver where it arrives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from troupe import _pickled

VARIABLES = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
"""Of all processes of such a launch from their start: Ray reads them when it is imported, as it may
be for what the function refers to."""


class OverRay:
    """Stands for the function in the pickle of a launch; `troupe._ray_cluster.driver` is what it is
    there."""

    def __init__(self, function: Callable[..., Any]) -> None:
        wrapper: Any = self  # nobody calls it
        functools.update_wrapper(wrapper, function)
        self.__func__ = getattr(
            function, "__func__", function
        )  # the captured values are looked up there
        self._function = function

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.ray_driver, (self._function,)


def settled(variables: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """A launch's variables, these among them whatever the caller has. Pure.

    >>> settled([{"name": "RAY_AUTH_MODE", "value": "disabled"}])[0]
    {'name': 'RAY_AUTH_MODE', 'value': 'token'}
    """
    return [
        *(each for each in variables if each["name"] not in VARIABLES),
        *({"name": name, "value": value} for name, value in VARIABLES.items()),
    ]
