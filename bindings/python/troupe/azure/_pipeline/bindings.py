"""`${{parent.inputs.x}}`, `${{parent.jobs.a.outputs.y}}` and `${{parent.outputs.z}}`, by which
steps of a pipeline are bound. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troupe._code import field_checks

INPUT, OUTPUT, STEP_OUTPUT, STEP_INPUT = "inputs", "outputs", "step outputs", "step inputs"
NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_ALL = re.compile(r"\s*\$\{\{(.*?)\}\}\s*", re.S)
_PARENT = re.compile(rf"parent\.(inputs|outputs)\.({NAME})(?:\.path)?")
_STEP = re.compile(rf"parent\.jobs\.({NAME})\.(inputs|outputs)\.({NAME})(?:\.path)?")


@dataclass(frozen=True)
class Binding:
    """The source of a value, or the target of an output. `step`: "" for the pipeline's own."""

    kind: str
    name: str
    step: str = ""

    def __str__(self) -> str:
        return (
            f"${{{{parent.jobs.{self.step}.{self.kind.split()[-1]}.{self.name}}}}}"
            if self.step
            else f"${{{{parent.{self.kind}.{self.name}}}}}"
        )


def is_one(value: Any) -> bool:
    """Return True for a text that is meant as a binding, right or wrong."""
    return isinstance(value, str) and _ALL.fullmatch(value) is not None and "parent" in value


def read(what: str, value: str) -> Binding:
    """Return the binding that a text is. Raises ValueError."""
    whole = _ALL.fullmatch(value)
    words = whole[1].strip() if whole is not None else ""
    if (match := _PARENT.fullmatch(words)) is not None:
        return Binding(match[1], match[2])
    if (match := _STEP.fullmatch(words)) is not None:
        return Binding(STEP_OUTPUT if match[2] == "outputs" else STEP_INPUT, match[3], match[1])
    raise ValueError(
        f"{what}: {value} is no binding: there are ${{{{parent.inputs.NAME}}}}, "
        f"${{{{parent.jobs.STEP.outputs.NAME}}}} and, for an output, "
        "${{parent.outputs.NAME}}"
    )


def of(value: Any) -> Binding | None:
    """Return the binding of an input: of a text, or of the path of a mapping or an Input.

    None: it is a value of its own. Raises ValueError.
    """
    text = (
        value.get("path")
        if isinstance(value, Mapping)
        else getattr(value, "path", None)
        if hasattr(value, "is_literal")
        else value
    )
    return read("it", str(text)) if is_one(text) else None


def check_input(
    what: str,
    binding: Binding,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Mapping[str, Any]],
    own: str,
) -> None:
    """Raise ValueError for a binding of the step `own`'s input that names nothing.

    `outputs`: of each step, by their names.
    """
    if binding.kind == INPUT:
        if binding.name not in inputs:
            raise ValueError(
                f"{what}: {binding}: the pipeline has no input "
                f"{binding.name!r}{field_checks.or_nearest(binding.name, inputs)}"
            )
    elif binding.kind == OUTPUT:
        raise ValueError(
            f"{what}: {binding} is an output of the pipeline: bind the output of the step that "
            f"writes it, ${{{{parent.jobs.STEP.outputs.NAME}}}}"
        )
    elif binding.step == own:
        raise ValueError(f"{what}: {binding} is of the step itself")
    else:
        check_step(what, binding, outputs)


def check_step(what: str, binding: Binding, outputs: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ValueError for a binding to a step, or an output of it, that there is not."""
    if binding.step not in outputs:
        raise ValueError(
            f"{what}: {binding}: the pipeline has no step "
            f"{binding.step!r}{field_checks.or_nearest(binding.step, outputs)}"
        )
    if binding.kind == STEP_INPUT:
        raise ValueError(
            f"{what}: {binding} is another step's input: bind what that input is bound to"
        )
    if binding.name not in outputs[binding.step]:
        raise ValueError(
            f"{what}: {binding}: step {binding.step} has no output "
            f"{binding.name!r}{field_checks.or_nearest(binding.name, outputs[binding.step])}"
        )
