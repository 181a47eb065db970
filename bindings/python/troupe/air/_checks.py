"""Checks of the values in a workload file.

Each takes the field's path and its value, and returns the value that is used. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from troupe._base import checks as _option_checks
from troupe._code import field_checks
from troupe.air import _accelerators

NAME_CHARACTERS_MAX = 256
PRIORITIES: Mapping[str, int] = {"BEST_EFFORT": -1, "NORMAL": 0, "CRITICAL": 1}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ ./-]*")


def anything(_: str, value: Any) -> Any:
    """Return the value as it is."""
    return value


def command(path: str, value: Any) -> str:
    """Return a command that bash takes as one argument."""
    if "\0" in field_checks.text(path, value):
        raise ValueError(f"{path} has a NUL character, which no command can have")
    found: str = value
    return found


def name_in(path: str, value: Any, pattern: re.Pattern[str], most: int, allowed: str) -> str:
    """Return a name that matches `pattern` and has at most `most` characters."""
    if len(field_checks.text(path, value)) > most:
        raise ValueError(f"{path} has {len(value)} characters; {most} is the limit")
    if pattern.fullmatch(value) is None:
        raise ValueError(f"{path} is {value!r}; it may have {allowed}")
    found: str = value
    return found


def experiment(path: str, value: Any) -> str:
    """Return the name of an MLflow experiment."""
    return name_in(
        path,
        value,
        re.compile(r"/?" + _NAME.pattern),
        NAME_CHARACTERS_MAX,
        "letters, digits, spaces and _ . / -",
    )


def run_name(path: str, value: Any) -> str:
    """Return the name of a run."""
    return name_in(path, value, _NAME, NAME_CHARACTERS_MAX, "letters, digits, spaces and _ . / -")


def key(path: str, value: Any) -> str:
    """Return an idempotency key."""
    try:
        return _option_checks.check_idempotency_key(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from None


def retries(path: str, value: Any) -> int:
    """Return a whole number of at least 0."""
    return field_checks.count(path, value, least=0)


def minutes(path: str, value: Any) -> float:
    """Return a number above 0."""
    return field_checks.above_zero(path, value, "minutes")


def accelerator(path: str, value: Any) -> _accelerators.AcceleratorType:
    """Return the accelerator type."""
    return _accelerators.parse(path, value)


def priority_class(path: str, value: Any) -> int:
    """Return the launch priority that a class means."""
    if value not in PRIORITIES:
        raise ValueError(f"{path} is {value!r}; it may be {', '.join(PRIORITIES)}")
    return PRIORITIES[value]


def version(path: str, value: Any) -> str:
    """Return a version as text."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f"{path} must be a string or a whole number, not {value!r}")
    return field_checks.text(path, str(value))


def only(word: str) -> Callable[[str, Any], str]:
    """Return a check for a field that has one possible value."""

    def check(path: str, value: Any) -> str:
        if value != word:
            raise ValueError(f"{path} is {value!r}; only {word!r} is known")
        return word

    return check


def remote(path: str, value: Any) -> str:
    """Return the name of a git remote; "" is none."""
    if isinstance(value, bool):
        return "origin" if value else ""
    return field_checks.text(path, value)


def inside_paths(path: str, value: Any) -> tuple[str, ...]:
    """Return relative paths that stay inside their folder."""
    if not isinstance(value, list) or not value:
        raise TypeError(f"{path} must be a list of relative paths, not {value!r}")
    for each in value:
        if field_checks.text(path, each).startswith(("/", "~")) or ".." in each.split("/"):
            raise ValueError(f"{path}: {each!r} leaves root_path; paths are relative, without '..'")
    return tuple(value)


def dependencies(path: str, value: Any) -> str | tuple[str, ...]:
    """Return requirements, or the path of a file with them."""
    if isinstance(value, str):
        return field_checks.text(path, value)
    if not isinstance(value, list):
        raise TypeError(
            f"{path} must be a list of requirements or the path of a file, not {value!r}"
        )
    return tuple(field_checks.text(path, each) for each in value)


def variables(path: str, value: Any) -> dict[str, str]:
    """Return environment variables.

    Numbers become text, and a boolean is refused, for its spelling would be a guess.
    """
    found = {}
    for name, each in field_checks.mapping(path, value).items():
        if _VARIABLE.fullmatch(name) is None:
            raise ValueError(f"{path}: {name!r} is no name of an environment variable")
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise TypeError(f"{path}.{name} must be a string, not {each!r}; quote it: '{each}'")
        found[name] = str(each)
    return found


def secrets(path: str, value: Any) -> dict[str, str]:
    """Return secrets' references, `scope/key`, by the variable that gets the value."""
    found = variables(path, value)
    for name, each in found.items():
        if _SECRET.fullmatch(each) is None or any(part in (".", "..") for part in each.split("/")):
            raise ValueError(
                f"{path}.{name} must be a reference of the form scope/key, not a value"
            )  # not shown: it may be the secret
    return found
