"""The fields of a workload file, in one table.

The checks and the help of `troupe air run -h config` are made from it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe._code import field_checks
from troupe._code.yaml_files import Faults
from troupe.air import _checks


@dataclass(frozen=True)
class Field:
    """A field: its name, the type that people read, its documentation, and its check.

    `check` takes the field's path and its value, and returns the value in the form that the program
    uses; it raises ValueError or TypeError. `section`: the fields inside, where the value is a
    mapping. `unused`: why the field has no effect here, "" where it has one.
    """

    name: str
    type: str
    text: str
    check: Callable[[str, Any], Any] = _checks.anything
    required: bool = False
    section: tuple[Field, ...] = field(default=())
    unused: str = ""


_GIT = (
    Field(
        "branch",
        "string",
        "Branch whose latest commit is taken. Not together with `commit`.",
        field_checks.text,
    ),
    Field(
        "commit", "string", "Commit that is taken. Not together with `branch`.", field_checks.text
    ),
    Field(
        "remote",
        "boolean or string",
        "With `branch`: take the branch of this remote; `true` is origin.",
        _checks.remote,
    ),
)
_SNAPSHOT = (
    Field(
        "root_path",
        "string",
        "Folder of this machine that the command finds in $CODE_SOURCE_PATH. A relative path "
        "starts at the file's own folder.",
        field_checks.text,
        required=True,
    ),
    Field(
        "include_paths",
        "list of strings",
        "Take only these files and folders of `root_path`. Relative, without `..`.",
        _checks.inside_paths,
    ),
    Field(
        "git",
        "mapping",
        "Take what is committed there, instead of the files as they are now.",
        section=_GIT,
    ),
)
_CODE_SOURCE = (
    Field("type", "string", "Only `snapshot` is known.", _checks.only("snapshot")),
    Field(
        "snapshot",
        "mapping",
        "The fields below may stand in here as well as directly in `code_source`.",
        section=_SNAPSHOT,
    ),
    *(
        Field(each.name, each.type, each.text, each.check, section=each.section)
        for each in _SNAPSHOT
    ),
)
_COMPUTE = (
    Field(
        "num_accelerators",
        "integer",
        "GPUs of all nodes. A multiple of the GPUs per node of `accelerator_type`.",
        field_checks.count,
        required=True,
    ),
    Field(
        "accelerator_type",
        "string",
        "GPU_<GPUs per node>x<GPU model>, such as GPU_8xH100. Case matters.",
        _checks.accelerator,
        required=True,
    ),
    Field(
        "pool_id",
        "string",
        "Use the nodes that were started with the label gpu_pool=ID.",
        field_checks.text,
    ),
    Field(
        "priority_class",
        "string",
        "Place in the queue: BEST_EFFORT, NORMAL or CRITICAL. Needs `pool_id`.",
        _checks.priority_class,
    ),
)
_ENVIRONMENT = (
    Field(
        "version",
        "string or integer",
        "Version of the managed environment.",
        _checks.version,
        unused="what is installed on the nodes is what runs",
    ),
    Field(
        "dependencies",
        "list of strings or path",
        "Requirements that are installed for this workload, or a file with them (.yaml with a list "
        "or "
        "`dependencies:`, or requirements.txt).",
        _checks.dependencies,
    ),
    Field("env_variables", "mapping", "Environment variables of the command.", _checks.variables),
    Field(
        "secret_env_variables",
        "mapping",
        "Environment variables whose values are secrets: VARIABLE: scope/key.",
        _checks.secrets,
    ),
    Field(
        "docker_image",
        "string or mapping",
        "Image of a container. Not together with `version` and `dependencies`.",
        unused="the command runs on the nodes, not in a container",
    ),
    Field(
        "unity_catalog_image",
        "string",
        "Image of a container. Not together with `version` and `dependencies`.",
        unused="the command runs on the nodes, not in a container",
    ),
)
WORKLOAD = (
    Field(
        "experiment_name",
        "string",
        "MLflow experiment of the run. It is created where there is none of that name.",
        _checks.experiment,
        required=True,
    ),
    Field("run_name", "string", "Name of the run.", _checks.run_name),
    Field("compute", "mapping", "GPUs that the workload runs on.", required=True, section=_COMPUTE),
    Field(
        "command",
        "string",
        "Bash command or script that every node runs once.",
        _checks.command,
        required=True,
    ),
    Field(
        "environment", "mapping", "What is installed and set for the command.", section=_ENVIRONMENT
    ),
    Field(
        "env_variables",
        "mapping",
        "Environment variables of the command; the same as environment.env_variables.",
        _checks.variables,
    ),
    Field(
        "secret_env_variables",
        "mapping",
        "The same as environment.secret_env_variables.",
        _checks.secrets,
    ),
    Field(
        "code_source", "mapping", "Code that the command finds on every node.", section=_CODE_SOURCE
    ),
    Field(
        "hyperparameters",
        "mapping",
        "Values that the command reads from the YAML file $HYPERPARAMETERS_PATH.",
        field_checks.mapping,
    ),
    Field("parameters", "mapping", "The same as `hyperparameters`.", field_checks.mapping),
    Field(
        "max_retries",
        "integer",
        "Times that a failed workload is started again. Default: 3.",
        _checks.retries,
    ),
    Field(
        "timeout_minutes",
        "number",
        "Minutes after which the workload is cancelled. Default: none.",
        _checks.minutes,
    ),
    Field("idempotency_token", "string", "The same as --idempotency-key, which wins.", _checks.key),
    Field(
        "permissions",
        "list",
        "Who may see and manage the run.",
        unused="whoever may use the cluster may see its runs",
    ),
    Field("usage_policy_id", "string", "Whom the run is billed to.", unused="nothing is billed"),
    Field("usage_policy_name", "string", "Whom the run is billed to.", unused="nothing is billed"),
)


def find(path: str) -> tuple[str, tuple[Field, ...], Field | None]:
    """Return (canonical path, fields below it, the field itself) for a path such as
    "config.compute.accelerator_type".

    The field is None for "config", which is the file itself.

    Raises:
        ValueError: if there is no such field; the error names the nearest one.
    """
    first, *names = path.split(".")
    if first != "config":
        names = [first, *names]
    inside: tuple[Field, ...] = WORKLOAD
    found: Field | None = None
    walked = "config"
    for name in names:
        found = _named(walked, name, inside)
        walked, inside = f"{walked}.{name}", found.section
    return walked, inside, found


def _named(where: str, name: str, fields: tuple[Field, ...]) -> Field:
    for each in fields:
        if each.name == name:
            return each
    raise ValueError(
        f"{where} has no {name!r}{field_checks.or_nearest(name, [each.name for each in fields])}"
    )


def checked(given: Any, faults: Faults) -> dict[str, Any]:
    """Return the values of a whole file that are right.

    What is wrong is recorded with its place: unknown fields, missing ones, and wrong values.
    """
    return _checked((), given, WORKLOAD, faults)


def _checked(
    place: tuple[str, ...], given: Any, fields: tuple[Field, ...], faults: Faults
) -> dict[str, Any]:
    where = ".".join(place)
    if not isinstance(given, Mapping):
        faults.add(
            TypeError(
                f"{where or 'the file'} must be a mapping of fields, not {type(given).__name__}"
            ),
            *place,
        )
        return {}
    for name in given:
        with faults.at(*place, name, key=True):
            _named(where or "the file", str(name), fields)
    missing = [each.name for each in fields if each.required and given.get(each.name) is None]
    if missing:
        faults.add(ValueError(f"{where or 'the file'} needs {' and '.join(missing)}"), *place)
    found = {}
    for each in fields:
        value = given.get(each.name)
        if value is None:
            continue
        inside = (*place, each.name)
        with faults.at(*inside):
            found[each.name] = (
                _checked(inside, value, each.section, faults)
                if each.section
                else each.check(".".join(inside), value)
            )
    return found


def unused(given: Mapping[str, Any]) -> list[str]:
    """Return a sentence part for each field of a checked file that has no effect here."""
    said = [
        f"{each.name} ({each.unused})" for each in WORKLOAD if each.unused and each.name in given
    ]
    inside = given.get("environment", {})
    return said + [
        f"environment.{each.name} ({each.unused})"
        for each in _ENVIRONMENT
        if each.unused and each.name in inside
    ]


def help_of(path: str) -> str:
    """Return the reference of a field, or of all fields of a section, as text for a terminal."""
    where, inside, itself = find(path)
    lines = (
        [where]
        if itself is None
        else [
            f"{where}  ({itself.type}{', required' if itself.required else ''})",
            f"  {itself.text}",
        ]
    )
    if itself is not None and itself.unused:
        lines.append(f"  Accepted, without an effect: {itself.unused}.")
    if inside:
        lines.append("")
        width = max(len(each.name) for each in inside)
        for each in inside:
            lines.append(
                f"  {each.name:<{width}}  {each.type}{' (required)' if each.required else ''}"
            )
            lines.append(f"  {'':<{width}}    {each.text}")
    if any(each.section for each in inside):
        lines += [
            "",
            "A section: troupe air run -h "
            f"{where}.{next(each.name for each in inside if each.section)}",
        ]
    return "\n".join(lines)
