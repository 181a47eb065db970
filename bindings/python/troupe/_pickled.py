"""What pickles of Troupe's own things name.

This module never moves, and what is in it today stays.

A pickle says by module and name what makes its thing again. Journals and kept values hold pickles
for longer than this package keeps its layout, and so do processes of another version. So every
thing of Troupe's that travels is made again by a function of this module, or is a name of a public
module; where the thing itself is defined is free to change. A function here may learn to take more,
with a default; what it takes today it takes for ever. Fields travel by name, without those that are
as by default: one that is not known here, from a later version, is left out.

Pickles from before this module was there name the modules that defined things
(`troupe._actor_handle._handle`): those names stay importable too, by `OLDER_MODULES`.
tests/e2e/recorded has such pickles; tests/bindings/test_pickled.py the list of names.
"""

from __future__ import annotations

import importlib
import importlib.machinery
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_NATIVE = (
    "_borrowed_ref",
    "_ref_by_hand",
)  # of the extension: what refs in values, and refs pickled by a program, name
_CLASSES = {
    "Meeting": "_collective",
    "Member": "_collective",
    "TaskHost": "_tasks.host",
    "ByKeyword": "tune._decorator",
    "SweepHost": "tune._run.served",
    "GangRank": "tune._gang",
    "GangTrial": "tune._gang",
    "RankPlan": "tune._gang",
    "NodeSampler": "serverless_gpu._node_samples",
    "TrainWorker": "train._worker",
    "TrainAttempt": "train._worker",
    "TrainReport": "train._reports",
    "JobFiles": "azure._files",
    "NodeShell": "azure._shells",
    "RayNode": "_ray_cluster.node",
    "Tracker": "_tracking.tracker",
    "NodeTracker": "_tracking.node",
    "MapWorker": "data._tasks",
    "DealingActor": "data._dealing",
    "TrialHost": "tune._run.host",
    "Given": "tune._trainable",
    "WithoutConfig": "tune._trainable",
    "ClassRun": "tune._trainable_class",
    "Capped": "tune._gpu_share",
    "TrialReports": "azure._trials.trial",
    "PipelineHost": "azure._pipeline.host",
}  # that travel by their name

OLDER_MODULES = {
    "_actor_handle": "_actors.handle",
    "_method_options": "_actors.method_options",
    "_constructor": "_actors.constructor",
    "_streams": "_actors.streams",
    "_tensors": "_code.tensors",
    "_carried": "_exception_pickles",
    "_task_host": "_tasks.host",
    "launch._kept": "launch._large_result",
}
"""Modules that pickles of 0.1.0 name, and where what they name is today; `_actors` and `_tasks` are
packages that know theirs."""


def older_module(name: str) -> importlib.machinery.ModuleSpec | None:
    """How one of OLDER_MODULES is loaded, `name` as it stands in the package; None for all other
    names."""
    return (
        importlib.machinery.ModuleSpec(f"troupe.{name}", _OlderModule)
        if name in OLDER_MODULES
        else None
    )


class _OlderModule:
    """Loads a module whose names are looked up in today's when they are asked for."""

    @staticmethod
    def create_module(spec: Any) -> Any:
        """None: Python makes it."""
        return None

    @staticmethod
    def exec_module(module: Any) -> None:
        """Gives it the names of today's."""
        today = f"troupe.{OLDER_MODULES[module.__name__.removeprefix('troupe.')]}"
        module.__getattr__ = lambda name: getattr(importlib.import_module(today), name)


def __getattr__(name: str) -> Any:
    """What is defined elsewhere, found when it is first asked for."""
    if name in _NATIVE:
        from troupe._bridge import native

        found = getattr(native, name)
    elif name in _CLASSES:
        found = getattr(importlib.import_module(f"troupe.{_CLASSES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def named_in(module: str, *things: Any) -> None:
    """These are names of a public module: what uses them, and is pickled with its code, names that
    one."""
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


def _of_fields(cls: type, fields: Mapping[str, Any]) -> Any:
    known = cls.__dataclass_fields__  # type: ignore[attr-defined]
    return cls(**{name: value for name, value in fields.items() if name in known})


def function(code: Any, space: dict[str, Any], *rest: Any) -> Any:
    """A function of the program's script that was pickled by value; cloudpickle fills its globals
    in afterwards."""
    from troupe._code import user_main

    return user_main.made_function(code, space, *rest)


def handle(actor: str, class_name: str, traits: Any) -> Any:
    """What a handle that travelled becomes in the process it arrives in."""
    from troupe._actors import handle as _actor_handle
    from troupe._cluster import session

    return _actor_handle.ActorHandle(
        _actor_handle.watched(session.current(), actor, class_name, traits), traits
    )


def counted_handle(actor: str, class_name: str, traits: Any, *life: Any) -> Any:
    """The same of one that keeps its actor alive; where its life did not come along, it does so by
    not being counted."""
    from troupe._actors.handle_counts import Life

    made = handle(actor, class_name, traits)
    made._life = Life.borrowed(made._link, life)
    if made._life is None:
        made._link.uncount()
    return made


def actor_method(handle: Any, name: str) -> Any:
    """A method of a handle, with its options."""
    return getattr(handle, name)


def traits(fields: Mapping[str, Any]) -> Any:
    """What a handle knows of its actor's class."""
    from troupe._actors.method_options import Traits

    return _of_fields(Traits, fields)


def method_options(fields: Mapping[str, Any]) -> Any:
    """Those of one method of it."""
    from troupe._actors.method_options import MethodOptions

    return _of_fields(MethodOptions, fields)


def actor_class(cls: type, options: Mapping[str, Any]) -> Any:
    """What `@remote` makes of a class."""
    from troupe._actors.classes import ActorClass

    return ActorClass(cls, options)


def remote_function(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """What `@remote` makes of a function."""
    from troupe._tasks.functions import RemoteFunction

    return RemoteFunction(function, options)


def launch_function(function: Callable[..., Any], options: Any) -> Any:
    """What `@distributed` and `@ray_launch` make of one."""
    from troupe.launch._function import DistributedFunction

    return DistributedFunction(function, options)


def serverless_function(function: Callable[..., Any], options: Any) -> Any:
    """What those of `troupe.serverless_gpu` make of one."""
    from troupe.serverless_gpu._decorators import ServerlessFunction

    return ServerlessFunction(function, options)


def sweep_function(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """A function of `@tune.sweep` with its options."""
    from troupe.tune._decorator import SweepFunction
    from troupe.tune._sweep_options import SweepOptions

    return SweepFunction(function, _of_fields(SweepOptions, options))


def sweep_handle(name: str, path: str) -> Any:
    """The handle of a submitted sweep."""
    from troupe.tune._handle import SweepHandle

    return SweepHandle(name, path)


def launch_handle(launch: str) -> Any:
    """The handle of a launch, in the process where it is made."""
    from troupe.launch import attach

    return attach(launch)


def rank_zero(
    function: Callable[..., Any],
    arguments: Sequence[str] = (),
    files: Sequence[tuple[str, str]] = (),
) -> Any:
    """A function of which only rank 0's value travels."""
    from troupe.spark._rank_zero import RankZero

    return RankZero(function, arguments, files)


def launch_options(fields: Mapping[str, Any]) -> Any:
    """What those were given."""
    from troupe.launch._function import LaunchOptions

    return _of_fields(LaunchOptions, fields)


def program(fields: Mapping[str, Any]) -> Any:
    """A program that the ranks of a launch execute."""
    from troupe._code.program import Program

    return _of_fields(Program, fields)


def air_function(function: Any, options: Any) -> Any:
    """Return a function of `databricks.air`."""
    from troupe.air import AirFunction

    return AirFunction(function, options)


def air_node(fields: Mapping[str, Any]) -> Any:
    """Return what a node of an AI Runtime workload does before it runs the command."""
    from troupe.air._node import NodeStart

    return _of_fields(NodeStart, fields)


def job_start(fields: Mapping[str, Any]) -> Any:
    """Return what a job's process does before it executes the command."""
    from troupe.job_submission._start import JobStart

    return _of_fields(JobStart, fields)


def azure_job(fields: Mapping[str, Any]) -> Any:
    """What a rank of a command job makes before it runs the command."""
    from troupe.azure._rank import JobStart

    return _of_fields(JobStart, fields)


def azure_job_trial(fields: Mapping[str, Any]) -> Any:
    """What a trial of a sweep of command jobs runs."""
    from troupe.azure._trials.trial import JobTrial

    return _of_fields(JobTrial, fields)


def azure_mpi(job: Any, processes: int) -> Any:
    """What the driver of a command job with MPI runs."""
    from troupe.azure._mpi import MpiStart

    return MpiStart(job, processes)


def azure_deepspeed(job: Any, slots: int, gpus: int) -> Any:
    """What the driver of a command job with DeepSpeed's own launcher runs."""
    from troupe.azure._deepspeed import DeepspeedStart

    return DeepspeedStart(job, slots, gpus)


def azure_daemon(job: Any, text: str, master: str) -> int:
    """What the other nodes of such a job run: mpirun's daemon there."""
    from troupe.azure import _mpi

    return _mpi.daemon(job, text, master)


def azure_ray(job: Any, cpus: int, wishes: Any, api: str) -> Any:
    """What the driver of a command job over a Ray cluster runs."""
    from troupe.azure._ray import RayStart

    return RayStart(job, cpus, wishes, api)


def azure_ray_node(fields: Mapping[str, Any]) -> Any:
    """What the node of such a cluster makes first."""
    from troupe.azure._ray import NodeStart

    return _of_fields(NodeStart, fields)


def ray_share(fields: Mapping[str, Any]) -> Any:
    """What a Ray cluster has of one node."""
    from troupe._ray_cluster.words import Share

    return _of_fields(Share, fields)


def ray_wishes(fields: Mapping[str, Any]) -> Any:
    """What was said of such a cluster."""
    from troupe._ray_cluster.words import Wishes

    return _of_fields(Wishes, fields)


def ray_driver(function: Callable[..., Any]) -> Any:
    """What the driver of a launch runs over a real Ray cluster."""
    from troupe._ray_cluster.driver import RayDriver

    return RayDriver(function)


def kept_value(node: str, sha256: bytes, size_bytes: int) -> Any:
    """Stands for a driver's value that its worker keeps."""
    from troupe.launch._large_result import KeptValue

    return KeptValue(node, sha256, size_bytes)


def argument_place(number: int) -> Any:
    """Among a constructor's arguments: where the value of a ref belongs that was still to come."""
    from troupe._actors.constructor import _Place

    return _Place(number)


def large_argument(ref: Any) -> Any:
    """Among them, a large value by its ref."""
    from troupe._actors.constructor import _Value

    return _Value(ref)


def hex_id(text: str) -> Any:
    """The id of a node, an actor, a group."""
    from troupe._identity import HexID

    return HexID(text)


def dynamic_refs(refs: Sequence[Any]) -> Any:
    """The refs of all that a call with num_returns="dynamic" yielded."""
    from troupe._actors.streams import DynamicObjectRefGenerator

    return DynamicObjectRefGenerator(refs)


def plain_value(value: Any) -> Any:
    """A value of which no tensor stays where it was returned."""
    return value


def value_with_tensors(
    rest: Any,
    buffers: Sequence[Any],
    place: Sequence[Any],
    key: str,
    method: str,
    specs: Sequence[tuple],
    *life: Any,
) -> Any:
    """One whose tensors stayed in an actor's process, which gives them now; `life` keeps them there
    meanwhile."""
    from troupe._actors import tensors
    from troupe._actors.tensors import fetch, kept, value
    from troupe._bridge import native

    held = native.borrow_life(life)
    if tensors.are_left():
        return value.PassedValue((rest, buffers, place, key, method, specs), held)
    made = value.loaded(rest, buffers, fetch.tensors(kept.Place.of(place), key, method, specs))
    del held
    return made


def tensor_place(number: int) -> Any:
    """In the pickle of such a value: where one of its tensors belongs."""
    from troupe._actors.tensors import value

    return value.tensor_at(number)


def whole_tensor(data: bytes) -> Any:
    """One of its tensors that does not stay anywhere: sparse, quantized, of a class of its own."""
    import pickle

    return pickle.loads(data)


def array(buffer: Any, dtype: Any, shape: tuple, order: str = "C", cls: type | None = None) -> Any:
    """A NumPy array over a buffer, whose memory starts on 64 bytes."""
    from troupe._code import arrays

    return arrays.made(buffer, dtype, shape, order, cls)


def tensor_memory(buffer: Any) -> Any:
    """What tensors of a value lie in."""
    from troupe._code.tensors import TensorMemory

    return TensorMemory(buffer)


def tensor(memory: Any, dtype: Any, shape: tuple) -> Any:
    """A tensor there, as a private view."""
    import torch

    return torch.frombuffer(memory.buffer, dtype=dtype).reshape(shape)


def device_storage(data: bytes, device: str) -> Any:
    """What a tensor on a GPU keeps its elements in."""
    from troupe._code import tensors

    return tensors.device_storage(data, device)


def checkpoint(path: str, fields: Mapping[str, Any]) -> Any:
    """A folder that a training can go on from."""
    from troupe.train._checkpoint import Checkpoint

    made = Checkpoint(path)
    made.__dict__.update(fields)
    return made


def error(base: type, cause: BaseException | None, text: str, fields: Mapping[str, Any]) -> Any:
    """An error of the runtime that is also of the type of its cause."""
    from troupe.exceptions import with_type_of

    return with_type_of(base, cause, text, **fields)


def arrived_error(
    cls: type[BaseException], args: tuple, state: dict[str, Any] | None = None
) -> BaseException:
    """An exception of the user's, of a class whose `__init__` may take something else than its
    `args`."""
    from troupe._exception_pickles import arrived

    return arrived(cls, args, state)


def error_state(error: BaseException, state: dict[str, Any]) -> None:
    """Its attributes, where they are set once it is there."""
    from troupe._exception_pickles import set_state

    set_state(error, state)


def of_data(kind: str, fields: Mapping[str, Any]) -> Any:
    """Something of a dataset's plan: the class `kind` of troupe.data's rooms."""
    from troupe.data import _kinds

    return _of_fields(_kinds.named(kind), fields)


def data_iterator(share: Any, epoch: int) -> Any:
    """A reader's share of a dataset; its next epoch has that number."""
    from troupe.data._iterator import DataIterator

    made = DataIterator(share)
    made._epoch = epoch
    return made


def dataset(node: Any, kind: str = "Dataset") -> Any:
    """A dataset, by its plan."""
    from troupe.data import _dataset

    return getattr(_dataset, kind)(node)
