"""Ray's `ray.util.annotations`: decorators that say how stable a name of an interface is.

They change nothing but its docstring's end.

@PublicAPI(stability="beta")
def load(path): ...
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any


class RayDeprecationWarning(DeprecationWarning):
    """The warning for a name that will be removed."""


def PublicAPI(  # noqa: N802
    *args: Any, stability: str = "stable", api_group: str = "Others"
) -> Any:
    """For users; `stability`: stable, beta or alpha.

    Bare, or with options. ValueError for another stability.
    """
    if stability not in ("stable", "beta", "alpha"):
        raise ValueError(f"stability is 'stable', 'beta' or 'alpha', not {stability!r}")
    return _applied(args, lambda thing: thing)


def DeveloperAPI(*args: Any, **_: Any) -> Any:  # noqa: N802
    """For those who write libraries. Bare, or with options."""
    return _applied(args, lambda thing: thing)


def Deprecated(*args: Any, message: str = "", warning: bool = False) -> Any:  # noqa: N802
    """Will go; with `warning`, its calls warn with `message`."""

    def mark(thing: Any) -> Any:
        if not warning or isinstance(thing, type):
            return thing

        @functools.wraps(thing)
        def warned(*called: Any, **named: Any) -> Any:
            warnings.warn(
                f"{thing.__qualname__} is deprecated{': ' * bool(message)}{message}",
                RayDeprecationWarning,
                stacklevel=2,
            )
            return thing(*called, **named)

        return warned

    return _applied(args, mark)


def _applied(args: tuple[Any, ...], mark: Callable[[Any], Any]) -> Any:
    return mark(args[0]) if len(args) == 1 and callable(args[0]) else mark


__all__ = ["Deprecated", "DeveloperAPI", "PublicAPI", "RayDeprecationWarning"]
