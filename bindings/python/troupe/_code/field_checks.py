"""Checks of the fields that people give a job or a workload: each takes the field's name and its
value, and returns the value that is used. Pure.

All raise TypeError for a value of another type, and ValueError for one that the field cannot have;
the message begins with the field's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from troupe._base.checks import or_nearest as or_nearest


def known(what: str, name: str, names: Iterable[str]) -> None:
    """Raise ValueError for a name that is none of these, with the nearest."""
    names = tuple(names)
    if name not in names:
        raise ValueError(f"{what} has no {name!r}{or_nearest(name, names)}")


def text(what: str, value: Any) -> str:
    """Return a string that is not blank."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {value!r}")
    if not value.strip():
        raise ValueError(f"{what} is empty")
    return value


def count(what: str, value: Any, *, least: int = 1) -> int:
    """Return a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{what} must be at least {least}, not {value}")
    return value


def above_zero(what: str, value: Any, unit: str) -> float:
    """Return a number above 0 of `unit`, such as "seconds"."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{what} must be a number of {unit} above 0, not {value!r}")
    if not value > 0:
        raise ValueError(f"{what} must be a number of {unit} above 0, not {value!r}")
    return float(value)


def mapping(what: str, value: Any) -> dict[str, Any]:
    """Return a copy of a mapping whose keys are strings."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} must be a mapping with names as keys, not {value!r}")
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"{what}: a key must be a string, not {name!r}")
    return dict(value)
