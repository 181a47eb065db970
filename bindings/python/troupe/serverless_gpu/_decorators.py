"""`distributed` and `ray_launch` of the serverless GPU API: those of `troupe.launch`, with what is
read at each call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from troupe import _pickled, launch
from troupe._base import checks as _checks
from troupe._cluster import workers
from troupe.launch import _device_lines, _hints
from troupe.launch._options import table as launches
from troupe.serverless_gpu import _places, _variables
from troupe.serverless_gpu.compute import GPUType

_OTHERS = (
    "other options of a launch are given by options() of the function that it makes, as "
    "f.options(timeout=3600).distributed(...)"
)


class ServerlessFunction(launch.DistributedFunction):
    """A function and how it is launched, as `troupe.launch.DistributedFunction`.

    Calling it runs it here, as rank 0 of 1.

    Which nodes a launch may use, and whether its ranks have GPUs at all, is decided at each
    `.distributed()` and `.submit()`, by the variables that are set then
    (docs/coming/serverless_gpu.md).
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.serverless_function, (self._function, self._options)

    def _place(self, options: Any) -> tuple[Any, Any]:
        from troupe.launch import _vendor_place

        session, options = _vendor_place.place(options, self.__name__)
        if options.gpus:
            options = replace(
                options,
                where=_places.where(session, options.ranks, options.gpu_type, options.where),
            )
        return session, options

    def _without_place(self, session: Any) -> str:
        if not _hints.gpus_of(workers.node_infos(session)):
            return _without_gpus(self._function, self._options.ranks)
        return _hints.of_gpus(session)


def _without_gpus(function: Callable[..., Any], gpus: int) -> str:
    where = _device_lines.first_line(function)
    text = f"no node of the cluster has a GPU, and {where or 'the function'}\n  asks for {gpus}"
    text += (
        f"\n  without {_variables.CPU_RANKS}=0, or with {_variables.CPU_RANKS}=1, gpus=N means "
        "N processes without GPUs"
    )
    lines = _device_lines.of_function(function)
    if lines:
        text += (
            "; these lines need a GPU all the same (init_process_group() without a backend takes "
            "gloo where there are none):" + "".join(f"\n    {line}" for line in lines)
        )
    return text


def _type(decorator: str, gpu_type: Any) -> str | None:
    if gpu_type is None:
        return None
    if not isinstance(gpu_type, str) or not gpu_type.strip():
        known = ", ".join(f"GPUType.{each.name}" for each in GPUType)
        raise TypeError(
            f"@{decorator}: gpu_type must be a type of GPU ({known}, or a text such as 'H100'), "
            f"not {gpu_type!r}"
        )
    return gpu_type.value if isinstance(gpu_type, GPUType) else gpu_type.strip()


def explained(
    instead: Callable[[str, bool], str],
    lacking: Callable[[tuple[Any, ...], Mapping[str, Any]], str],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for `distributed` and `ray_launch` of a vendor's name, whose errors say
    what to write.

    Args:
        instead: Return what an option that it does not take is here, given the option's name and
        whether the call has the number of GPUs
            too; "" for an option that means nothing here.
        lacking: Return what a call with these arguments lacks, as in "is called: distributed()";
            "": nothing.
    """

    def explain(decorator: Callable[..., Any]) -> Callable[..., Any]:
        name = decorator.__name__
        known = list(inspect.signature(decorator).parameters)

        @functools.wraps(decorator)
        def checked(*args: Any, **kwargs: Any) -> Any:
            unknown = next((each for each in kwargs if each not in known), None)
            if unknown is not None:
                meant = instead(unknown, bool(args) or known[0] in kwargs)
                if meant:
                    raise TypeError(f"@{name} {meant}")
                of_launch = f"@{name} takes {', '.join(known)}; {_OTHERS}"
                of_launches = dict.fromkeys(launches.ALL, of_launch)
                _checks.refuse_unknown(f"@{name}", kwargs, known, meant=of_launches)
            if wrong := lacking(args, kwargs):
                raise TypeError(f"@{name} {wrong.format(name=name)}")
            return decorator(*args, **kwargs)

        return checked

    return explain


def _instead(option: str, with_count: bool) -> str:
    if option != "processes":
        return ""
    both = " and gpus=, which both say how many ranks there are" if with_count else ""
    return (
        f"was given processes={both}: it takes gpus= alone; {_variables.CPU_RANKS}=1 makes these "
        "processes without GPUs, and troupe.launch's "
        "takes processes="
    )


def _lacking(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    return (
        "needs the number of GPUs: @{name}(gpus=8)"
        if args and callable(args[0]) or not args and "gpus" not in kwargs
        else ""
    )


_explained = explained(_instead, _lacking)


def _made(
    decorator: Callable[..., Any], gpus: int, gpu_type: Any, remote: bool, **more: Any
) -> Callable[..., ServerlessFunction]:
    name = decorator.__name__
    if not isinstance(remote, bool):
        raise TypeError(f"@{name}: remote must be True or False, not {remote!r}")
    # A request that no node can ever hold fails, also in a program that is written for Ray, where
    # tasks and actors wait for a node.
    launched = decorator(
        gpus=gpus, gpu_type=_type(name, gpu_type), remote=remote, infeasible="refuse", **more
    )

    def decorate(function: Callable[..., Any]) -> ServerlessFunction:
        made = launched(function)
        return ServerlessFunction(
            made._function, replace(made._options, door="serverless_gpu", tracks=True)
        )

    return decorate


@_explained
def distributed(
    gpus: int, gpu_type: str | GPUType | None = None, remote: bool = False
) -> Callable[..., ServerlessFunction]:
    """Makes a function that `gpus` ranks run with the same arguments, each with a GPU, over all
    nodes.

    `gpu_type`: a GPUType or a text in any case; None: any one type that has room. `remote=True`: on
    the cluster of `troupe.init()` or TROUPE_ADDRESS, else on the one that this user runs on this
    host, else on one of this machine, as with `remote=False`. Where no node has a GPU the ranks run
    on CPUs (docs/coming/serverless_gpu.md). `f.distributed(...)` waits and returns the results by
    rank, `f.submit(...)` returns a `troupe.launch.LaunchHandle` at once, `f(...)` runs the function
    here. Raises TypeError for options that are none; the calls raise what those of `troupe.launch`
    do, PlacementError where the cluster has no such GPUs among them.

        @distributed(gpus=8, gpu_type="H100")
        def train(epochs): ...
    """
    return _made(launch.distributed, gpus, gpu_type, remote)


@_explained
def ray_launch(
    gpus: int, gpu_type: str | GPUType | None = None, remote: bool = False, *, api: str = "troupe"
) -> Callable[..., ServerlessFunction]:
    """Makes a function that rank 0 of a launch runs as the driver of a cluster of exactly the
    launch's nodes; parameters as `distributed`.

    `import ray` in it, and in what it starts, is Troupe; with `api="ray"` Ray itself, of which a
    cluster is started on the launch's nodes (docs/coming/ray.md). The result is a list by rank in
    which rank 0's value is the function's and the others are None.

        @ray_launch(gpus=16, gpu_type="A10", remote=True)
        def tune(): ...
    """
    return _made(launch.ray_launch, gpus, gpu_type, remote, api=api)


@_pickled.maker("serverless_function")
def _serverless_function(function: Callable[..., Any], options: Any) -> Any:
    """Rebuild a function decorated by `troupe.serverless_gpu`."""
    return ServerlessFunction(function, options)


_pickled.named_in("troupe.serverless_gpu", ServerlessFunction, distributed, ray_launch)
