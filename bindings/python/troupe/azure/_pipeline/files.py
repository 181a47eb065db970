"""Pipelines and components in YAML files.

All errors of a pipeline's file and of its components are said at once, each at its place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from troupe._code import field_checks, yaml_files
from troupe._code.yaml_files import Document, Faults, FaultsInside
from troupe.azure import _entities, _schema
from troupe.azure._command import Command
from troupe.azure._pipeline import bindings, components
from troupe.azure._pipeline.components import Component
from troupe.azure._pipeline.job import (
    FIELDS,
    SETTINGS,
    PipelineJob,
    PipelineJobSettings,
    check_bindings,
)
from troupe.azure._yaml import checks, jobs, located

_STEP_KINDS = ("command", "sweep", "pipeline")
_OF_COMPONENT = (
    "name",
    "version",
    "display_name",
    "description",
    "tags",
    "type",
    "$schema",
    "inputs",
    "outputs",
    "is_deterministic",
)
_DEPTH_MAX = 20


def pipeline_of(
    document: Document, faults: Faults, fields: Mapping[str, Any], base: str
) -> PipelineJob:
    """Return the pipeline of a file.

    Raises ValueError with all errors of it and of the files that it names.
    """
    reader = _Reader()
    _refuse_bound(faults, fields, ())
    made = reader.pipeline(
        _Place(document, faults, base),
        fields,
        what="a pipeline job",
        names=(*FIELDS, *_schema.OF_A_FILE, "identity", "services"),
    )
    faults.raise_any(*reader.others)
    assert made is not None
    return made


def component_of(path: str) -> Component:
    """Return the component of a file.

    Raises FileNotFoundError, and ValueError with all errors of it and of the files that it names.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}")
    reader = _Reader()
    found = reader.component(path)
    assert found.faults is not None
    found.faults.raise_any(*(each for each in reader.others if each is not found.faults))
    return found


class _Place:
    """Where fields stand: the file, the place in it, and the folder that its paths are from."""

    def __init__(
        self, document: Document, faults: Faults | FaultsInside, base: str, *inside: str
    ) -> None:
        self.document, self.faults, self.base, self.inside = document, faults, base, inside

    def step(self, *place: str) -> _Place:
        """Return a place below."""
        return _Place(self.document, self.faults.inside(*place), self.base, *self.inside, *place)


class _Reader:
    """Reads a pipeline with the files that it names, each once. `others`: what is wrong in them."""

    def __init__(self) -> None:
        self._files: dict[str, Component] = {}
        self._open: list[str] = []

    @property
    def others(self) -> list[Faults]:
        """Return the errors of the files that were read."""
        return [each.faults for each in self._files.values() if each.faults is not None]

    def pipeline(
        self, at: _Place, fields: Mapping[str, Any], *, what: str, names: tuple[str, ...]
    ) -> PipelineJob | None:
        """Return a pipeline; None where a step of it is wrong, which is recorded."""
        faults, before = at.faults, len(at.faults)
        located.check_known(faults, (), fields, what, names)
        checks.check_shared(faults, (), fields)
        settings = fields.get("settings")
        if settings is not None:
            checks.check_section(faults, ("settings",), settings, PipelineJobSettings, SETTINGS)
        inputs = (
            fields.get("inputs")
            if checks.is_mapping(faults, ("inputs",), fields.get("inputs"))
            else {}
        )
        outputs = (
            fields.get("outputs")
            if checks.is_mapping(faults, ("outputs",), fields.get("outputs"))
            else {}
        )
        checks.check_inputs(faults, ("inputs",), inputs)
        for name, each in outputs.items():
            checks.check_part(
                faults, ("outputs", name), each, _entities.output_of, _entities.OUTPUT
            )
        steps = fields.get("jobs")
        if not steps:
            faults.add(
                ValueError(f"{what} needs jobs: its steps by their names"),
                *(("jobs",) if "jobs" in fields else ()),
            )
            return None
        if not checks.is_mapping(faults, ("jobs",), steps):
            return None
        made = {name: self._step(at, name, each, inputs) for name, each in steps.items()}
        sources = _sources(faults, steps, outputs)
        self._bindings(faults, steps, made, inputs, sources)
        if len(faults) > before or None in made.values():
            return None
        with faults.at():
            return PipelineJob(
                at.base,
                jobs=made,
                inputs={name: _absolute(value, at.base) for name, value in inputs.items()},
                outputs=outputs,
                sources=sources,
                settings=settings,
                **{
                    name: fields[name]
                    for name in FIELDS
                    if fields.get(name) is not None
                    and name not in ("inputs", "outputs", "jobs", "settings")
                },
            )
        return None

    def _step(self, at: _Place, name: Any, fields: Any, values: Mapping[str, Any]) -> Any:
        """Return the job of a step; None where it is wrong."""
        faults, before = at.faults, len(at.faults)
        with faults.at("jobs", name, key=True):
            checks.check_name("jobs", name)
            fields = field_checks.mapping(f"jobs: {name}", fields)
        if len(faults) > before:
            return None
        here = at.step("jobs", name)
        _refuse_bound(here.faults, fields)
        component = fields.get("component")
        if component is not None and "trial" not in fields:
            return self._component_step(here, name, fields, values)
        kind = ""
        with here.faults.at(*(("type",) if "type" in fields else ())):
            kind = components.kind_of(
                f"jobs: {name}: type",
                fields.get("type") or jobs.kind_of_schema(fields.get("$schema")) or "command",
                _STEP_KINDS,
            )
        if kind == "pipeline":
            return self.pipeline(
                here,
                {**fields, "outputs": _plain(fields.get("outputs"))},
                what=f"step {name}",
                names=(*FIELDS, *_schema.OF_A_FILE, "comment"),
            )
        if kind == "sweep":
            return self._sweep_step(here, name, fields)
        if kind == "command":
            plain = {key: value for key, value in fields.items() if key != "comment"}
            plain["outputs"] = _plain(fields.get("outputs"))
            checks.command_job(here.faults, plain)
            return self._made(
                here,
                before,
                lambda: jobs.command_of(
                    _absolute_parts(plain, here.base), here.base, here.document, *here.inside
                ),
            )
        return None

    @staticmethod
    def _made(here: _Place, before: int, make: Any) -> Any:
        if len(here.faults) > before:
            return None
        with here.faults.at():
            return make()
        return None

    def _component_step(
        self, here: _Place, name: str, fields: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Any:
        before = len(here.faults)
        located.check_known(
            here.faults,
            (),
            fields,
            f"step {name}",
            (
                *components.OF_STEP,
                *components.OVERRIDES,
                "inputs",
                "outputs",
                "type",
                "$schema",
                "settings",
                "code",
                "command",
            ),
        )
        for own in ("code", "command"):
            if own in fields:
                here.faults.add(
                    ValueError(f"step {name} has a component, whose {own} it runs"), own, key=True
                )
        if "type" in fields:
            with here.faults.at("type"):
                components.kind_of(f"jobs: {name}: type", fields["type"], _STEP_KINDS)
        component = self._named(here, fields["component"])
        given = (
            fields.get("inputs")
            if checks.is_mapping(here.faults, ("inputs",), fields.get("inputs"))
            else {}
        )
        outputs = (
            fields.get("outputs")
            if checks.is_mapping(here.faults, ("outputs",), fields.get("outputs"))
            else {}
        )
        if component is None:
            return None
        if (
            "type" in fields
            and len(here.faults) == before
            and str(fields["type"]).lower() != component.kind
        ):
            here.faults.add(
                ValueError(
                    f"step {name} is of type {fields['type']}, and its component of type "
                    f"{component.kind}"
                ),
                "type",
            )
        inputs = components.inputs_with(component, given, here.base, here.faults, values)
        made = components.outputs_with(component, outputs, here.base, here.faults)
        return self._made(
            here,
            before,
            lambda: step_of(component, inputs, made, fields, here.document, here.inside),
        )

    def _named(self, here: _Place, component: Any) -> Component | None:
        """Return the component of a step, which names its file or has its fields."""
        if isinstance(component, Mapping):
            return self._checked(here.step("component"), component)
        with here.faults.at("component"):
            text = field_checks.text("component", component)
            components.refuse_registered("component", text)
            path = os.path.normpath(os.path.join(here.base, text.removeprefix("file:")))
            if not os.path.isfile(path):
                raise FileNotFoundError(
                    f"component: there is no file {text}"
                    + ("" if os.path.isabs(text) else f" in {here.base}")
                )
            if os.path.realpath(path) in self._open or len(self._open) > _DEPTH_MAX:
                raise ValueError(f"component: {text} is a pipeline that has itself as a step")
            found = self.component(path)
            return found if not found.faults else None
        return None

    def component(self, path: str) -> Component:
        """Return the component of a file, whose errors are in its `faults`.

        Raises ValueError for what is no YAML.
        """
        real = os.path.realpath(path)
        if real in self._files:
            return self._files[real]
        document = yaml_files.read_document(path)
        faults = Faults(document)
        self._open.append(real)
        fields: dict[str, Any] = {}
        with faults.at():
            fields = checks.fields_of_job(document.value)
        found = (
            self._checked(_Place(document, faults, os.path.dirname(os.path.abspath(path))), fields)
            if not len(faults)
            else None
        )
        self._open.pop()
        found = found or Component("", fields, "")
        found.faults = faults
        self._files[real] = found
        return found

    def _checked(self, at: _Place, fields: Mapping[str, Any]) -> Component | None:
        """Return a component; None where it is wrong, which is recorded."""
        before = len(at.faults)
        kind = ""
        with at.faults.at(*(("type",) if "type" in fields else ())):
            kind = components.kind_of(
                "type",
                fields.get("type") or jobs.kind_of_schema(fields.get("$schema")) or "command",
                components.KINDS,
            )
        if not kind:
            return None
        made = None
        _refuse_bound(at.faults, fields, ())
        if kind == "command":
            checks.command_job(
                at.faults,
                {name: value for name, value in fields.items() if name != "version"},
                what="a command component",
            )
        else:
            made = self.pipeline(
                at, fields, what="a pipeline component", names=(*_OF_COMPONENT, "jobs", "settings")
            )
        if len(at.faults) > before:
            return None
        return Component(
            kind,
            fields,
            at.base,
            at.document,
            pipeline=made,
            inputs=fields.get("inputs") or {},
            outputs=fields.get("outputs") or {},
        )

    def _sweep_step(self, here: _Place, name: str, fields: Mapping[str, Any]) -> Any:
        before, base = len(here.faults), here.base
        trial = fields.get("trial")
        if isinstance(trial, str):
            component = self._named(
                _Place(here.document, _At(here.faults, "trial"), here.base), trial
            )
            if component is None:
                return None
            base = component.base
            trial = {
                key: value
                for key, value in component.fields.items()
                if key not in ("name", "version", "$schema", "type")
            }
        if isinstance(trial, Mapping):
            with here.faults.at("trial"):
                trial, fields = _trial_with(trial, fields, base, here)
        plain = {key: value for key, value in fields.items() if key not in ("comment", "outputs")}
        checks.sweep_job(here.faults, {**plain, "trial": trial})
        return self._made(
            here,
            before,
            lambda: jobs.sweep_of({**plain, "trial": trial}, base, here.document, *here.inside),
        )

    @staticmethod
    def _bindings(
        faults: Faults | FaultsInside,
        steps: Mapping[str, Any],
        made: Mapping[str, Any],
        inputs: Mapping[str, Any],
        sources: Mapping[str, tuple[str, str]],
    ) -> None:
        """Record what is wrong in how the steps are bound; of a step that is wrong itself, by its
        fields."""

        def tell(place: tuple[str, ...], error: Exception) -> None:
            faults.add(error, *place)

        raw = {name: each for name, each in steps.items() if isinstance(each, Mapping)}
        known = {
            name: _entities.input_of(name, each)
            for name, each in inputs.items()
            if _is_input(name, each)
        }
        check_bindings(made, raw, {**dict.fromkeys(inputs), **known}, sources, tell)


def _trial_with(
    trial: Mapping[str, Any], fields: Mapping[str, Any], base: str, here: _Place
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
    outputs, count = _plain(fields.get("outputs")), len(here.faults)
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


class _At:
    """Records errors of a value that stands elsewhere at one place."""

    def __init__(self, faults: Faults | FaultsInside, place: str) -> None:
        self._faults, self._place = faults, place

    def at(self, *_: Any, key: bool = False) -> Any:
        """See Faults."""
        return self._faults.at(self._place)


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


def _refuse_bound(
    faults: Faults | FaultsInside,
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


def _is_input(name: str, value: Any) -> bool:
    try:
        _entities.input_of(name, value)
    except (TypeError, ValueError):
        return False
    return True


def _plain(outputs: Any) -> Any:
    """Return outputs without those that only say where they go to."""
    if not isinstance(outputs, Mapping):
        return {} if outputs is None else outputs
    return {name: None if bindings.is_one(value) else value for name, value in outputs.items()}


def _sources(
    faults: Faults | FaultsInside, steps: Mapping[str, Any], outputs: Mapping[str, Any]
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
                binding = bindings.read(f"outputs: {name}", text)
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


def _absolute(value: Any, base: str) -> Any:
    if isinstance(value, Mapping) and isinstance(value.get("path"), str):
        return {**value, "path": components.absolute(value["path"], base)}
    return value


def _absolute_parts(fields: Mapping[str, Any], base: str) -> dict[str, Any]:
    """Return a step's fields with the paths of its inputs as they are for all."""
    inputs = fields.get("inputs")
    return (
        {**fields, "inputs": {name: _absolute(each, base) for name, each in inputs.items()}}
        if isinstance(inputs, Mapping)
        else dict(fields)
    )
