"""`PipelineJob`: a pipeline as people write it, in a file or by `@dsl.pipeline`, checked. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from troupe._code import field_checks
from troupe.azure import _entities, _schema
from troupe.azure._entities import Named
from troupe.azure._jobs.job import Described
from troupe.azure._pipeline import bindings, graph
from troupe.azure._pipeline.bindings import Binding

FIELDS = (
    "name",
    "display_name",
    "description",
    "experiment_name",
    "tags",
    "properties",
    "compute",
    "inputs",
    "outputs",
    "jobs",
    "settings",
)
SETTINGS = ("default_compute", "default_datastore", "continue_on_step_failure", "force_rerun")
_FILES = ("uri_file",)
_FOLDERS = ("uri_folder", "mltable")


class PipelineJobSettings:
    """Settings of a pipeline.

    `default_datastore` is taken, and means nothing.

    `continue_on_step_failure`: after a failed step, steps that do not need its outputs still run;
    False unless given. `force_rerun`: run each step, also where an equal one has left its outputs;
    False unless given.

        PipelineJobSettings(default_compute="cpu-cluster", force_rerun=True)
    """

    def __init__(
        self,
        *,
        default_compute: str | None = None,
        default_datastore: str | None = None,
        continue_on_step_failure: bool | None = None,
        force_rerun: bool | None = None,
    ) -> None:
        self.default_compute = (
            None
            if default_compute is None
            else field_checks.text("default_compute", default_compute)
        )
        self.default_datastore = (
            None
            if default_datastore is None
            else field_checks.text("default_datastore", default_datastore)
        )
        self.continue_on_step_failure = _flag("continue_on_step_failure", continue_on_step_failure)
        self.force_rerun = _flag("force_rerun", force_rerun)

    def __setattr__(self, name: str, value: Any) -> None:
        field_checks.known("settings", name, SETTINGS)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"PipelineJobSettings({said})"

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that are given."""
        return {name: value for name, value in vars(self).items() if value is not None}


def _flag(what: str, value: Any) -> bool | None:
    words = {"true": True, "false": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{what} must be true or false, not {value!r}")
    return value


class PipelineJob(Described):
    """A pipeline: `jobs` are its steps by their names, each a command job, a sweep or a pipeline,
    whose inputs may be bindings.

    `sources`: by each output's name, the step and its output that it is. What `load_job` and
    functions with `@dsl.pipeline` give.
    """

    type = "pipeline"
    studio_url: str | None = None
    services: Mapping[str, Any] = {}
    name: str | None
    display_name: str | None
    description: str | None
    experiment_name: str | None
    compute: str | None
    tags: Any
    properties: Any

    def __init__(
        self,
        base_path: str = "",
        *,
        jobs: Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        sources: Mapping[str, tuple[str, str]] | None = None,
        settings: Any = None,
        **about: Any,
    ) -> None:
        self.base_path = base_path or os.getcwd()
        self.id: str | None = None
        self.status: str | None = None
        for name in FIELDS[:7]:
            setattr(self, name, about.get(name))
        self.inputs = Named(
            {
                name: _entities.input_of(name, value)
                for name, value in _schema.mapping("inputs", inputs).items()
            }
        )
        self.outputs = Named(
            {
                name: _entities.output_of(name, value)
                for name, value in _schema.mapping("outputs", outputs).items()
            }
        )
        self.jobs: Named = Named(jobs)
        self.sources = dict(sources or {})
        for name, (step, output) in self.sources.items():
            if (
                name not in self.outputs
                and step in self.jobs
                and output in outputs_of(self.jobs[step])
            ):
                self.outputs[name] = _entities.Output(type=outputs_of(self.jobs[step])[output].type)
        self.settings = _entities.part(PipelineJobSettings, "settings", settings, SETTINGS)

    def __repr__(self) -> str:
        name = self.name or self.display_name or "without a name"
        status = f" {self.status}" if self.status else ""
        return f"<pipeline job {name}{status}: {', '.join(self.jobs)}>"

    def set_default_compute(self, name: str | None) -> None:
        """Set the compute of steps that name none. Raises TypeError or ValueError."""
        self.settings.default_compute = name

    def to_dict(self) -> dict[str, Any]:
        """Return what is set of the pipeline, as it would stand in a file."""
        found: dict[str, Any] = {"type": self.type}
        for name in FIELDS[:7]:
            if getattr(self, name) not in (None, {}, ""):
                found[name] = getattr(self, name)
        for name, parts in (("inputs", self.inputs), ("outputs", self.outputs)):
            if parts:
                found[name] = {
                    each: about.to_dict() if hasattr(about, "to_dict") else about
                    for each, about in parts.items()
                }
        found["jobs"] = {name: self._step_to_dict(name, each) for name, each in self.jobs.items()}
        if self.settings.to_dict():
            found["settings"] = self.settings.to_dict()
        return {**found, **({"status": self.status, "id": self.id} if self.status else {})}

    def _step_to_dict(self, name: str, job: Any) -> dict[str, Any]:
        found = job.to_dict()
        bound = {
            output: f"${{{{parent.outputs.{mine}}}}}"
            for mine, (step, output) in self.sources.items()
            if step == name
        }
        return {**found, "outputs": {**found.get("outputs", {}), **bound}} if bound else found

    def check(self) -> None:
        """Check all that can be said without a cluster.

        Raises TypeError or ValueError, naming the step.
        """
        if self.name is not None:
            _schema.name("name", self.name)
        for name in ("display_name", "description", "experiment_name", "compute"):
            if getattr(self, name) is not None:
                field_checks.text(name, getattr(self, name))
        for name, value in self.inputs.items():
            self.inputs[name] = _entities.input_of(name, value)
        problems: list[str] = []
        check_bindings(
            self.jobs,
            {},
            self.inputs,
            self.sources,
            lambda place, error: problems.append(f"{'.'.join(place)}: {error}"),
        )
        if len(problems) == 1:
            raise ValueError(problems[0])
        if problems:
            raise ValueError("\n  ".join([f"the pipeline has {len(problems)} errors", *problems]))


def inputs_of(job: Any) -> Named:
    """Return the inputs of a step."""
    inputs: Named = job.inputs
    return inputs


def outputs_of(job: Any) -> Named:
    """Return the outputs of a step."""
    outputs: Named = job.outputs
    return outputs


def check_bindings(
    jobs: Mapping[str, Any],
    raw: Mapping[str, Mapping[str, Any]],
    values: Mapping[str, Any],
    sources: Mapping[str, tuple[str, str]],
    tell: Callable[[tuple[str, ...], Exception], None],
) -> None:
    """Tell each error in how a pipeline's steps are bound, with its place in the pipeline.

    `jobs`: the steps, None for one that is wrong itself and has only its fields, in `raw`.
    `values`: the pipeline's inputs.
    """
    outputs = {
        name: outputs_of(job) if job is not None else _part_of(raw.get(name), "outputs")
        for name, job in jobs.items()
    }
    needs: dict[str, dict[str, None]] = {name: {} for name in jobs}
    wrong = {name for name, job in jobs.items() if job is None}
    for step, job in jobs.items():
        for name, value in (
            inputs_of(job) if job is not None else _part_of(raw.get(step), "inputs")
        ).items():
            try:
                binding = bindings.of(value)
                if binding is None:
                    continue
                if binding.step not in wrong:  # a step whose outputs are not known
                    bindings.check_input(f"inputs: {name}", binding, values, outputs, step)
                if binding.step:
                    needs[step][binding.step] = None
                if not {binding.step, step} & wrong:
                    _check_kinds(
                        f"inputs: {name}",
                        value,
                        binding,
                        outputs[binding.step][binding.name]
                        if binding.step
                        else values[binding.name],
                    )
            except ValueError as error:
                tell(("jobs", step, "inputs", name), error)
    for name, (step, output) in sources.items():
        try:
            if step not in wrong:
                bindings.check_step(
                    f"outputs: {name}", Binding(bindings.STEP_OUTPUT, output, step), outputs
                )
        except ValueError as error:
            tell(("outputs", name), error)
    try:
        graph.order(
            {
                name: [each for each in needed if each in needs and each != name]
                for name, needed in needs.items()
            }
        )
    except graph.CycleError as error:
        tell(("jobs", error.names[0]), error)


def _part_of(fields: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    found = (fields or {}).get(name)
    return dict(found) if isinstance(found, Mapping) else {}


def _check_kinds(what: str, value: Any, binding: Binding, source: Any) -> None:
    """Raise ValueError where a file is bound to a folder, or a value without a path to either."""
    if not isinstance(value, _entities.Input):
        return
    kind = getattr(source, "type", "")
    if value.is_literal or not kind or kind in _schema.LITERAL_TYPES:
        if not value.is_literal:
            raise ValueError(
                f"{what} is of type {value.type}, and {binding} is {source!r}, which has no path"
            )
        return
    if value.type in _FILES and kind in _FOLDERS or value.type in _FOLDERS and kind in _FILES:
        raise ValueError(f"{what} is of type {value.type}, and {binding} of type {kind}")
