"""The functions and classes that pickles of Troupe's own objects name.

This module never moves, and what is in its table today stays there.

A pickle says by module and name what makes its thing again. Journals and kept values hold pickles
for longer than this package keeps its layout, and so do processes of another version. So every
thing of Troupe's that travels is made again by a name of this module, or is a name of a public
module; where the thing itself is defined is free to change. A maker may learn to take more, with a
default; what it takes today it takes for ever. Fields travel by name, without those that are as by
default: one that is not known here, from a later version, is left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

MADE_IN = {
    "actor_class": "_actors.classes",
    "argument_place": "_actors.constructor",
    "large_argument": "_actors.constructor",
    "actor_method": "_actors.handle",
    "counted_handle": "_actors.handle",
    "handle": "_actors.handle",
    "method_options": "_actors.method_options",
    "traits": "_actors.method_options",
    "dynamic_refs": "_actors.streams",
    "plain_value": "_actors.tensors.value",
    "tensor_place": "_actors.tensors.value",
    "value_with_tensors": "_actors.tensors.value",
    "whole_tensor": "_actors.tensors.value",
    "_borrowed_ref": "_base.bridge",
    "_ref_by_hand": "_base.bridge",
    "array": "_code.arrays",
    "program": "_code.program",
    "device_storage": "_code.tensors",
    "tensor": "_code.tensors",
    "tensor_memory": "_code.tensors",
    "function": "_code.user_main",
    "Meeting": "util._collective_meeting",
    "Member": "util._collective_meeting",
    "arrived_error": "_base.exception_pickles",
    "error_state": "_base.exception_pickles",
    "hex_id": "_base.identity",
    "ray_driver": "_ray_cluster.driver",
    "RayNode": "_ray_cluster.node",
    "ray_share": "_ray_cluster.words",
    "ray_wishes": "_ray_cluster.words",
    "remote_function": "_tasks.functions",
    "TaskHost": "_tasks.host",
    "NodeTracker": "_tracking.node",
    "Tracker": "_tracking.tracker",
    "air_function": "air._decorators",
    "air_node": "air._node",
    "azure_deepspeed": "azure._deepspeed",
    "JobFiles": "azure._files",
    "azure_daemon": "azure._mpi",
    "azure_mpi": "azure._mpi",
    "PipelineHost": "azure._pipeline.host",
    "azure_job": "azure._rank",
    "azure_ray": "azure._ray",
    "azure_ray_node": "azure._ray",
    "NodeShell": "azure._shells",
    "TrialReports": "azure._trials.trial",
    "azure_job_trial": "azure._trials.trial",
    "dataset": "data._dataset",
    "DealingActor": "data._dealing",
    "data_iterator": "data._dataset",
    "of_data": "data._kinds",
    "MapWorker": "data._tasks",
    "error": "exceptions",
    "job_start": "job_submission._start",
    "launch_function": "launch._function",
    "launch_options": "launch._options",
    "launch_handle": "launch._attach",
    "kept_value": "launch._large_result",
    "serverless_function": "serverless_gpu._decorators",
    "NodeSampler": "serverless_gpu._node_samples",
    "rank_zero": "spark._rank_zero",
    "checkpoint": "train._checkpoint",
    "TrainReport": "train._reports",
    "TrainAttempt": "train._worker",
    "TrainWorker": "train._worker",
    "ByKeyword": "tune._decorator",
    "sweep_function": "tune._decorator",
    "GangRank": "tune._gang",
    "GangTrial": "tune._gang",
    "RankPlan": "tune._gang",
    "Capped": "tune._gpu_share",
    "sweep_handle": "tune._handle",
    "TrialHost": "tune._run.host",
    "NewRows": "tune._run.changes",
    "SweepHost": "tune._run.served",
    "Given": "tune._trainable",
    "WithoutConfig": "tune._trainable",
    "ClassRun": "tune._trainable_class",
}
"""Name in a pickle -> the module that has it: a class, or a function that `maker` marks."""

Made = TypeVar("Made", bound=Callable[..., Any])
_makers: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    """Import a name used in pickles when it is first asked for."""
    where = MADE_IN.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"troupe.{where}")
    found = globals()[name] = _makers[name] if name in _makers else getattr(module, name)
    return found


def maker(name: str) -> Callable[[Made], Made]:
    """Make a function, by this decorator, the one that pickles name so.

    Args:
        name: In MADE_IN, for the function's module.
    """

    def named(made: Made) -> Made:
        if MADE_IN[name] != made.__module__.removeprefix("troupe."):
            raise AssertionError(f"MADE_IN[{name!r}] is not {made.__module__}")
        made.__module__, made.__name__, made.__qualname__ = __name__, name, name
        _makers[name] = made
        return made

    return named


def named_in(module: str, *things: Any) -> None:
    """Give these objects the name of a public module, so that pickles of code that uses them name
    that module."""
    for each in things:
        if any(part.startswith("_") for part in each.__module__.split(".")):
            each.__module__ = module


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass's instance that are not as by default, for the functions below."""
    import dataclasses

    found = {}
    for field in dataclasses.fields(value):
        held = getattr(value, field.name)
        default = (
            field.default
            if field.default_factory is dataclasses.MISSING
            else field.default_factory()
        )
        if (
            default is dataclasses.MISSING
            or held is not default
            and (type(held) is not type(default) or held != default)
        ):
            found[field.name] = held
    return found


def of_fields(cls: type[Any], fields: Mapping[str, Any]) -> Any:
    """Make a dataclass's instance of what fields_of() gave, without fields it does not have."""
    known = cls.__dataclass_fields__
    return cls(**{name: value for name, value in fields.items() if name in known})
