"""Pipelines and components in YAML files.

All errors of a pipeline's file and of its components are said at once, each at its place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from troupe._code import field_checks, yaml_files
from troupe._code.yaml_files import Document, Faults, Recorder
from troupe.azure import _entities, _schema
from troupe.azure._pipeline import components
from troupe.azure._pipeline.components import Component
from troupe.azure._pipeline.file_parts import (
    At,
    Place,
    absolute_parts,
    absolute_path,
    is_input,
    plain_outputs,
    read_sources,
    refuse_bound,
    step_of,
    trial_with,
)
from troupe.azure._pipeline.job import (
    FIELDS,
    SETTINGS,
    PipelineJob,
    PipelineJobSettings,
    check_bindings,
)
from troupe.azure._yaml import checks, jobs, located, sweep_checks

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
    refuse_bound(faults, fields, ())
    made = reader.pipeline(
        Place(document, faults, base),
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
        self, at: Place, fields: Mapping[str, Any], *, what: str, names: tuple[str, ...]
    ) -> PipelineJob | None:
        """Return a pipeline; None where a step of it is wrong, which is recorded."""
        faults, before = at.faults, len(at.faults)
        located.check_known(faults, (), fields, what, names)
        checks.check_shared(faults, (), fields)
        settings = fields.get("settings")
        if settings is not None:
            checks.check_section(faults, ("settings",), settings, PipelineJobSettings, SETTINGS)
        inputs = checks.mapping_of(faults, "inputs", fields)
        outputs = checks.mapping_of(faults, "outputs", fields)
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
        sources = read_sources(faults, steps, outputs)
        self._bindings(faults, steps, made, inputs, sources)
        if len(faults) > before or None in made.values():
            return None
        with faults.at():
            return PipelineJob(
                at.base,
                jobs=made,
                inputs={name: absolute_path(value, at.base) for name, value in inputs.items()},
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

    def _step(self, at: Place, name: Any, fields: Any, values: Mapping[str, Any]) -> Any:
        """Return the job of a step; None where it is wrong."""
        faults, before = at.faults, len(at.faults)
        with faults.at("jobs", name, key=True):
            checks.check_name("jobs", name)
            fields = field_checks.mapping(f"jobs: {name}", fields)
        if len(faults) > before:
            return None
        here = at.step("jobs", name)
        refuse_bound(here.faults, fields)
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
                {**fields, "outputs": plain_outputs(fields.get("outputs"))},
                what=f"step {name}",
                names=(*FIELDS, *_schema.OF_A_FILE, "comment"),
            )
        if kind == "sweep":
            return self._sweep_step(here, name, fields)
        if kind == "command":
            plain = {key: value for key, value in fields.items() if key != "comment"}
            plain["outputs"] = plain_outputs(fields.get("outputs"))
            checks.command_job(here.faults, plain, needs_environment=False)
            return self._made(
                here,
                before,
                lambda: jobs.command_of(
                    absolute_parts(plain, here.base), here.base, here.document, *here.inside
                ),
            )
        return None

    @staticmethod
    def _made(here: Place, before: int, make: Any) -> Any:
        if len(here.faults) > before:
            return None
        with here.faults.at():
            return make()
        return None

    def _component_step(
        self, here: Place, name: str, fields: Mapping[str, Any], values: Mapping[str, Any]
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
        given = checks.mapping_of(here.faults, "inputs", fields)
        outputs = checks.mapping_of(here.faults, "outputs", fields)
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

    def _named(self, here: Place, component: Any) -> Component | None:
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
            self._checked(Place(document, faults, os.path.dirname(os.path.abspath(path))), fields)
            if not len(faults)
            else None
        )
        self._open.pop()
        found = found or Component("", fields, "")
        found.faults = faults
        self._files[real] = found
        return found

    def _checked(self, at: Place, fields: Mapping[str, Any]) -> Component | None:
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
        refuse_bound(at.faults, fields, ())
        if kind == "command":
            checks.command_job(
                at.faults,
                {name: value for name, value in fields.items() if name != "version"},
                what="a command component",
                needs_environment=False,
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

    def _sweep_step(self, here: Place, name: str, fields: Mapping[str, Any]) -> Any:
        before, base = len(here.faults), here.base
        trial = fields.get("trial")
        if isinstance(trial, str):
            component = self._named(
                Place(here.document, At(here.faults, "trial"), here.base), trial
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
                trial, fields = trial_with(trial, fields, base, here)
        plain = {key: value for key, value in fields.items() if key not in ("comment", "outputs")}
        sweep_checks.sweep_job(here.faults, {**plain, "trial": trial}, needs_environment=False)
        return self._made(
            here,
            before,
            lambda: jobs.sweep_of({**plain, "trial": trial}, base, here.document, *here.inside),
        )

    @staticmethod
    def _bindings(
        faults: Recorder,
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
            if is_input(name, each)
        }
        check_bindings(made, raw, {**dict.fromkeys(inputs), **known}, sources, tell)
