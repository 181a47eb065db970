"""A pipeline as its driver runs it: steps in one flat graph, with all that is known before the
first one runs. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from troupe.azure import _entities
from troupe.azure._command import Command
from troupe.azure._pipeline import bindings, components, graph
from troupe.azure._pipeline.job import PipelineJob, inputs_of, outputs_of
from troupe.azure._sweep_job import Sweep

MAX_STEPS = 1000


@dataclass(frozen=True)
class StepPlan:
    """The plan of one step.

    `job`: as it stands in a file, its paths from the folder `base`; `code`: the digest of its code,
    "" for none.

    `inputs`: by the names of inputs that other steps write, the step and its output. `outputs`: by
    name, the type.
    """

    job: Mapping[str, Any]
    base: str
    inputs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    is_deterministic: bool = True

    @property
    def type(self) -> str:
        """Return "command" or "sweep"."""
        return str(self.job["type"])

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the steps whose outputs it needs."""
        return tuple(dict.fromkeys(step for step, _ in self.inputs.values()))


@dataclass(frozen=True)
class Plan:
    """All of a pipeline. `outputs`: by name, the step and its output."""

    name: str
    steps: Mapping[str, StepPlan]
    outputs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    continues: bool = False
    force_rerun: bool = False

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """Return the graph."""
        return {name: each.needs for name, each in self.steps.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        return asdict(self)


def read(fields: Mapping[str, Any]) -> Plan:
    """Return the plan that `Plan.to_dict` gave."""
    steps = {
        name: StepPlan(
            **{**each, "inputs": {key: tuple(source) for key, source in each["inputs"].items()}}
        )
        for name, each in fields["steps"].items()
    }
    return Plan(
        **{
            **fields,
            "steps": steps,
            "outputs": {name: tuple(source) for name, source in fields["outputs"].items()},
        }
    )


@dataclass(frozen=True)
class Step:
    """A step of the flat graph: its job with all values in it, and the inputs that other steps
    write."""

    job: Any
    sources: Mapping[str, tuple[str, str]]


def flat(pipeline: PipelineJob) -> tuple[dict[str, Step], dict[str, tuple[str, str]]]:
    """Return (all steps by their names, in an order in which they can run; the sources of the
    pipeline's outputs).

    A step of a pipeline that is a step itself is called OUTER.INNER. Raises ValueError for an input
    without a value, and for too many steps.
    """
    flattened = _Flat()
    values = {name: _rooted(value, pipeline.base_path) for name, value in pipeline.inputs.items()}
    sources = flattened.add(
        pipeline, "", values, _compute(pipeline, None), pipeline.experiment_name
    )
    if len(flattened.steps) > MAX_STEPS:
        raise ValueError(
            f"the pipeline has {len(flattened.steps)} steps, and {MAX_STEPS} is the limit"
        )
    order = graph.order(
        {
            name: [step for step, _ in each.sources.values()]
            for name, each in flattened.steps.items()
        }
    )
    return {name: flattened.steps[name] for name in order}, sources


def _compute(pipeline: PipelineJob, outer: str | None) -> str | None:
    return pipeline.settings.default_compute or pipeline.compute or outer


def _rooted(value: Any, base: str) -> Any:
    """Return an input or output whose path no longer depends on the folder of the pipeline."""
    if getattr(value, "path", None) is None:
        return value
    rooted = copy.copy(value)
    rooted.path = components.absolute(value.path, base)
    return rooted


def _deliver(job: Any, output: str, about: Any) -> None:
    """Give a step's output the place and mode that the pipeline's output says."""
    mine = outputs_of(job)[output]
    mine.path = about.path or mine.path
    mine.mode = about.mode or mine.mode


class _Flat:
    """The flat graph as it is made."""

    def __init__(self) -> None:
        self.steps: dict[str, Step] = {}

    def add(
        self,
        pipeline: PipelineJob,
        prefix: str,
        values: Mapping[str, Any],
        compute: str | None,
        experiment: str | None,
    ) -> dict[str, tuple[str, str]]:
        """Add a pipeline's steps.

        `values`: its inputs, each a value or a tuple (step, output). Returns the sources of its
        outputs.
        """
        inner: dict[str, dict[str, tuple[str, str]]] = {}
        needs = {
            name: [
                each.step
                for each in map(bindings.of, inputs_of(job).values())
                if each is not None and each.step
            ]
            for name, job in pipeline.jobs.items()
        }
        for name in graph.order(needs):
            job = copy.deepcopy(pipeline.jobs[name])
            given = {
                each: self._resolved(value, values, inner, prefix)
                for each, value in inputs_of(job).items()
            }
            if isinstance(job, PipelineJob):
                inner[name] = self.add(
                    job, f"{prefix}{name}.", given, _compute(job, compute), experiment
                )
                continue
            inner[name] = {output: (prefix + name, output) for output in outputs_of(job)}
            job.compute = job.compute or compute
            job.experiment_name = job.experiment_name or experiment
            sources = {each: value for each, value in given.items() if isinstance(value, tuple)}
            for each, value in given.items():
                inputs_of(job)[each] = (
                    _unbound(inputs_of(job)[each], self._type(value)) if each in sources else value
                )
            self.steps[prefix + name] = Step(job, sources)
        sources = {name: inner[step][output] for name, (step, output) in pipeline.sources.items()}
        for name, (step, output) in sources.items():
            if name in pipeline.outputs:
                _deliver(
                    self.steps[step].job,
                    output,
                    _rooted(pipeline.outputs[name], pipeline.base_path),
                )
        return sources

    def _type(self, source: tuple[str, str]) -> str:
        return str(outputs_of(self.steps[source[0]].job)[source[1]].type)

    @staticmethod
    def _resolved(
        value: Any,
        values: Mapping[str, Any],
        inner: Mapping[str, Mapping[str, tuple[str, str]]],
        prefix: str,
    ) -> Any:
        binding = bindings.of(value)
        if binding is None:
            return value
        if binding.step:
            return inner[binding.step][binding.name]
        found = values[binding.name]
        return _with_mode(found, value) if not isinstance(found, tuple) else found


def _with_mode(found: Any, bound: Any) -> Any:
    """Return a pipeline's input as the step has it that binds it: with the step's own mode and
    limits."""
    if not isinstance(bound, _entities.Input) or not isinstance(found, _entities.Input):
        return found.default if isinstance(found, _entities.Input) and found.is_literal else found
    if bound.is_literal:
        return found.default
    return _entities.Input(
        type=found.type, path=found.path, mode=bound.mode or found.mode, optional=bound.optional
    )


def _unbound(declared: Any, kind: str) -> _entities.Input:
    """Return an input that another step writes, whose path is known once that step has ended."""
    if isinstance(declared, _entities.Input):
        return _entities.Input(
            type=declared.type, path=UNKNOWN, mode=declared.mode, optional=declared.optional
        )
    return _entities.Input(type=kind, path=UNKNOWN)


UNKNOWN = "/"
"""Path of an input that is not written yet."""


def job_of(step: StepPlan, name: str, paths: Mapping[str, str]) -> Any:
    """Return the job of a step that runs as `name`.

    `paths`: of its inputs that other steps have written.
    """
    fields = {key: value for key, value in step.job.items() if key not in ("type", "status", "id")}
    if step.type == "sweep":
        trial = Command(
            step.base,
            **{
                key: value
                for key, value in fields.pop("trial").items()
                if key not in ("type", "status", "id")
            },
        )
        job: Any = Sweep(trial, fields.pop("search_space"), fields.pop("objective"), **fields)
    else:
        job = Command(step.base, **fields)
    job.name = name
    for each, path in paths.items():
        inputs_of(job)[each].path = path
    return job
