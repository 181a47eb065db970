"""`command()`: a command job from its keywords. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe._code import field_checks
from troupe.azure import _schema
from troupe.azure._command import Command
from troupe.azure._pipeline import building


def command(
    *,
    name: str | None = None,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    display_name: str | None = None,
    command: str | None = None,
    experiment_name: str | None = None,
    environment: Any = None,
    environment_variables: Mapping[str, Any] | None = None,
    distribution: Any = None,
    compute: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    instance_count: int | None = None,
    instance_type: str | None = None,
    locations: Any = None,
    docker_args: Any = None,
    shm_size: str | None = None,
    timeout: float | None = None,
    code: Any = None,
    identity: Any = None,
    is_deterministic: bool = True,
    services: Mapping[str, Any] | None = None,
    job_tier: str | None = None,
    priority: str | None = None,
    parent_job_name: str | None = None,
    **unknown: Any,
) -> Command:
    """Makes a command job: what a shell is to run on `instance_count` nodes, with `code` as its
    directory.

    Nothing starts before `MLClient.jobs.create_or_update`. In `command`, `${{inputs.x}}` and
    `${{outputs.x}}` stand for values and paths, and `$[[...]]` for a part that is left out where an
    input in it has no value. `distribution`: how many processes there are and how they find each
    other; without it one on each node. Raises TypeError and ValueError for what cannot be meant,
    with the nearest name.

    The keywords are those of `azure.ai.ml.command`. What each does here: docs/coming/azure.md.

        command(
            code="./src",
            command="python train.py --epochs ${{inputs.epochs}}",
            inputs={"epochs": 3},
            instance_count=2,
            distribution={"type": "PyTorch", "process_count_per_instance": 4},
        )
    """
    for each in unknown:
        raise TypeError(f"command() has no {each}={field_checks.or_nearest(each, _OF_COMMAND)}")
    inputs = (
        {each: building.bound(value) for each, value in inputs.items()}
        if isinstance(inputs, Mapping)
        else inputs
    )
    job = Command(
        name=name,
        description=description,
        tags=tags,
        properties=properties,
        display_name=display_name,
        command=command,
        experiment_name=experiment_name,
        environment=environment,
        environment_variables=environment_variables,
        distribution=distribution,
        compute=compute,
        inputs=inputs,
        outputs=outputs,
        code=code,
        identity=identity,
        is_deterministic=is_deterministic,
        services=services,
        parent_job_name=parent_job_name,
        limits={"timeout": timeout},
        queue_settings={"job_tier": job_tier, "priority": priority},
        resources={
            "instance_count": instance_count,
            "instance_type": instance_type,
            "locations": locations,
            "docker_args": docker_args,
            "shm_size": shm_size,
        },
    )
    builder = building.current()
    if builder is not None:
        builder.add(job)
    return job


_OF_COMMAND = (
    *(each for each in _schema.COMMAND if each not in ("resources", "limits", "queue_settings")),
    "instance_count",
    "instance_type",
    "timeout",
)
