"""Jobs of fields that were checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from troupe._code import yaml_files
from troupe.azure import _schema
from troupe.azure._command import Command, Origin
from troupe.azure._sweep_job import Sweep
from troupe.azure._yaml import sweep_checks


def command_of(
    fields: Mapping[str, Any], base: str, document: yaml_files.Document, *inside: str
) -> Command:
    """Return a command job. `inside`: its place in the file."""
    job = Command(
        base, **{name: value for name, value in fields.items() if name not in _schema.OF_A_FILE}
    )
    job.origin = Origin(document, inside)
    return job


def sweep_of(
    fields: Mapping[str, Any], base: str, document: yaml_files.Document, *inside: str
) -> Any:
    """Return a sweep: in its trial's command `${{search_space.lr}}` is the input `lr`, which a
    trial has its own value of."""
    trial, inputs = sweep_checks.parts_of_sweep(fields)
    text = str(trial["command"]).replace("${{search_space.", "${{inputs.")
    about = {
        name: fields.get(name)
        for name in ("resources", "outputs", "experiment_name", "compute")
        if fields.get(name) is not None
    }
    job = Command(
        base,
        **{
            **about,
            **{name: value for name, value in trial.items() if name not in _schema.OF_A_FILE},
            "command": text,
            "inputs": {**dict.fromkeys(fields["search_space"], ""), **inputs},
        },
    )
    job.origin = Origin(document, (*inside, "trial"))
    return Sweep(
        job,
        fields["search_space"],
        fields["objective"],
        sampling_algorithm=fields.get("sampling_algorithm") or "random",
        limits=fields.get("limits"),
        early_termination=fields.get("early_termination"),
        queue_settings=fields.get("queue_settings"),
        **{
            name: fields.get(name)
            for name in (
                "name",
                "display_name",
                "description",
                "experiment_name",
                "compute",
                "tags",
                "properties",
            )
        },
    )


def kind_of_schema(schema: Any) -> str:
    """Return "command" of `.../commandJob.schema.json`."""
    name = os.path.basename(str(schema or "")).partition(".")[0]
    return name.removesuffix("Job").removesuffix("Component").lower()
