"""Configurations as the journal has them: JSON that a person can read, and pickles apart for what
is none.

Listing and exporting read the JSON alone, and unpickle nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

OBJECT, TUPLE, DICT = "__object__", "__tuple__", "__dict__"
_OWN = (OBJECT, TUPLE, DICT)


def plain_scalars(value: Any) -> Any:
    """The value with numbers of numpy, and tensors of one element, as Python's own."""
    if isinstance(value, Mapping):
        return {key: plain_scalars(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(plain_scalars(one) for one in value)
    if getattr(value, "shape", None) == () and hasattr(value, "dtype") and hasattr(value, "item"):
        return value.item()
    return value


def encoded(value: Any, keep: Callable[[Any], str]) -> Any:
    """As JSON; `keep(part)` keeps a part that JSON has not, and gives its key.

    Raises what `keep` raises.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [encoded(one, keep) for one in value]
    if type(value) is tuple:
        return {TUPLE: [encoded(one, keep) for one in value]}
    if type(value) is dict:
        if all(type(key) is str and key not in _OWN for key in value):
            return {key: encoded(one, keep) for key, one in value.items()}
        return {DICT: [[encoded(key, keep), encoded(one, keep)] for key, one in value.items()]}
    return {OBJECT: keep(value)}


def decoded(value: Any, load: Callable[[str], Any]) -> Any:
    """Decode an encoded value; `load(key)` returns what `keep` stored."""
    if isinstance(value, list):
        return [decoded(one, load) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, inside),) = value.items()
        if name == OBJECT:
            return load(inside)
        if name == TUPLE:
            return tuple(decoded(one, load) for one in inside)
        if name == DICT:
            return {decoded(key, load): decoded(one, load) for key, one in inside}
    return {key: decoded(one, load) for key, one in value.items()}
