"""The pipeline that a function with `@dsl.pipeline` is describing: the steps that it has made so
far, and values that stand for later ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

_running = threading.local()


class PipelineInput:
    """An input of the pipeline, as its function has it: its value is known once the pipeline is
    submitted. `value`: what the caller gave, if anything."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def __repr__(self) -> str:
        return f"${{{{parent.inputs.{self.name}}}}}"

    __str__ = __repr__

    def _no_value(self, *_: Any) -> NoReturn:
        raise TypeError(
            f"{self.name} is an input of the pipeline, whose value its steps get when they run: "
            f"@pipeline(non_pipeline_inputs=[{self.name!r}]) "
            "hands the function the value itself"
        )

    __bool__ = __int__ = __float__ = __iter__ = __index__ = __len__ = __lt__ = __gt__ = __le__ = (
        __ge__
    ) = __add__ = __mul__ = _no_value


class Builder:
    """The steps of one pipeline.

    A step is called `NODE_PREFIX` and its number until the function has returned.
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._templates: set[int] = set()  # ids of steps that were called for others

    def add(self, node: Any) -> None:
        """Take a step."""
        self.nodes.append(node)

    def replace(self, node: Any, by: Any) -> None:
        """Put a step in place of another, which it was made of; else take it."""
        self.nodes = [by if each is node else each for each in self.nodes]
        if not any(each is by for each in self.nodes):
            self.nodes.append(by)

    def note_template(self, node: Any) -> None:
        """Leave out a step that was called to make another one, unless a step has its outputs."""
        self._templates.add(id(node))

    def steps(self, used: set[str]) -> dict[str, Any]:
        """Return the steps by their numbered names, without templates that are not among the
        `used`."""
        named = {f"{NODE_PREFIX}{number}": each for number, each in enumerate(self.nodes)}
        return {
            name: each
            for name, each in named.items()
            if id(each) not in self._templates or name in used
        }

    def bound(self, value: Any) -> Any:
        """Return the binding of an input of the pipeline, of a step's output, or of a step with one
        output; any other value as it is."""
        if isinstance(value, PipelineInput):
            return str(value)
        found = self.source(value)
        return value if found is None else f"${{{{parent.jobs.{found[0]}.outputs.{found[1]}}}}}"

    def source(self, value: Any) -> tuple[str, str] | None:
        """Return (step, output) of a step's output, or of a step that has one output alone; None
        for anything else."""
        for number, node in enumerate(self.nodes):
            outputs: Mapping[str, Any] = getattr(node, "trial", node).outputs
            for name, output in outputs.items():
                if output is value or node is value and len(outputs) == 1:
                    return f"{NODE_PREFIX}{number}", name
            if node is value:
                raise TypeError(
                    f"{value!r} has {len(outputs)} outputs: say which, as step.outputs.NAME"
                )
        return None


NODE_PREFIX = "node--"


def current() -> Builder | None:
    """Return the pipeline that this thread's function is describing; None outside of such
    functions."""
    stack = getattr(_running, "stack", None)
    return stack[-1] if stack else None


@contextmanager
def begun() -> Iterator[Builder]:
    """Describe a pipeline in the block; another one may be described inside of it."""
    stack = _running.__dict__.setdefault("stack", [])
    stack.append(Builder())
    try:
        yield stack[-1]
    finally:
        stack.pop()


def bound(value: Any) -> Any:
    """Return the value as a step of the present pipeline has it: see Builder.bound."""
    builder = current()
    return value if builder is None else builder.bound(value)
