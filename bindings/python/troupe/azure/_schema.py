"""The keys and words of a job, and what is said of those that are none. Pure."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from troupe._code import field_checks

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


def mapping(what: str, value: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return a copy of a mapping whose keys are strings, of these names only. None is an empty one."""
    if value is None:
        return {}
    found = field_checks.mapping(what, value)
    for name in found if names is not None else ():
        field_checks.known(what, name, names or ())
    return found


def one_of(what: str, value: Any, names: Iterable[str]) -> str:
    """Return one of these names, in lower case. Raises ValueError with the nearest."""
    names = tuple(names)
    if isinstance(value, str) and value.lower() in names:
        return value.lower()
    raise ValueError(f"{what} is {value!r}, which is none{field_checks.or_nearest(value, names)}")


def seconds(what: str, value: Any) -> float | None:
    """Return a timeout in seconds; None: none."""
    return None if value is None else field_checks.above_zero(what, value, "seconds")
