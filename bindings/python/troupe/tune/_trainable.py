"""The work of a trial: a function of its configuration, the values sent with it, and the resources
it holds."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from troupe import _pickled
from troupe.tune import _gpu_share, _resources
from troupe.tune._trainable_class import ClassRun, Trainable

if TYPE_CHECKING:
    from troupe.tune._resources import PlacementGroupFactory


@dataclass(frozen=True)
class Given:
    """A trainable with what was said of it: large values that its trials share, what each holds,
    and other options of their processes. Call it to run it here.

    `with_resources` and `with_parameters` make it; Tuner takes it in place of the function itself.
    """

    function: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    resources: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the actors that its trials run in, beside their resources: `runtime_env`, `priority`,
    `accelerator_type` and the like."""
    gpu_memory_fraction: bool = False
    """Whether torch in each of them keeps to the part of a GPU that it holds."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **{**self.parameters, **kwargs})

    @property
    def __name__(self) -> str:
        return name_of(self.function)


def given(trainable: Any) -> Given:
    """Return the trainable as a Given, with no options unless there were some.

    Raises TypeError for what cannot be run.
    """
    if isinstance(trainable, Given):
        return trainable
    if not callable(trainable) or inspect.iscoroutinefunction(trainable):
        raise TypeError(
            f"a trial runs a function of its configuration, or a Trainable class, not {trainable!r}"
        )
    return Given(trainable)


def with_resources(
    trainable: Callable[..., Any],
    resources: Mapping[str, float] | PlacementGroupFactory | Callable[[Any], Any],
    *,
    gpu_memory_fraction: bool = False,
) -> Given:
    """The trainable, each trial of which holds that much.

    `resources`: amounts, `{"cpu": 2, "gpu": 0.5}`, other names as they are; a
    PlacementGroupFactory; or a function of the configuration that gives one of these. Without this
    a trial holds one CPU. `gpu_memory_fraction`: of trials that share a GPU, torch in each takes no
    more of its memory than its part. Raises ValueError for what is no amount, TypeError. As Ray's
    `tune.with_resources`.

        Tuner(tune.with_resources(train, {"gpu": 0.5}), param_space=...)
    """
    gpus = None
    if not callable(resources):
        gpus = _resources.held_by(_resources.shape_of(resources)).get("GPU", 0.0)
    _gpu_share.check(gpu_memory_fraction, "with_resources", gpus)
    return replace(given(trainable), resources=resources, gpu_memory_fraction=gpu_memory_fraction)


def with_parameters(trainable: Callable[..., Any], **parameters: object) -> Given:
    """The trainable, called with these arguments beside its configuration; each travels to a node
    once, however many trials there are.

    Raises TypeError for names that the function does not take. As Ray's `tune.with_parameters`.

        def train(config, data): ...
        Tuner(tune.with_parameters(train, data=data), param_space=...)
    """
    known = given(trainable)
    both = {**known.parameters, **parameters}
    if not inspect.isclass(known.function):
        try:
            inspect.signature(known.function).bind_partial({}, **both)
        except TypeError as error:
            raise TypeError(
                f"with_parameters({', '.join(parameters)}): {name_of(known.function)}() does not "
                f"take them: {error}"
            ) from None
        except ValueError:  # raised for a function of an extension
            pass
    return replace(known, parameters=both)


def name_of(trainable: Any) -> str:
    """Return the name after which the trials are named."""
    while isinstance(trainable, functools.partial):
        trainable = trainable.func
    name = getattr(trainable, "__name__", None) or type(trainable).__name__
    return (
        "".join(each if each.isalnum() or each in "-_." else "_" for each in name).strip("_")
        or "trial"
    )


def is_class(known: Given) -> bool:
    """Return True if it is a Trainable class. Raises TypeError for a class of another kind."""
    if not inspect.isclass(known.function):
        return False
    if not issubclass(known.function, Trainable):
        raise TypeError(
            f"{name_of(known.function)} is a class, and no tune.Trainable: derive it from that, or "
            "give a function of the configuration"
        )
    return True


def says_resources(known: Given) -> bool:
    """Return True if it is a class with its own `default_resource_request`."""
    return (
        is_class(known)
        and inspect.getattr_static(known.function, "default_resource_request")
        is not vars(Trainable)["default_resource_request"]
    )


def as_function(known: Given, *, every: int = 0, at_end: bool = False) -> Callable[..., Any]:
    """A function of (configuration, **parameters) that runs one trial; a Trainable class saves
    `every` so many steps, and `at_end`. Raises TypeError for one that takes something else."""
    function = known.function
    if is_class(known):
        return ClassRun(function, every, at_end)
    try:
        signature = inspect.signature(function)
    except ValueError:  # raised for a function of an extension
        found: Callable[..., Any] = function
        return found
    try:
        signature.bind_partial({})
    except TypeError:
        return WithoutConfig(function)
    missing = [
        each.name
        for each in list(signature.parameters.values())[1:]
        if each.default is each.empty
        and each.name not in known.parameters
        and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    if missing:
        raise TypeError(
            f"{name_of(function)}{signature} takes {', '.join(missing)} beside its configuration: "
            f"tune.with_parameters({name_of(function)}, {missing[0]}=...) gives it"
        )
    found = function
    return found


@dataclass(frozen=True)
class WithoutConfig:
    """A trial's function that takes no configuration."""

    function: Callable[..., Any]

    def __call__(self, config: Mapping[str, Any], **parameters: Any) -> Any:
        return self.function(**parameters)


_pickled.named_in("troupe._pickled", Given, WithoutConfig)
_pickled.named_in("troupe.tune", with_parameters, with_resources)
