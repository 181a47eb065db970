"""Command jobs as people write them, checked, whatever they were written as. Pure."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from troupe._code import field_checks, yaml_files
from troupe.azure import _distributions, _entities, _expressions, _schema
from troupe.azure._jobs.job import Described, plain
from troupe.azure._jobs.services import STUDIO
from troupe.azure._pipeline import bindings, building


class Origin:
    """The file that a job was read from: says where in it a field stands.

    `inside`: the place of the job in the file, such as ("trial",).
    """

    def __init__(self, document: yaml_files.Document, inside: tuple[str, ...] = ()) -> None:
        self._document, self._inside = document, inside

    def where(self, *place: str) -> str:
        """Return FILE:LINE:COLUMN of the job's field."""
        inside = (*self._inside, *place)
        return self._document.where(inside if inside in self._document.keys else place)


def _has_own_text(error: Exception) -> bool:
    """Return True if the error's class makes its text of other arguments than a text."""
    cls = type(error)
    return cls.__module__ != "builtins" and "__init__" in vars(cls)


class Command(Described):
    """A command job: what `command()`, `load_job` and `MLClient.jobs` give.

    Its attributes are those that `command()` has as keywords.

    `resources`, `limits` and `queue_settings` are objects of their own. `status` and `id` are what
    the cluster said when it was last asked. `studio_url`: its page, a file on this host, once
    it was submitted. Calling it with values of inputs makes another one: `job(epochs=3)`.
    """

    type = "command"
    studio_url: str | None = None
    name: str | None
    description: str | None
    tags: dict[str, Any]
    properties: dict[str, Any]
    display_name: str | None
    command: str
    experiment_name: str | None
    environment: Any
    environment_variables: dict[str, str]
    distribution: _distributions.Distribution | None
    compute: str | None
    code: Any
    resources: _entities.JobResourceConfiguration
    limits: _entities.CommandJobLimits
    queue_settings: _entities.QueueSettings
    identity: Any
    services: dict[str, Any]
    is_deterministic: bool | None
    parent_job_name: str | None

    def __init__(self, base_path: str = "", **fields: Any) -> None:
        self.base_path = base_path or os.getcwd()  # base of relative paths
        self.id: str | None = None
        self.status: str | None = None
        self.swept: dict[str, Any] = {}  # inputs that a sweep is to give values
        self.origin: Origin | None = None  # None: no file has it
        self.component_name = ""  # after which a pipeline's step is called that has no other name
        self.resources = _entities.part(
            _entities.JobResourceConfiguration,
            "resources",
            fields.pop("resources", None),
            _schema.RESOURCES,
        )
        self.limits = _entities.part(
            _entities.CommandJobLimits, "limits", fields.pop("limits", None), _schema.LIMITS
        )
        self.queue_settings = _entities.part(
            _entities.QueueSettings,
            "queue_settings",
            fields.pop("queue_settings", None),
            _schema.QUEUE,
        )
        for name in _schema.COMMAND:
            if name not in ("resources", "limits", "queue_settings", "inputs", "outputs"):
                setattr(self, name, fields.get(name))
        self.inputs = _entities.Named(_schema.mapping("inputs", fields.get("inputs")))
        self.outputs = _entities.Named(_schema.mapping("outputs", fields.get("outputs")))
        self.check()  # converts the arguments to their types

    def __repr__(self) -> str:
        name = self.name or self.display_name or "without a name"
        return f"<command job {name}{f' {self.status}' if self.status else ''}: {self.command!r}>"

    def __call__(self, **inputs: Any) -> Command:
        """Another job with these values of its inputs, or, for `sweep`, with what their values are
        drawn from.

        Raises TypeError or ValueError for a name that is none of its inputs, and for what is no
        value of one.
        """
        from troupe.azure._sweep_spaces import SweepDistribution

        made = copy.deepcopy(self)
        made.name, made.id, made.status, made.creation_context = None, None, None, None
        made.component_name = self.component_name or self.name or ""
        builder = building.current()
        for name, value in inputs.items():
            field_checks.known("the job's inputs", name, self.inputs)
            about = self.inputs[name]
            made.swept.pop(name, None)
            value = building.bound(value)
            if builder is not None and bindings.is_one(value):
                made.inputs[name] = _entities.bound_input(about, value)
                continue
            if isinstance(value, SweepDistribution):
                made.swept[name] = value
                continue
            if (
                isinstance(about, _entities.Input)
                and about.is_literal
                and not isinstance(value, _entities.Input)
            ):
                value = _entities.literal(f"inputs: {name}", value, about)
            made.inputs[name] = _entities.input_of(name, value)
        made.check()
        if builder is not None:
            builder.note_template(self)
            builder.add(made)
        return made

    @property
    def component(self) -> JobComponent:
        """The job as a component: what `command(...).component` of a script gives to
        `ml_client.create_or_update`."""
        return JobComponent(self)

    @contextmanager
    def located(self, *place: str) -> Iterator[None]:
        """Put the file's name, line and column of a field in front of what the block raises:
        ValueError, TypeError, FileNotFoundError and their like."""
        try:
            yield
        except (ValueError, TypeError, OSError) as error:
            if self.origin is None or _has_own_text(error):
                raise
            raise type(error)(f"{self.origin.where(*place)}: {error}") from None

    @property
    def parameters(self) -> dict[str, Any]:
        """The inputs that are literals."""
        return {
            name: value
            for name, value in self.inputs.items()
            if not isinstance(value, _entities.Input)
        }

    @property
    def instance_count(self) -> int:
        """How many nodes it runs on."""
        return self.resources.instance_count or 1

    @instance_count.setter
    def instance_count(self, value: int) -> None:
        self.set_resources(instance_count=value)

    def set_resources(
        self,
        *,
        instance_type: str | None = None,
        instance_count: int | None = None,
        properties: Mapping[str, Any] | None = None,
        docker_args: Any = None,
        shm_size: str | None = None,
        locations: Any = None,
    ) -> None:
        """Sets what is given of the job's resources. Raises TypeError or ValueError."""
        given = {
            "instance_type": instance_type,
            "instance_count": instance_count,
            "properties": properties,
            "docker_args": docker_args,
            "shm_size": shm_size,
            "locations": locations,
        }
        self.resources = _entities.JobResourceConfiguration(
            **{
                **self.resources.to_dict(),
                **{name: value for name, value in given.items() if value is not None},
            }
        )

    def set_limits(self, *, timeout: float) -> None:
        """Seconds that the job has, from when it is submitted. Raises ValueError."""
        self.limits = _entities.CommandJobLimits(timeout=timeout)

    def set_queue_settings(
        self, *, job_tier: str | None = None, priority: str | None = None
    ) -> None:
        """Set the job's priority in the cluster's queue: low, medium or high. Raises ValueError."""
        self.queue_settings = _entities.QueueSettings(job_tier=job_tier, priority=priority)

    def sweep(
        self,
        *,
        primary_metric: str,
        goal: str,
        sampling_algorithm: Any = "random",
        compute: str | None = None,
        max_concurrent_trials: int | None = None,
        max_total_trials: int | None = None,
        timeout: float | None = None,
        trial_timeout: float | None = None,
        early_termination_policy: Any = None,
        search_space: Mapping[str, Any] | None = None,
        identity: Any = None,
        queue_settings: Any = None,
        job_tier: str | None = None,
        priority: str | None = None,
    ) -> Any:
        """A sweep of this job over the inputs that it was called with a distribution for, and those
        of `search_space`.

        `primary_metric`: what the trials log by mlflow or report. `sampling_algorithm`: "random",
        "grid" (of Choices) or "bayesian". `early_termination_policy`: a policy, or its name. Raises
        TypeError and ValueError, with the nearest name.

            job(lr=Uniform(0.01, 0.1)).sweep(
                primary_metric="accuracy", goal="maximize", max_total_trials=20
            )
        """
        from troupe.azure import _sweep_job

        queue = (
            queue_settings
            if queue_settings is not None
            else {
                name: value
                for name, value in (("job_tier", job_tier), ("priority", priority))
                if value is not None
            }
        )
        limits = {
            "max_concurrent_trials": max_concurrent_trials,
            "max_total_trials": max_total_trials,
            "timeout": timeout,
            "trial_timeout": trial_timeout,
        }
        made = _sweep_job.of_command(
            self,
            primary_metric=primary_metric,
            goal=goal,
            sampling_algorithm=sampling_algorithm,
            compute=compute,
            search_space=search_space,
            early_termination_policy=early_termination_policy,
            limits=limits,
            queue_settings=queue,
        )
        builder = building.current()
        if builder is not None:
            builder.replace(self, made)
        return made

    def check(self, *, is_complete: bool = False) -> None:
        """Check what can be said of the job without a cluster.

        Raises TypeError or ValueError; `jobs.create_or_update` does so again, for a job may be
        changed after it was made. `is_complete`: also that each Input has its path or value, which
        a call of the job may still give.
        """
        field_checks.text("command", self.command)
        self.distribution = _distributions.of(self.distribution)
        self.environment_variables = {
            name: "" if value is None else value if isinstance(value, str) else str(value)
            for name, value in _schema.mapping(
                "environment_variables", self.environment_variables
            ).items()
        }
        self.inputs = _entities.Named(
            {
                name: _entities.input_of(name, value)
                for name, value in _schema.mapping("inputs", self.inputs).items()
            }
        )
        self.outputs = _entities.Named(
            {
                name: _entities.output_of(name, value)
                for name, value in _schema.mapping("outputs", self.outputs).items()
            }
        )
        self.resources = _entities.part(
            _entities.JobResourceConfiguration, "resources", self.resources, _schema.RESOURCES
        )
        self.limits = _entities.part(
            _entities.CommandJobLimits, "limits", self.limits, _schema.LIMITS
        )
        for name in ("tags", "properties", "services"):
            setattr(self, name, _schema.mapping(name, getattr(self, name)))
        for name in ("name", "display_name", "description", "experiment_name", "compute"):
            if getattr(self, name) is not None:
                (_schema.name if name == "name" else field_checks.text)(name, getattr(self, name))
        self.templates(is_complete=is_complete)

    def templates(self, *, is_complete: bool = True) -> dict[str, _expressions.Template]:
        """Return the templates of the command, under "", and of each variable, under its name.

        Raises ValueError for an expression that names nothing, and for an input that is named
        outside of $[[ ]] and has no value.
        """
        texts = {"": self.command, **self.environment_variables}
        found = {
            name: _expressions.read(
                text,
                f"environment_variables: {name}" if name else "command",
                self.inputs,
                self.outputs,
            )
            for name, text in texts.items()
        }
        needed = set().union(*(_expressions.named(each, required=True) for each in found.values()))
        for name, value in self.inputs.items():
            if name in self.swept:
                continue
            missing = (
                value is None
                or isinstance(value, _entities.Input)
                and (value.default if value.is_literal else value.path) is None
            )
            if missing and (
                _expressions.Place("inputs", name) in needed or not getattr(value, "optional", True)
            ):
                if value is None:
                    raise ValueError(
                        f"inputs: {name} has no value; one that may have none stands in $[[...]] "
                        "in the command"
                    )
                if is_complete:
                    with self.located("inputs", name):
                        raise ValueError(
                            f"inputs: {name} has no value: give it one, as job({name}=...) does"
                        )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, as they would stand in a file."""
        found: dict[str, Any] = {"type": "command"}
        for name in _schema.COMMAND:
            value = getattr(self, name)
            if name in ("inputs", "outputs"):
                value = {
                    each: about.to_dict() if hasattr(about, "to_dict") else about
                    for each, about in value.items()
                }
            elif name == "services":
                value = {each: plain(about) for each, about in value.items() if each != STUDIO}
            elif hasattr(value, "to_dict"):
                value = value.to_dict()
            if value not in (None, {}, ""):
                found[name] = value
        return {**found, **({"status": self.status, "id": self.id} if self.status else {})}


class JobComponent:
    """A command job as a component: called with values of its inputs it makes a job, or a step of a
    pipeline. It is registered nowhere."""

    type = "command"
    is_component = True
    version = "1"

    def __init__(self, job: Command) -> None:
        self._job = job
        self.name, self.display_name, self.description = (
            job.name or job.display_name or "command",
            job.display_name,
            job.description,
        )
        self.inputs, self.outputs = job.inputs, job.outputs

    def __call__(self, **inputs: Any) -> Command:
        """Return a job with these values. Raises TypeError or ValueError."""
        return self._job(**inputs)
