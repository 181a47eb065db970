"""Jobs in YAML files, with the keys of `az ml`. Errors name file, line and column."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from troupe._code import yaml_files
from troupe.azure._pipeline import files
from troupe.azure._yaml import checks, jobs, sweep_checks


def load_job(
    source: Any, *, params_override: Sequence[Mapping[str, Any]] = (), relative_origin: Any = None
) -> Any:
    """Return the command job, sweep of command jobs or pipeline of a YAML file, checked.

    Paths in the file are relative to its folder.

    `params_override`: values in place of the file's, as `[{"inputs.epochs": 3}]`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is no YAML, or anything in it is wrong; all errors at once, each
            with file, line and column.
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
    base = os.path.dirname(
        os.path.abspath(os.fspath(relative_origin) if relative_origin is not None else path)
    )
    kind = _kind(faults, fields)
    faults.raise_any()
    if kind == "pipeline":
        return files.pipeline_of(document, faults, fields, base)
    (sweep_checks.sweep_job if kind == "sweep" else checks.command_job)(faults, fields)
    faults.raise_any()
    with faults.at():
        made = (
            jobs.sweep_of(fields, base, document)
            if kind == "sweep"
            else jobs.command_of(fields, base, document)
        )
    faults.raise_any()
    return made


def _kind(faults: yaml_files.Faults, fields: Mapping[str, Any]) -> str:
    """Return "command", "sweep" or "pipeline". Any other type is recorded as an error."""
    name = "type" if fields.get("type") is not None else "$schema"
    kind = (
        fields["type"]
        if name == "type"
        else jobs.kind_of_schema(fields.get("$schema")) or "command"
    )
    with faults.at(name):
        return checks.kind_of_job(kind)
    return ""
