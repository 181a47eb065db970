"""Checks of the values in a workload file. Each takes the field's path and its value, and returns the value that is used. Pure."""
from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from troupe import _checks as _option_checks
from troupe.air import _accelerators

NAME_CHARACTERS_MAX = 256
PRIORITIES: Mapping[str, int] = {"BEST_EFFORT": -1, "NORMAL": 0, "CRITICAL": 1}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ ./-]*")


def or_nearest(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean NAME?" for the nearest of `names`, or "; it has ..." with all of them."""
    names = sorted(names)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(names)}"


def anything(_: str, value: Any) -> Any:
    """Return the value as it is."""
    return value


def text(path: str, value: Any) -> str:
    """Return a string that is not blank."""
    if not isinstance(value, str):
        raise TypeError(f"{path} must be a string, not {value!r}")
    if not value.strip():
        raise ValueError(f"{path} is empty")
    return value


def command(path: str, value: Any) -> str:
    """Return a command that bash takes as one argument."""
    if "\0" in text(path, value):
        raise ValueError(f"{path} has a NUL character, which no command can have")
    return value


def name_in(path: str, value: Any, pattern: re.Pattern[str], most: int, allowed: str) -> str:
    """Return a name that matches `pattern` and has at most `most` characters."""
    if len(text(path, value)) > most:
        raise ValueError(f"{path} has {len(value)} characters; {most} is the limit")
    if pattern.fullmatch(value) is None:
        raise ValueError(f"{path} is {value!r}; it may have {allowed}")
    return value


def experiment(path: str, value: Any) -> str:
    """Return the name of an MLflow experiment."""
    return name_in(path, value, re.compile(r"/?" + _NAME.pattern), NAME_CHARACTERS_MAX, "letters, digits, spaces and _ . / -")


def run_name(path: str, value: Any) -> str:
    """Return the name of a run."""
    return name_in(path, value, _NAME, NAME_CHARACTERS_MAX, "letters, digits, spaces and _ . / -")


def key(path: str, value: Any) -> str:
    """Return an idempotency key."""
    try:
        return _option_checks.check_idempotency_key(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from None


def count(path: str, value: Any) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{path} must be a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{path} must be at least 1, not {value}")
    return value


def retries(path: str, value: Any) -> int:
    """Return a whole number of at least 0."""
    return count(path, value) if value != 0 or isinstance(value, bool) else 0


def minutes(path: str, value: Any) -> float:
    """Return a number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{path} must be a number of minutes, not {value!r}")
    if not value > 0:
        raise ValueError(f"{path} must be more than 0 minutes, not {value!r}")
    return float(value)


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
    return text(path, str(value))


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
    return text(path, value)


def inside_paths(path: str, value: Any) -> tuple[str, ...]:
    """Return relative paths that stay inside their folder."""
    if not isinstance(value, list) or not value:
        raise TypeError(f"{path} must be a list of relative paths, not {value!r}")
    for each in value:
        if text(path, each).startswith(("/", "~")) or ".." in each.split("/"):
            raise ValueError(f"{path}: {each!r} leaves root_path; paths are relative, without '..'")
    return tuple(value)


def dependencies(path: str, value: Any) -> str | tuple[str, ...]:
    """Return requirements, or the path of a file with them."""
    if isinstance(value, str):
        return text(path, value)
    if not isinstance(value, list):
        raise TypeError(f"{path} must be a list of requirements or the path of a file, not {value!r}")
    return tuple(text(path, each) for each in value)


def mapping(path: str, value: Any) -> dict[str, Any]:
    """Return a mapping whose keys are strings."""
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{path} must be a mapping with names as keys, not {value!r}")
    return dict(value)


def variables(path: str, value: Any) -> dict[str, str]:
    """Return environment variables. Numbers become text, and a boolean is refused, for its spelling would be a guess."""
    found = {}
    for name, each in mapping(path, value).items():
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
            raise ValueError(f"{path}.{name} must be a reference of the form scope/key, not a value")  # which is not shown: it may be the secret
    return found
