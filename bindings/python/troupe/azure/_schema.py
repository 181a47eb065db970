"""The keys and words of a job, and what is said of those that are none. Pure."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COMMAND = ("name", "description", "tags", "properties", "display_name", "command", "experiment_name", "environment", "environment_variables",
           "distribution", "compute", "inputs", "outputs", "code", "resources", "limits", "queue_settings", "identity", "services",
           "is_deterministic", "parent_job_name")
"""Of a job in a file; `command()` has those of `resources`, `limits` and `queue_settings` themselves."""
SWEEP = ("name", "description", "tags", "properties", "display_name", "experiment_name", "compute", "trial", "inputs", "outputs", "search_space",
         "objective", "sampling_algorithm", "early_termination", "limits", "queue_settings", "resources", "identity")
"""Of a sweep in a file."""
OF_A_FILE = ("$schema", "type", "version")
RESOURCES = ("instance_count", "instance_type", "locations", "properties", "docker_args", "shm_size", "max_instance_count")
LIMITS = ("timeout",)
QUEUE = ("job_tier", "priority")
PRIORITIES = {"low": -10, "medium": 0, "high": 10}
TIERS = ("spot", "basic", "standard", "premium", "null")
ASSET_TYPES = ("uri_file", "uri_folder", "mltable", "custom_model", "mlflow_model", "triton_model")
LITERAL_TYPES = ("string", "integer", "number", "boolean")
MODES = ("ro_mount", "rw_mount", "mount", "download", "upload", "direct", "eval_mount", "eval_download")


def known(what: str, name: str, names: Iterable[str]) -> None:
    """Raises ValueError for a name that is none of these, with the nearest."""
    names = tuple(names)
    if name not in names:
        raise ValueError(f"{what} has no {name!r}{or_nearest(name, names)}")


def or_nearest(name: str, names: Iterable[str]) -> str:
    """`: did you mean 'inputs'?`, or all of them."""
    import difflib  # which a rank never asks for

    names = [each for each in names if isinstance(each, str)]
    by_lower = {each.lower(): each for each in names}
    near = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.6)
    if near:
        return f": did you mean {by_lower[near[0]]!r}?"
    return f"; it has {', '.join(sorted(names))}" if names else ": it has none"


def mapping(what: str, value: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """A copy of what has to be a dict with texts as keys, of these names only. None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} must be a dict, not {value!r}")
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"{what}: a key must be a text, not {name!r}")
        if names is not None:
            known(what, name, names)
    return dict(value)


def count(what: str, value: Any, *, least: int = 1) -> int:
    """A whole number. Raises TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{what} must be at least {least}, not {value}")
    return value


def text(what: str, value: Any) -> str:
    """A text that is not empty. Raises TypeError or ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a text, not {value!r}")
    if not value.strip():
        raise ValueError(f"{what} is empty")
    return value


def one_of(what: str, value: Any, names: Iterable[str]) -> str:
    """One of these, in any case. Raises ValueError with the nearest."""
    names = tuple(names)
    if isinstance(value, str) and value.lower() in names:
        return value.lower()
    raise ValueError(f"{what} is {value!r}, which is none{or_nearest(str(value), names)}")


def seconds(what: str, value: Any) -> float | None:
    """Of a timeout; None: none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"{what} must be a number of seconds above 0, not {value!r}")
    return float(value)
