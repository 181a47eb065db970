"""Parameters of functions, so that a wrong call is refused where it is made.

Plain values: they travel with handles, and as JSON by the head. Without names of types and without
defaults.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

Parameters = Sequence[Sequence[Any]]
"""Of each parameter (name, kind as a number, whether it has a default)."""
Check = Callable[[int, Sequence[str]], None]
_KIND = inspect._ParameterKind
_EMPTY = inspect.Parameter.empty


def of_function(function: Any, *, bound: bool = False) -> Parameters | None:
    """Return the parameters of a function; with `bound`, without the first one (the object).

    None: not known.

    Of what is called: a decorated function has those of its wrapper, whatever it wraps or says of
    itself.
    """
    if inspect.isfunction(function):
        parameters = _of_code(function)
    else:
        try:
            found = inspect.signature(function, follow_wrapped=False).parameters.values()
        except (TypeError, ValueError):
            return None
        parameters = [(each.name, int(each.kind), each.default is not _EMPTY) for each in found]
    if (
        bound
        and parameters
        and parameters[0][1] in (_KIND.POSITIONAL_ONLY, _KIND.POSITIONAL_OR_KEYWORD)
    ):
        parameters = parameters[1:]
    return tuple(parameters)


def _of_code(function: types.FunctionType) -> list[tuple[str, int, bool]]:
    """Return the parameters Python itself uses when it calls the function: functools.wraps and
    `__signature__` do not change them."""
    code = function.__code__
    positional, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    required = positional - len(function.__defaults__ or ())
    found = [
        (
            name,
            int(
                _KIND.POSITIONAL_ONLY
                if number < code.co_posonlyargcount
                else _KIND.POSITIONAL_OR_KEYWORD
            ),
            number >= required,
        )
        for number, name in enumerate(code.co_varnames[:positional])
    ]
    rest = list(code.co_varnames[named:])
    if code.co_flags & inspect.CO_VARARGS:
        found.append((rest.pop(0), int(_KIND.VAR_POSITIONAL), False))
    by_default = function.__kwdefaults__ or {}
    found += [
        (name, int(_KIND.KEYWORD_ONLY), name in by_default)
        for name in code.co_varnames[positional:named]
    ]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append((rest.pop(0), int(_KIND.VAR_KEYWORD), False))
    return found


def of_method(cls: type, name: str) -> Parameters | None:
    """Return the parameters of a method of `cls`, as its caller sees them; None if unknown."""
    found = inspect.getattr_static(cls, name, None)
    if inspect.isfunction(found):
        return of_function(found, bound=True)
    if isinstance(found, staticmethod | classmethod):
        bound = isinstance(found, classmethod)
        inner = found.__func__
        return (
            of_function(inner, bound=bound)
            if inspect.isfunction(inner)
            else of_function(getattr(cls, name))
        )
    return None


class _Left:
    """In the place of a default, which stays where the function is."""

    def __repr__(self) -> str:
        return "..."


_LEFT = _Left()


def check_of(name: str, parameters: Parameters | None, owner: str = "") -> Check | None:
    """Raises TypeError, with the signature, for a call with so many values and keywords of these
    names that the function does not take. None where nothing is known."""
    if parameters is None:
        return None
    try:
        signature = inspect.Signature(
            [
                inspect.Parameter(each, _KIND(kind), default=_LEFT if optional else _EMPTY)
                for each, kind, optional in parameters
            ]
        )
    except (TypeError, ValueError):  # from another version
        return None

    def check(count: int, names: Sequence[str]) -> None:
        try:
            signature.bind(*[None] * count, **dict.fromkeys(names))
        except TypeError as error:
            of = f" of {owner}" if owner else ""
            raise TypeError(
                f"{name}(){of}: {error}\n  it is defined as {name}{signature}"
            ) from None

    return check
