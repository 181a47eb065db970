"""Jobs in YAML files, with the keys of `az ml`. Errors name file, line and column."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from troupe._code import yaml_files
from troupe.azure import _schema
from troupe.azure._command import Command, Origin
from troupe.azure._yaml import checks


def load_job(source: Any, *, params_override: Sequence[Mapping[str, Any]] = (), relative_origin: Any = None) -> Any:
    """Return the command job, or the sweep of command jobs, of a YAML file, checked. Paths in the file are relative to its folder.

    `params_override`: values in place of the file's, as `[{"inputs.epochs": 3}]`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is no YAML, or anything in it is wrong; all errors at once, each with file, line and column.
        MissingPackageError: if PyYAML is not installed.

        load_job("job.yml")
    """
    path = os.fspath(source)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}")
    document = yaml_files.read_document(path)
    faults = yaml_files.Faults(document)
    fields: dict[str, Any] = {}
    with faults.at():
        fields = checks.fields_of_job(document.value)
    faults.raise_any()
    if document.value is not None:
        for name, value in (item for each in params_override for item in each.items()):
            document.set(name, value)
        fields = document.value
    base = os.path.dirname(os.path.abspath(os.fspath(relative_origin) if relative_origin is not None else path))
    kind = _kind(faults, fields)
    faults.raise_any()
    (checks.sweep_job if kind == "sweep" else checks.command_job)(faults, fields)
    faults.raise_any()
    with faults.at():
        made = _sweep_of(fields, base, document) if kind == "sweep" else _command_of(fields, base, document)
    faults.raise_any()
    return made


def _kind(faults: yaml_files.Faults, fields: Mapping[str, Any]) -> str:
    """Return "command" or "sweep". Any other type is recorded as an error."""
    name = "type" if fields.get("type") is not None else "$schema"
    kind = fields["type"] if name == "type" else _of_schema(fields.get("$schema")) or "command"
    with faults.at(name):
        return checks.kind_of_job(kind)
    return ""


def _command_of(fields: Mapping[str, Any], base: str, document: yaml_files.Document) -> Command:
    job = Command(base, **{name: value for name, value in fields.items() if name not in _schema.OF_A_FILE})
    job.origin = Origin(document)
    return job


def _sweep_of(fields: Mapping[str, Any], base: str, document: yaml_files.Document) -> Any:
    """Return a sweep: in its trial's command `${{search_space.lr}}` is the input `lr`, which a trial has its own value of."""
    from troupe.azure._sweep_job import Sweep

    trial, inputs = checks.parts_of_sweep(fields)
    text = str(trial["command"]).replace("${{search_space.", "${{inputs.")
    about = {name: fields.get(name) for name in ("resources", "outputs", "experiment_name", "compute") if fields.get(name) is not None}
    job = Command(base, **{**about, **{name: value for name, value in trial.items() if name not in _schema.OF_A_FILE}, "command": text,
                           "inputs": {**dict.fromkeys(fields["search_space"], ""), **inputs}})
    job.origin = Origin(document, ("trial",))
    return Sweep(job, fields["search_space"], fields["objective"], sampling_algorithm=fields.get("sampling_algorithm") or "random",
                 limits=fields.get("limits"), early_termination=fields.get("early_termination"), queue_settings=fields.get("queue_settings"),
                 **{name: fields.get(name) for name in ("name", "display_name", "description", "experiment_name", "compute", "tags", "properties")})


def _of_schema(schema: Any) -> str:
    """Return "command" of `.../commandJob.schema.json`."""
    name = os.path.basename(str(schema or "")).partition(".")[0]
    return name.removesuffix("Job").removesuffix("Component").lower()
