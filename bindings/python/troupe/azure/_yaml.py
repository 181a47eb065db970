"""Jobs in YAML files, with the keys of `az ml`. Errors name file and line."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from troupe._code import field_checks, yaml_files
from troupe.azure import _schema
from troupe.azure._command import Command


def load_job(source: Any, *, params_override: Sequence[Mapping[str, Any]] = (), relative_origin: Any = None) -> Any:
    """The command job, or the sweep of command jobs, of a YAML file, checked; paths in it are from the file's folder.

    `params_override`: values in place of the file's, as `[{"inputs.epochs": 3}]`. Raises FileNotFoundError, ValueError (no YAML, with the
    line; an unknown key, with the nearest; a job of another type), TypeError, ImportError where PyYAML is not installed.

        load_job("job.yml")
    """
    path = os.fspath(source)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}")
    fields = _schema.mapping(path, yaml_files.read(path))
    for each in params_override:
        for name, value in each.items():
            yaml_files.set_field(fields, name, value)
    base = os.path.dirname(os.path.abspath(os.fspath(relative_origin) if relative_origin is not None else path))
    try:
        return of_fields(fields, base)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from None


def of_fields(fields: Mapping[str, Any], base: str) -> Any:
    """The job of what a file has. Raises TypeError or ValueError."""
    fields = _schema.mapping("a job", fields)
    kind = fields.get("type") or _of_schema(fields.get("$schema")) or "command"
    if kind == "sweep":
        return _sweep_of(fields, base)
    if kind != "command":
        raise ValueError(f"type is {kind!r}, and only command jobs are run here" + (
            ": each of its jobs can be one by itself" if kind == "pipeline" else ""))
    for name in fields:
        field_checks.known("a command job", name, (*_schema.COMMAND, *_schema.OF_A_FILE))
    return Command(base, **{name: value for name, value in fields.items() if name not in _schema.OF_A_FILE})


def _sweep_of(fields: Mapping[str, Any], base: str) -> Any:
    """A sweep: in its trial's command `${{search_space.lr}}` is the input `lr`, which a trial has its own value of."""
    from troupe.azure._sweep_job import Sweep

    for name in fields:
        field_checks.known("a sweep job", name, (*_schema.SWEEP, *_schema.OF_A_FILE))
    for name in ("trial", "search_space", "objective"):
        if not fields.get(name):
            raise ValueError(f"a sweep job needs {name}")
    space = _schema.mapping("search_space", fields["search_space"])
    trial = _schema.mapping("trial", fields["trial"], (*_schema.COMMAND, *_schema.OF_A_FILE))
    inputs = {**_schema.mapping("inputs", fields.get("inputs")), **_schema.mapping("trial: inputs", trial.get("inputs"))}
    text = field_checks.text("trial: command", trial.get("command")).replace("${{search_space.", "${{inputs.")
    about = {name: fields.get(name) for name in ("resources", "outputs", "experiment_name", "compute") if fields.get(name) is not None}
    job = Command(base, **{**about, **{name: value for name, value in trial.items() if name not in _schema.OF_A_FILE}, "command": text,
                           "inputs": {**dict.fromkeys(space, ""), **inputs}})
    return Sweep(job, space, fields["objective"], sampling_algorithm=fields.get("sampling_algorithm") or "random", limits=fields.get("limits"),
                 early_termination=fields.get("early_termination"), queue_settings=fields.get("queue_settings"),
                 **{name: fields.get(name) for name in ("name", "display_name", "description", "experiment_name", "compute", "tags", "properties")})


def _of_schema(schema: Any) -> str:
    """`.../commandJob.schema.json`: command."""
    name = os.path.basename(str(schema or "")).partition(".")[0]
    return name.removesuffix("Job").removesuffix("Component").lower()
