"""Arguments of a launch's call: all of them go to the function, by any name; options are given by
`f.options(...)` alone."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def check(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: Iterable[str],
) -> None:
    """Raises the TypeError that the ranks would, before there are any; `options`: names that a
    launch is given elsewhere."""
    signature = _signature(function, follow=False)
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        called = getattr(function, "__name__", "the function")
        meant = [name for name in kwargs if name in options and not _takes(signature, name)]
        hint = "".join(
            f"\n  {name}= as an option of the launch: {called}.options({name}=...)"
            for name in meant
        )
        raise TypeError(f"{called}{signature}: {error}{hint}") from None


def refuse_unclear_timeout(function: Callable[..., Any], timeout: float | None) -> None:
    """Raises TypeError where a run's `timeout=` may have been meant for the function."""
    if timeout is None:
        return
    signature = _signature(function, follow=False)
    if signature is not None and _named(signature, "timeout"):
        called = getattr(function, "__name__", "the function")
        raise TypeError(
            f"run(timeout={timeout!r}) is the limit of the run, and {called}{signature} has a "
            "parameter of that name\n"
            f"  give the function its own by position, or run functools.partial({called}, "
            "timeout=...)"
        )


def split_detach(
    function: Callable[..., Any], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the function's keywords, options): `detach` is the option of earlier versions where the
    function cannot take it."""
    if "detach" not in kwargs or _could_take(function, "detach"):
        return kwargs, {}
    name = getattr(function, "__name__", "f")
    warnings.warn(
        "submit(detach=...) as an option of the launch will not be taken any more: say "
        f"{name}.options(detach=...).submit(...)",
        DeprecationWarning,
        stacklevel=4,
    )
    return {each: value for each, value in kwargs.items() if each != "detach"}, {
        "detach": kwargs["detach"]
    }


def _could_take(function: Callable[..., Any], name: str) -> bool:
    """Return True if a keyword is for the function: it, or the function it wraps and passes all
    keywords to, has a parameter for it."""
    called = _signature(function, follow=False)
    if called is None or _named(called, name):
        return True
    wrapped = _signature(function, follow=True)
    return _takes(called, name) and (wrapped is None or _takes(wrapped, name))


def _signature(function: Callable[..., Any], *, follow: bool) -> inspect.Signature | None:
    """Return the signature of the function itself, or of the function it wraps; None for a builtin
    without one."""
    try:
        return inspect.signature(function, follow_wrapped=follow)
    except (TypeError, ValueError):
        return None


def _named(signature: inspect.Signature, name: str) -> bool:
    parameter = signature.parameters.get(name)
    return parameter is not None and parameter.kind in _BY_NAME


def _takes(signature: inspect.Signature, name: str) -> bool:
    return _named(signature, name) or any(
        each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values()
    )
