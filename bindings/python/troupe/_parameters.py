"""What a function may be called with, so that a wrong call is refused where it is made.

Plain values: they travel with handles, and as JSON by the head. Without names of types and without defaults.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

Parameters = Sequence[Sequence[Any]]
"""Of each parameter (name, kind as a number, whether it has a default)."""
Check = Callable[[int, Sequence[str]], None]


def of_function(function: Any, *, bound: bool = False) -> Parameters | None:
    """Those of a function; `bound`: without the first, which is the object. None: not known."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if bound and parameters and parameters[0].kind in (inspect.Parameter.POSITIONAL_ONLY,
                                                       inspect.Parameter.POSITIONAL_OR_KEYWORD):
        parameters = parameters[1:]
    return tuple((each.name, int(each.kind), each.default is not inspect.Parameter.empty) for each in parameters)


def of_method(cls: type, name: str) -> Parameters | None:
    """Those of a method of objects of `cls`, as their caller sees it. None: not known."""
    found = inspect.getattr_static(cls, name, None)
    if inspect.isfunction(found):
        return of_function(found, bound=True)
    if isinstance(found, staticmethod | classmethod):
        return of_function(getattr(cls, name))
    return None


class _Left:
    """In the place of a default, which stays where the function is."""

    def __repr__(self) -> str:
        return "..."


_LEFT = _Left()


def check_of(name: str, parameters: Parameters | None, owner: str = "") -> Check | None:
    """Raises TypeError, with the signature, for a call with so many values and keywords of these names that the
    function does not take. None where nothing is known."""
    if parameters is None:
        return None
    try:
        signature = inspect.Signature([
            inspect.Parameter(each, inspect._ParameterKind(kind), default=_LEFT if optional else inspect.Parameter.empty)
            for each, kind, optional in parameters])
    except (TypeError, ValueError):  # from another version
        return None

    def check(count: int, names: Sequence[str]) -> None:
        try:
            signature.bind(*[None] * count, **dict.fromkeys(names))
        except TypeError as error:
            of = f" of {owner}" if owner else ""
            raise TypeError(f"{name}(){of}: {error}\n  it is defined as {name}{signature}") from None

    return check
