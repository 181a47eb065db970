"""Components: what a step runs, with declared inputs and outputs, and the job that it becomes with
a step's values. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe._code import field_checks
from troupe._code.yaml_files import Document, Faults, Recorder
from troupe.azure import _entities, _schema
from troupe.azure._pipeline import bindings

KINDS = ("command", "pipeline")
OTHER_KINDS = {
    "automl": "a sweep step (type: sweep) tries values of a command's inputs",
    "spark": "troupe.spark has Spark's entry points for training, and a command step runs any "
    "program",
    "parallel": "a command step with instance_count and a distribution, whose processes each take "
    "their share",
    "import": "a command step that fetches the data and writes it to an output",
    "data_transfer": "a command step that copies the data to an output",
    "do_while": "a command step with the loop in its program",
    "if_else": "a command step with the condition in its program",
    "parallel_for": "one step for each value, or a sweep step (type: sweep)",
    "flow_parallel": "a command step",
    "prompt_flow": "a command step",
}
"""Types of steps and components that are not run here, with what to use instead."""
OF_STEP = ("component", "comment")
OVERRIDES = (
    "compute",
    "environment",
    "environment_variables",
    "resources",
    "distribution",
    "limits",
    "queue_settings",
    "identity",
    "services",
    "name",
    "display_name",
    "description",
    "tags",
    "properties",
    "experiment_name",
    "is_deterministic",
)
"""What a step with a component may say itself."""


def kind_of(what: str, kind: Any, kinds: tuple[str, ...]) -> str:
    """Return one of `kinds`.

    Raises ValueError for any other, with the nearest or what to use instead.
    """
    if isinstance(kind, str) and kind.lower() in OTHER_KINDS:
        raise ValueError(
            f"{what} is {kind!r}, which is not run here: use {OTHER_KINDS[kind.lower()]}"
        )
    return _schema.one_of(what, kind, kinds)


def refuse_registered(what: str, name: str) -> None:
    """Raise ValueError for the name of a component in a workspace or registry."""
    if name.startswith(("azureml:", "azureml://", "azureml//")):
        raise ValueError(
            f"{what} is {name!r}: components are registered nowhere here, give the file that has "
            "it: component: ./train.yml"
        )


@dataclass
class Component:
    """A component of a file, or one that stands in a step.

    `fields`: checked; `base`: the folder that its code's path is from.

    `pipeline`: of one of type pipeline, the PipelineJob that it is.
    """

    kind: str
    fields: Mapping[str, Any]
    base: str
    document: Document | None = None
    faults: Faults | None = None
    pipeline: Any = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)


def inputs_with(
    component: Component,
    given: Mapping[str, Any],
    base: str,
    faults: Recorder,
    values: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a component's inputs with the values of a step, whose paths are from `base`.

    Records what is wrong at ("inputs", NAME).

    `values`: the inputs of the pipeline, by which literals that are bound to them are checked.
    """
    found: dict[str, Any] = {}
    for name in given:
        with faults.at("inputs", name, key=True):
            field_checks.known("the component's inputs", name, component.inputs)
    for name, declared in component.inputs.items():
        if given.get(name) is not None:
            found[name] = None
            with faults.at("inputs", name):
                found[name] = input_with(name, declared, given[name], base, values)
            continue
        about = _entities.input_of(name, declared)
        found[name] = about
        if isinstance(about, _entities.Input) and about.default is None and not about.optional:
            faults.add(
                ValueError(f"the component's input {name} has no value"), "inputs" if given else ()
            )
        elif isinstance(about, _entities.Input) and about.is_literal and about.default is not None:
            found[name] = about.default
    return found


def input_with(name: str, declared: Any, value: Any, base: str, values: Mapping[str, Any]) -> Any:
    """Return a declared input with a value: a literal, a path, a mapping, an Input, or a binding.

    Raises TypeError or ValueError.
    """
    about = _entities.input_of(name, declared)
    binding = bindings.of(value)
    if not isinstance(about, _entities.Input):
        return value
    if about.is_literal:
        if binding is None:
            return literal(
                f"inputs: {name}",
                value.get("value", value.get("default")) if isinstance(value, Mapping) else value,
                about,
            )
        if (
            binding.kind == bindings.INPUT
            and binding.name in values
            and (known := _literal_of(values[binding.name])) is not None
        ):
            literal(f"inputs: {name}: {binding}", known, about)
        return str(binding)
    mode = value.get("mode") if isinstance(value, Mapping) else getattr(value, "mode", None)
    kind = about.type
    if binding is not None:
        return _entities.Input(
            type=kind, path=str(binding), mode=mode or about.mode, optional=about.optional
        )
    if isinstance(value, str | os.PathLike):
        return _entities.Input(
            type=kind,
            path=absolute(field_checks.text(f"inputs: {name}", os.fspath(value)), base),
            mode=about.mode,
        )
    given = _entities.input_of(name, value)
    if not isinstance(given, _entities.Input) or given.is_literal:
        raise TypeError(f"inputs: {name} is of type {kind}, and needs a path, not {value!r}")
    return _entities.Input(
        type=given.type,
        path=None if given.path is None else absolute(given.path, base),
        mode=given.mode or about.mode,
    )


def _literal_of(value: Any) -> Any:
    """Return the literal that a pipeline's input is, as far as it is known; None: it has a path, or
    a pipeline around gives its value."""
    if isinstance(value, Mapping):
        value = value.get("value", value.get("default"))
    return (
        None
        if bindings.is_one(value)
        else value.default
        if isinstance(value, _entities.Input)
        else value
    )


def literal(what: str, value: Any, about: _entities.Input) -> Any:
    """Return a literal of a declared type; texts that are such a number or flag are taken for it.

    Raises TypeError or ValueError.
    """
    if isinstance(value, str) and about.type != "string":
        with_words = {"true": True, "false": False}
        if about.type == "boolean":
            value = with_words.get(value.lower(), value)
        else:
            try:
                value = int(value) if about.type == "integer" else float(value)
            except ValueError:
                pass
    elif about.type == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    elif about.type == "string" and isinstance(value, int | float):
        value = str(value)
    return _entities.literal(what, value, about)


def absolute(path: str, base: str) -> str:
    """Return a path that no longer depends on a folder; an address as it is."""
    scheme, separator, _ = path.partition(":")
    if (
        bindings.is_one(path)
        or separator
        and (path.startswith(f"{scheme}://") or scheme == "azureml")
    ):
        return path
    return os.path.abspath(os.path.join(base, os.path.expanduser(path)))


def outputs_with(
    component: Component, given: Mapping[str, Any], base: str, faults: Recorder
) -> dict[str, _entities.Output]:
    """Return a component's outputs as a step has them, which may say path and mode.

    Records what is wrong at ("outputs", NAME).
    """
    found = {
        name: _entities.output_of(name, declared) for name, declared in component.outputs.items()
    }
    for name, value in given.items():
        with faults.at("outputs", name, key=True):
            field_checks.known("the component's outputs", name, component.outputs)
        if name not in found or value is None or bindings.is_one(value):
            continue
        with faults.at("outputs", name):
            about = _entities.output_of(name, value)
            own = (
                isinstance(value, Mapping)
                and "type" in value
                or isinstance(value, _entities.Output)
            )
            found[name] = _entities.Output(
                type=about.type if own else found[name].type,
                path=None if about.path is None else absolute(about.path, base),
                mode=about.mode or found[name].mode,
            )
    return found
