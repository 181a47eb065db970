"""A search for the part of a value that cannot be pickled: the path to it, by attributes, keys and
captured names. Pure."""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_DEPTH_MAX = 12
_ENTRIES_MAX = 1000  # limit for one container: in a larger one no entry is looked at


def captured(function: Any) -> Iterator[tuple[str, str, Any]]:
    """(how, name, value) of everything a function takes along: closure, globals, defaults."""
    function = getattr(function, "__func__", function)
    if isinstance(function, type):
        for name, member in vars(function).items():
            if isinstance(member, types.FunctionType):
                yield from captured(member)
            elif not name.startswith("__"):
                yield "captures", name, member
        return
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield "captures", name, cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    for name in sorted(_global_names(code)):
        if name in function.__globals__ and not hasattr(builtins, name):
            yield "captures", name, function.__globals__[name]
    for value in function.__defaults__ or ():
        yield "has a default value", type(value).__name__, value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield "has a default for", name, value


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def locate(name: str, value: Any, at_fault: Callable[[Any, Any], bool]) -> tuple[str, Any]:
    """(way, part): the innermost part of `value`, which is called `name`, that is still at fault,
    as `helper > config['rows'].table`.

    `at_fault(part, whole)` says so of a part of what is at fault. Each value is looked into once.
    """
    way, seen = name, {id(value)}
    for _ in range(_DEPTH_MAX):
        for step, part in _parts_of(value):
            if (
                id(part) not in seen
                and not isinstance(part, types.ModuleType)
                and at_fault(part, value)
            ):
                way, value = way + step, part
                seen.add(id(part))
                break
        else:
            break
    return way, value


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    """(step to it, part) of what a value's pickle holds, as far as it has a name."""
    if isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
        return
    if isinstance(value, functools.partial):
        yield ".func", value.func
        yield from ((f".args[{number}]", each) for number, each in enumerate(value.args))
        yield from ((f".keywords[{name!r}]", each) for name, each in value.keywords.items())
        return
    if isinstance(value, (types.FunctionType, type)):
        yield from ((f" > {name}", each) for _, name, each in captured(value))
        return
    if isinstance(value, (Mapping, list, tuple, set, frozenset)) and len(value) > _ENTRIES_MAX:
        return
    if isinstance(value, Mapping):
        yield from ((f"[{_short(key)}]", each) for key, each in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{number}]", each) for number, each in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from (("{...}", each) for each in value)
    yield from _attributes_of(value)


def _attributes_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that are pickled, leaving out those that the object's own pickling
    leaves out."""
    try:
        reduced = value.__reduce_ex__(5)
    except (
        Exception
    ):  # a program's own way may raise anything; what cannot be taken apart is at fault itself
        return
    state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
    found: dict[str, Any] = {}
    for each in (
        state if isinstance(state, tuple) else (state,)
    ):  # (attributes, slots) of one with both
        if isinstance(each, dict):
            found.update({name: part for name, part in each.items() if isinstance(name, str)})
    yield from ((f".{name}", part) for name, part in found.items())


def _short(key: Any) -> str:
    text = repr(key)
    return text if len(text) <= 40 else text[:37] + "..."
