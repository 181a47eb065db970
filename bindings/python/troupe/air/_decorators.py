"""`distributed`, `ray_launch` and `ray_init` of `databricks.air`, on those of
`troupe.serverless_gpu`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import troupe
from troupe import _pickled, exceptions, launch
from troupe._cluster import resources, session as _session, workers
from troupe.air import _accelerators, _runs
from troupe.launch import _vendor_place
from troupe.serverless_gpu import ServerlessFunction, _decorators as _serverless

_ALL = "all"
_COUNT, _TYPE = "num_accelerators", "accelerator_type"
_IN_RAY = "RAY_ADDRESS"
_INSTEAD = {
    "gpus": "num_accelerators=",
    "gpu_type": "accelerator_type='GPU_8xH100'",
    "remote": "nothing: the cluster of troupe.init() or TROUPE_ADDRESS is used where there is one, "
    "and `troupe air run` is for several nodes",
}


class AirFunction(ServerlessFunction):
    """A function and how it is launched, as `troupe.serverless_gpu.ServerlessFunction`.

    Calling it runs it here, as rank 0 of 1.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.air_function, (self._function, self._options)

    def _place(self, options: Any) -> tuple[_session.Session, Any]:
        """Return the session of one launch, and its options there: how many ranks, on which nodes,
        with GPUs or without."""
        session, _ = _vendor_place.find_session(remote=options.remote)
        counted = options.about[_COUNT] != _ALL
        if not counted:
            options = replace(options, ranks=_gpus_of_this_node(session) or 1)
        session, options = super()._place(options)
        if options.gpus and options.about[_TYPE]:
            options = _on_nodes_of(
                options, session, _accelerators.parse(_TYPE, options.about[_TYPE])
            )
        return session, replace(options, about={**options.about, _COUNT: str(options.ranks)})


def _on_nodes_of(
    options: Any, session: _session.Session, kind: _accelerators.AcceleratorType
) -> Any:
    """Return the options with as many ranks on each node as a node of this type has GPUs.

    Raise PlacementError where no node is of the type.
    """
    _runs.refuse_unknown(_TYPE, kind, workers.node_infos(session))
    per_node = min(options.ranks, kind.gpus_per_node)
    nodes = _accelerators.count_nodes(_COUNT, options.ranks, replace(kind, gpus_per_node=per_node))
    return replace(options, nodes=nodes)


def _gpus_of_this_node(session: _session.Session) -> int:
    """Return the number of GPUs of the node that this process is on, or is nearest to."""
    nearest = workers.nearest(session)["node"]
    found = next((each for each in workers.node_infos(session) if each["node"] == nearest), None)
    return int(resources.from_wire(found["resources"]).get("GPU", 0)) if found is not None else 0


def _instead(option: str, _: bool) -> str:
    """Return what an option of the older API is here."""
    return f"has no {option}=; here it is {_INSTEAD[option]}" if option in _INSTEAD else ""


def _lacking(args: tuple[Any, ...], _: Mapping[str, Any]) -> str:
    return (
        "is called: @{name}(), with num_accelerators= for fewer GPUs than the node has"
        if args and callable(args[0])
        else ""
    )


_explained = _serverless.explained(_instead, _lacking)


def _build(
    decorator: Callable[..., Any],
    num_accelerators: int | None,
    accelerator_type: str | None,
    **more: Any,
) -> Callable[..., AirFunction]:
    kind = None if accelerator_type is None else _accelerators.parse(_TYPE, accelerator_type)
    if num_accelerators is not None and (
        isinstance(num_accelerators, bool)
        or not isinstance(num_accelerators, int)
        or num_accelerators < 1
    ):
        raise TypeError(
            f"@{decorator.__name__}: num_accelerators must be a whole number of at least 1, not "
            f"{num_accelerators!r}"
        )
    count = num_accelerators or (kind.gpus_per_node if kind is not None else None)
    # A request that no node can hold is refused, also in a program written for Ray, where tasks and
    # actors wait for a node.
    launched = decorator(
        gpus=count or 1,
        gpu_type=None if kind is None else kind.gpu_type,
        remote=True,
        infeasible="refuse",
        **more,
    )
    about = {_COUNT: str(count) if count else _ALL, _TYPE: "" if kind is None else str(kind)}

    def decorate(function: Callable[..., Any]) -> AirFunction:
        made = launched(function)
        return AirFunction(
            made._function, replace(made._options, door="databricks.air", tracks=True, about=about)
        )

    return decorate


@_explained
def distributed(
    num_accelerators: int | None = None, accelerator_type: str | None = None
) -> Callable[..., AirFunction]:
    """Make a function that several ranks run with the same arguments, each with a GPU.

    The launch runs on the cluster of `troupe.init()` or TROUPE_ADDRESS, else on the one that this
    user runs on this host, else on an embedded one. Where no node has a GPU, its ranks are
    processes on CPUs; one line on stderr says so.

    Args:
        num_accelerators: Number of ranks. None: the GPUs of one node of `accelerator_type`, or of
        the node that this process is on.
        accelerator_type: `GPU_<GPUs per node>x<GPU model>`, such as "GPU_8xH100"; case matters.
            None: GPUs of any one type.

    Returns:
        A decorator. `f.distributed(...)` blocks and returns the list of results by rank,
        `f.submit(...)` returns a `troupe.launch.LaunchHandle` at once, `f(...)` runs the function
        in this process.

    Raises:
        TypeError, ValueError: for options that cannot be meant. The calls raise what those of
        `troupe.launch` do, PlacementError among
            it where the cluster has no such GPUs.

    Example:
        @distributed(num_accelerators=8, accelerator_type="GPU_8xH100")
        def train(epochs): ...
    """
    return _build(launch.distributed, num_accelerators, accelerator_type)


@_explained
def ray_launch(
    num_accelerators: int | None = None, accelerator_type: str | None = None, *, api: str = "troupe"
) -> Callable[..., AirFunction]:
    """Make a function that rank 0 of a launch runs as the driver of a cluster of exactly the
    launch's nodes.

    `import ray` in it, and in what it starts, is Troupe; with `api="ray"` it is Ray itself, of
    which a cluster is started on the launch's nodes (docs/coming/ray.md). The result is a list by
    rank, of which rank 0's value is the function's and the others are None.

    Args:
        num_accelerators: As for `distributed`.
        accelerator_type: As for `distributed`.
        api: "troupe" or "ray".

    Raises:
        TypeError, ValueError: as `distributed`.
    """
    return _build(launch.ray_launch, num_accelerators, accelerator_type, api=api)


def ray_init(**options: Any) -> Any:
    """Connect this process for calls of Ray's API, and return what `ray.init` returns.

    Blocks until connected.

    In the function of a `@ray_launch` that is the launch's cluster; elsewhere the cluster that a
    launch of this process would use. A process that is connected already stays connected.

    Args:
        **options: Options of `troupe.init`, or of `ray.init` in a launch with `api="ray"`.

    Raises:
        ConnectionError: if the cluster does not answer.
    """
    if os.environ.get(_IN_RAY) and _session.current_or_none() is None:
        import ray

        return ray.init(ignore_reinit_error=True, **options)
    if _session.current_or_none() is None and not options.get("address"):
        session, found = _vendor_place.find_session(remote=True)
        if session.embedded is None:
            _vendor_place.tell(found, "", quiet=False)
            options["address"] = session.address
    try:
        return troupe.init(ignore_reinit_error=True, **options)
    except exceptions.ConnectionError as error:
        raise exceptions.ConnectionError(f"ray_init: {error}") from None


@_pickled.maker("air_function")
def _air_function(function: Any, options: Any) -> Any:
    """Return a function of `databricks.air`."""
    return AirFunction(function, options)


_pickled.named_in("troupe.air", AirFunction, distributed, ray_launch, ray_init)
