"""`@pipeline` and `load_component`: pipelines as Python functions describe them."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from troupe._code import field_checks
from troupe.azure import _entities
from troupe.azure._entities import Named
from troupe.azure._pipeline import bindings, building, components, file_parts, files
from troupe.azure._pipeline.building import PipelineInput
from troupe.azure._pipeline.components import Component
from troupe.azure._pipeline.job import PipelineJob, inputs_of
from troupe.azure._sweep_spaces import SweepDistribution

_SETTINGS = {
    "compute": "default_compute",
    "default_compute": "default_compute",
    "default_compute_target": "default_compute",
    "default_datastore": "default_datastore",
    "continue_on_step_failure": "continue_on_step_failure",
    "force_rerun": "force_rerun",
}
_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class CommandComponent:
    """A component: called with values of its inputs it makes a step, or outside of a pipeline's
    function a job.

    train = load_component("./train.yml")
    step = train(data=prep.outputs.clean, epochs=3)
    """

    is_component = True

    def __init__(
        self,
        *,
        name: str | None = None,
        version: str | None = None,
        display_name: str | None = None,
        description: str | None = None,
        tags: Mapping[str, str] | None = None,
        command: str | None = None,
        code: Any = None,
        environment: Any = None,
        distribution: Any = None,
        resources: Any = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        is_deterministic: bool = True,
    ) -> None:
        given = {
            "name": name,
            "version": version,
            "display_name": display_name,
            "description": description,
            "tags": tags,
            "command": command,
            "code": code,
            "environment": environment,
            "distribution": distribution,
            "resources": resources,
            "is_deterministic": is_deterministic,
        }
        declared = {each: _entities.input_of(each, value) for each, value in (inputs or {}).items()}
        made = {each: _entities.output_of(each, value) for each, value in (outputs or {}).items()}
        field_checks.text("command", command)
        self._fill(
            Component(
                "command",
                {key: value for key, value in given.items() if value is not None},
                os.getcwd(),
                inputs=declared,
                outputs=made,
            ),
            name or "command",
        )

    @classmethod
    def of(cls, component: Component, source: str) -> CommandComponent:
        """Return the component of a file."""
        made = cls.__new__(cls)
        made._fill(component, source)
        return made

    def _fill(self, component: Component, source: str) -> None:
        self._component, self._source = component, source
        about = component.fields
        self.name: str = str(about.get("name") or "")
        self.version: str = str(about.get("version") or "1")
        self.type = component.kind
        self.display_name, self.description = about.get("display_name"), about.get("description")
        self.inputs = Named(component.inputs)
        self.outputs = Named(component.outputs)

    def __repr__(self) -> str:
        return f"<component {self.name or self._source}>"

    def __call__(self, *args: Any, **inputs: Any) -> Any:
        """Return a step with these values.

        Raises TypeError or ValueError for a name that is no input, and for a value that is none.
        """
        if len(args) > len(self._component.inputs):
            raise TypeError(
                f"{self!r} has {len(self._component.inputs)} inputs, and was given {len(args)} "
                "values"
            )
        given = {**dict(zip(self._component.inputs, args, strict=False)), **inputs}
        builder = building.current()
        known = {
            each.name: each.value
            for each in given.values()
            if isinstance(each, PipelineInput)
            and each.value is not None
            and not bindings.is_one(each.value)
        }
        given = {name: building.bound(value) for name, value in given.items() if value is not None}
        swept = {
            name: value
            for name, value in given.items()
            if isinstance(value, SweepDistribution) and name in self._component.inputs
        }
        fixed = replace(
            self._component,
            inputs={
                name: each for name, each in self._component.inputs.items() if name not in swept
            },
        )
        faults = _Raises(repr(self))
        found = components.inputs_with(
            fixed,
            {name: value for name, value in given.items() if name not in swept},
            os.getcwd(),
            faults,
            known,
        )
        made = file_parts.step_of(
            self._component,
            {**found, **dict.fromkeys(swept, "")},
            components.outputs_with(self._component, {}, os.getcwd(), faults),
            {},
            None,
            (),
        )
        made.component_name = self.name
        if swept:
            made.swept.update(swept)
        if builder is not None:
            builder.add(made)
        return made


class _Raises:
    """Raises the first error, with the name of what is wrong, where a reader of files would record
    it."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __len__(self) -> int:
        return 0

    def add(self, error: Exception, *_: Any, key: bool = False) -> None:
        """Raise the error."""
        raise type(error)(f"{self._what}: {error}")

    @contextmanager
    def at(self, *_: Any, key: bool = False) -> Iterator[None]:
        """Raise what the block raises."""
        try:
            yield
        except (TypeError, ValueError) as error:
            self.add(error)

    def inside(self, *_: Any) -> _Raises:
        """Return itself: what is raised names no place."""
        return self


def load_component(
    source: Any, *, relative_origin: Any = None, params_override: Sequence[Mapping[str, Any]] = ()
) -> CommandComponent:
    """Return the component of a YAML file, checked.

    Its code's path is from the file's folder.

    Raises FileNotFoundError, and ValueError with all errors of the file, each with line and column;
    NotImplementedError for `params_override`.

        train = load_component("./train.yml")
    """
    del relative_origin
    if params_override:
        raise NotImplementedError(
            "load_component(params_override=) is not there: change the step instead, as "
            "step.environment_variables = {...}"
        )
    path = os.fspath(source)
    return CommandComponent.of(files.component_of(path), path)


def pipeline(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    version: str | None = None,
    display_name: str | None = None,
    description: str | None = None,
    experiment_name: str | None = None,
    tags: Mapping[str, str] | None = None,
    non_pipeline_inputs: Sequence[str] = (),
    **settings: Any,
) -> Any:
    """Make a function that describes a pipeline: called with values, it returns a PipelineJob.

    In the function each call of a command job, a component or another such function is a step,
    called as the variable that it is assigned to. Its arguments stand for the pipeline's inputs;
    `step.outputs.NAME` is an input of another step. The dict that the function returns has the
    pipeline's outputs.

    `compute` (or `default_compute`), `continue_on_step_failure`, `force_rerun`: settings of the
    pipeline. `non_pipeline_inputs`: arguments that the function gets as they are. `version` is
    taken, and means nothing. Raises TypeError for a keyword that is none.

        @pipeline(compute="cpu-cluster", description="from text to a model")
        def training(text, epochs=3):
            clean = prepare(data=text)
            model = train(data=clean.outputs.words, epochs=epochs)
            return {"model": model.outputs.model}

        job = ml_client.jobs.create_or_update(training(text=Input(type="uri_file", path="./text.txt")))
    """
    for each in settings:
        if each not in _SETTINGS:
            raise TypeError(
                "@pipeline has no "
                f"{each}={field_checks.or_nearest(each, (*_SETTINGS, 'name', 'display_name', 'description', 'tags', 'experiment_name'))}"
            )

    def decorate(function: Callable[..., Any]) -> Callable[..., PipelineJob]:
        @functools.wraps(function)
        def describe(*args: Any, **kwargs: Any) -> PipelineJob:
            about = {
                "display_name": display_name or name or function.__name__,
                "description": description or inspect.getdoc(function),
                "experiment_name": experiment_name,
                "tags": tags,
            }
            return _described(
                function,
                args,
                kwargs,
                set(non_pipeline_inputs),
                about,
                {_SETTINGS[key]: value for key, value in settings.items() if value is not None},
            )

        return describe

    return decorate if function is None else decorate(function)


def _described(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    plain: set[str],
    about: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> PipelineJob:
    values = _arguments(function, args, kwargs)
    outer = building.current()
    values = {
        name: value if name in plain else building.bound(value) for name, value in values.items()
    }
    stand_ins = {
        name: value if name in plain else PipelineInput(name, value)
        for name, value in values.items()
    }
    with building.begun() as builder:
        returned, variables = _call(function, stand_ins)
        sources = _sources(builder, returned, function.__name__)
    used = {
        each.step
        for node in builder.nodes
        for each in map(bindings.of, inputs_of(node).values())
        if each is not None and each.step
    }
    steps = builder.steps(used | {step for step, _ in sources.values()})
    if not steps:
        raise ValueError(
            f"the pipeline {function.__name__} has no step: its function calls no component, "
            "command job or pipeline"
        )
    names = _names(steps, variables)
    for node in steps.values():
        inputs = inputs_of(node)
        for each, value in list(inputs.items()):
            inputs[each] = _renamed(value, names)
    made = PipelineJob(
        os.getcwd(),
        jobs={names[each]: node for each, node in steps.items()},
        settings=settings,
        inputs={
            name: value for name, value in values.items() if name not in plain and value is not None
        },
        sources={name: (names[step], output) for name, (step, output) in sources.items()},
        **about,
    )
    if outer is not None:
        outer.add(made)
    return made


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the value of each parameter.

    One that is declared by an Input has that without a value, as a literal its default.
    """
    signature = inspect.signature(function)
    for each in signature.parameters.values():
        if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
            raise TypeError(
                f"the pipeline {function.__name__} takes {each}: each of its inputs has to have a "
                "name of its own"
            )
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"the pipeline {function.__name__}: {error}") from None
    given.apply_defaults()
    return dict(given.arguments)


def _call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Call the function, and return what it returns and its variables, as they are at its end."""
    code, found = function.__code__, {}
    before = sys.getprofile()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is code:
            found.update(frame.f_locals)

    sys.setprofile(note)
    try:
        returned = function(**arguments)
    finally:
        sys.setprofile(before)
    return returned, found


def _sources(builder: building.Builder, returned: Any, name: str) -> dict[str, tuple[str, str]]:
    """Return the step and its output for each output of the pipeline."""
    if returned is None:
        return {}
    if not isinstance(returned, Mapping):
        raise TypeError(
            f"the pipeline {name} returns {returned!r}; it returns a dict with its outputs, as "
            f"{{'model': step.outputs.model}}, or nothing"
        )
    found = {}
    for output, value in returned.items():
        source = builder.source(value)
        if source is None:
            raise TypeError(
                f"the pipeline {name} returns {output}: {value!r}, which is no output of one of "
                "its steps"
            )
        found[output] = source
    return found


def _names(steps: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of each step: its own, the variable's that it was assigned to, or its
    component's with a number."""
    by_id = {id(value): name for name, value in reversed(list(variables.items()))}
    taken: set[str] = set()
    found: dict[str, str] = {}
    for each, node in steps.items():
        own = node.name if not isinstance(node, PipelineJob) else None
        first = _NAME.sub(
            "_",
            own
            or by_id.get(id(node))
            or getattr(node, "component_name", "")
            or getattr(node, "display_name", None)
            or "step",
        )
        first = first if first[:1].isalpha() or first[:1] == "_" else f"step_{first}"
        name = next(
            name
            for number in range(len(steps) + 1)
            if (name := f"{first}_{number}" if number else first) not in taken
        )
        taken.add(name)
        found[each] = name
    return found


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return an input whose binding has the step's name in place of its number."""
    binding = bindings.of(value)
    if binding is None or binding.step not in names:
        return value
    text = str(replace(binding, step=names[binding.step]))
    if not isinstance(value, _entities.Input):
        return text
    return _entities.Input(type=value.type, path=text, mode=value.mode, optional=value.optional)
