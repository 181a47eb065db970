"""The keys and words of a job, and what is said of those that are none. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from troupe._code import field_checks

COMMAND = (
    "name",
    "description",
    "tags",
    "properties",
    "display_name",
    "command",
    "experiment_name",
    "environment",
    "environment_variables",
    "distribution",
    "compute",
    "inputs",
    "outputs",
    "code",
    "resources",
    "limits",
    "queue_settings",
    "identity",
    "services",
    "is_deterministic",
    "parent_job_name",
)
"""Of a job in a file; `command()` has those of `resources`, `limits` and `queue_settings`
themselves."""
SWEEP = (
    "name",
    "description",
    "tags",
    "properties",
    "display_name",
    "experiment_name",
    "compute",
    "trial",
    "inputs",
    "outputs",
    "search_space",
    "objective",
    "sampling_algorithm",
    "early_termination",
    "limits",
    "queue_settings",
    "resources",
    "identity",
)
"""Of a sweep in a file."""
OF_A_FILE = ("$schema", "type", "version")
RESOURCES = (
    "instance_count",
    "instance_type",
    "locations",
    "properties",
    "docker_args",
    "shm_size",
    "max_instance_count",
)
LIMITS = ("timeout",)
QUEUE = ("job_tier", "priority")
PRIORITIES = {"low": -10, "medium": 0, "high": 10}
TIERS = ("spot", "basic", "standard", "premium", "null")
ASSET_TYPES = ("uri_file", "uri_folder", "mltable", "custom_model", "mlflow_model", "triton_model")
LITERAL_TYPES = ("string", "integer", "number", "boolean")
INPUT_MODES = ("ro_mount", "rw_mount", "download", "direct")
TABLE_MODES = (*INPUT_MODES, "eval_mount", "eval_download")
"""Modes of an input of type mltable."""
OUTPUT_MODES = ("rw_mount", "mount", "upload", "direct")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SIZE = re.compile(r"[1-9][0-9]*[bkmgBKMG]?")
NAME_CHARACTERS_MAX = 255


def mapping(what: str, value: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return a copy of a mapping whose keys are strings, of these names only.

    None is an empty one.
    """
    if value is None:
        return {}
    found = field_checks.mapping(what, value)
    for name in found if names is not None else ():
        field_checks.known(what, name, names or ())
    return found


def is_one_of(value: Any, names: Iterable[str]) -> bool:
    """Return True for one of these names, in any case."""
    return isinstance(value, str) and value.lower() in tuple(names)


def one_of(what: str, value: Any, names: Iterable[str]) -> str:
    """Return one of these names, in lower case. Raises ValueError with the nearest."""
    names = tuple(names)
    if is_one_of(value, names):
        return str(value).lower()
    raise ValueError(f"{what} is {value!r}, which is none{field_checks.or_nearest(value, names)}")


def whole(what: str, value: Any, *, least: int = 1) -> int:
    """Return a whole number of at least `least`, which may stand in quotes."""
    if (
        isinstance(value, float)
        and value.is_integer()
        or isinstance(value, str)
        and re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", value)
    ):
        value = int(value)
    return field_checks.count(what, value, least=least)


def name(what: str, value: Any) -> str:
    """Return a job's name."""
    given = field_checks.text(what, value)
    if len(given) > NAME_CHARACTERS_MAX or _NAME.fullmatch(given) is None:
        raise ValueError(
            f"{what} is {given!r}; a name has letters, digits, '_', '-' and '.', "
            f"{NAME_CHARACTERS_MAX} at most, and begins with a letter or digit"
        )
    return given


def size(what: str, value: Any) -> str:
    """Return the size of shared memory as Docker has it: a number and b, k, m or g."""
    if _SIZE.fullmatch(field_checks.text(what, value)) is None:
        raise ValueError(f"{what} is {value!r}; it is a number and a unit b, k, m or g, such as 2g")
    return str(value)


def mode(what: str, value: Any, kind: str, *, is_output: bool = False) -> str:
    """Return the mode of an input or output of the type `kind`."""
    allowed = OUTPUT_MODES if is_output else TABLE_MODES if kind == "mltable" else INPUT_MODES
    if (
        not is_output
        and kind != "mltable"
        and isinstance(value, str)
        and value.lower() in TABLE_MODES
        and value.lower() not in allowed
    ):
        raise ValueError(
            f"{what} is {value!r}, which is for type mltable; {kind} has {', '.join(allowed)}"
        )
    return one_of(what, value, allowed)


def seconds(what: str, value: Any) -> float | None:
    """Return a timeout in seconds, which may stand in quotes; None: none."""
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,18}\s*", value):
        value = int(value)
    return None if value is None else field_checks.above_zero(what, value, "seconds")
