"""Parts of pipelines in YAML files: where they stand, steps of components, how they are bound."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from troupe._code import field_checks
from troupe._code.yaml_files import Document, Recorder
from troupe.azure import _entities
from troupe.azure._command import Command
from troupe.azure._pipeline import bindings, components
from troupe.azure._pipeline.components import Component
from troupe.azure._pipeline.job import (
    FIELDS,
    PipelineJob,
)
from troupe.azure._yaml import checks, jobs


class Place:
    """A place in a file: the file, the position in it, and the folder that its paths are relative
    to."""

    def __init__(self, document: Document, faults: Recorder, base: str, *inside: str) -> None:
        self.document, self.faults, self.base, self.inside = document, faults, base, inside

    def step(self, *place: str) -> Place:
        """Return a place below."""
        return Place(self.document, self.faults.inside(*place), self.base, *self.inside, *place)


def trial_with(
    trial: Mapping[str, Any], fields: Mapping[str, Any], base: str, here: Place
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a sweep step's trial with the step's values of its inputs and outputs, and the step's
    fields without these. Raises TypeError or ValueError."""
    checks.is_mapping(here.faults, ("trial", "inputs"), trial.get("inputs"))
    given, declared, space = (
        {} if not isinstance(value, Mapping) else value
        for value in (fields.get("inputs"), trial.get("inputs"), fields.get("search_space"))
    )
    inputs = components.inputs_with(
        Component(
            "command",
            {},
            base,
            inputs={key: each for key, each in declared.items() if key not in space},
        ),
        {key: each for key, each in given.items() if key in declared},
        here.base,
        here.faults,
        {},
    )
    rest = (
        {key: each for key, each in given.items() if key not in declared}
        if isinstance(fields.get("inputs"), Mapping)
        else fields.get("inputs")
    )
    outputs, count = plain_outputs(fields.get("outputs")), len(here.faults)
    if checks.is_mapping(here.faults, ("outputs",), outputs):
        for name, each in outputs.items():
            checks.check_part(
                here.faults, ("outputs", name), each, _entities.output_of, _entities.OUTPUT
            )
    outputs = outputs if len(here.faults) == count else {}
    known = Component(
        "command", {}, base, outputs={**dict.fromkeys(outputs), **(trial.get("outputs") or {})}
    )
    made = {
        **trial,
        "inputs": {key: each for key, each in inputs.items() if each is not None},
        "outputs": components.outputs_with(known, outputs, here.base, here.faults),
    }
    return made, {**fields, "inputs": rest}


class At:
    """Records errors of a value that stands elsewhere at one place."""

    def __init__(self, faults: Recorder, place: str) -> None:
        self._faults, self._place = faults, place

    def __len__(self) -> int:
        return len(self._faults)

    def add(self, error: Exception, *_: Any, key: bool = False) -> None:
        """See Recorder."""
        self._faults.add(error, self._place)

    def at(self, *_: Any, key: bool = False) -> AbstractContextManager[None]:
        """See Recorder."""
        return self._faults.at(self._place)

    def inside(self, *_: Any) -> At:
        """See Recorder."""
        return self


def step_of(
    component: Component,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    fields: Mapping[str, Any],
    document: Document | None,
    inside: tuple[str, ...],
) -> Any:
    """Return the job of a step that runs a component with these inputs and outputs, and with what
    its own `fields` say."""
    own = {name: fields[name] for name in components.OVERRIDES if fields.get(name) is not None}
    if component.pipeline is not None:
        made = component.pipeline
        settings = {**made.settings.to_dict(), **(fields.get("settings") or {})}
        return PipelineJob(
            component.base,
            jobs=made.jobs,
            inputs=inputs,
            outputs=outputs,
            sources=made.sources,
            settings=settings,
            **{name: value for name, value in own.items() if name in FIELDS},
        )
    kept = {
        name: value
        for name, value in component.fields.items()
        if name not in ("name", "version", "type", "$schema", "inputs", "outputs")
    }
    both = {**kept, **own, "inputs": inputs, "outputs": outputs}
    both["resources"] = {**(kept.get("resources") or {}), **_mapping_of(own.get("resources"))}
    both["environment_variables"] = {
        **(kept.get("environment_variables") or {}),
        **(own.get("environment_variables") or {}),
    }
    if document is None:
        return Command(component.base, **both)
    return jobs.command_of(both, component.base, document, *inside)


def _mapping_of(value: Any) -> dict[str, Any]:
    return (
        dict(value) if isinstance(value, Mapping) else value.to_dict() if value is not None else {}
    )


def refuse_bound(
    faults: Recorder,
    fields: Mapping[str, Any],
    parts: tuple[str, ...] = ("inputs", "outputs"),
) -> None:
    """Record each field that is bound and may not be.

    `parts`: those of which each may be bound, as a whole.
    """
    left: list[tuple[tuple[str, ...], Any]] = [
        ((name,), value) for name, value in fields.items() if name not in ("component", "jobs")
    ]
    while left:
        place, value = left.pop()
        if isinstance(value, Mapping):
            left += [((*place, str(name)), each) for name, each in value.items()]
        elif isinstance(value, list):
            left += [((*place, str(index)), each) for index, each in enumerate(value)]
        elif (
            isinstance(value, str)
            and place[-1] != "command"
            and "${{parent." in value.replace("${{ ", "${{")
            and not (place[0] in parts and bindings.is_one(value))
        ):
            faults.add(
                ValueError(
                    f"{': '.join(place)} is {value!r}: a step's input or output is bound, as a "
                    "whole, and nothing else"
                ),
                *place,
            )


def is_input(name: str, value: Any) -> bool:
    try:
        _entities.input_of(name, value)
    except (TypeError, ValueError):
        return False
    return True


def plain_outputs(outputs: Any) -> Any:
    """Return outputs without those that only say where they go to."""
    if not isinstance(outputs, Mapping):
        return {} if outputs is None else outputs
    return {name: None if bindings.is_one(value) else value for name, value in outputs.items()}


def read_sources(
    faults: Recorder, steps: Mapping[str, Any], outputs: Mapping[str, Any]
) -> dict[str, tuple[str, str]]:
    """Return the steps' outputs that are the pipeline's, and record outputs that two steps write or
    none."""
    found: dict[str, tuple[str, str]] = {}
    for step, fields in steps.items():
        given = fields.get("outputs") if isinstance(fields, Mapping) else None
        for name, value in given.items() if isinstance(given, Mapping) else ():
            text = value.get("path") if isinstance(value, Mapping) else value
            if not bindings.is_one(text):
                continue
            place = ("jobs", step, "outputs", name)
            with faults.at(*place):
                binding = bindings.read(f"outputs: {name}", str(text))
                if binding.kind != bindings.OUTPUT:
                    raise ValueError(
                        f"outputs: {name}: {binding} is no output of the pipeline: "
                        f"${{{{parent.outputs.NAME}}}} is"
                    )
                if binding.name not in outputs:
                    raise ValueError(
                        f"outputs: {name}: {binding}: the pipeline has no output "
                        f"{binding.name!r}{field_checks.or_nearest(binding.name, outputs)}"
                    )
                if binding.name in found:
                    raise ValueError(
                        f"outputs: {name}: {binding} is written by step {found[binding.name][0]} "
                        "already"
                    )
                found[binding.name] = (step, name)
    for name in outputs:
        if name not in found:
            faults.add(
                ValueError(
                    f"outputs: {name}: no step writes it: one of them has it as "
                    f"${{{{parent.outputs.{name}}}}}"
                ),
                "outputs",
                name,
                key=True,
            )
    return found


def absolute_path(value: Any, base: str) -> Any:
    if isinstance(value, Mapping) and isinstance(value.get("path"), str):
        return {**value, "path": components.absolute(value["path"], base)}
    return value


def absolute_parts(fields: Mapping[str, Any], base: str) -> dict[str, Any]:
    """Return a step's fields with the paths of its inputs as they are for all."""
    inputs = fields.get("inputs")
    return (
        {**fields, "inputs": {name: absolute_path(each, base) for name, each in inputs.items()}}
        if isinstance(inputs, Mapping)
        else dict(fields)
    )
