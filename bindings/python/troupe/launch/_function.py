"""`@distributed` and `@ray_launch`: what they check, and the function they make."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from troupe import _environment, _leave, _pickled, _resources, _runtime_env, _selectors

STOP_GRACE_S = 10.0
_STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")


@dataclass(frozen=True)
class LaunchOptions:
    """What the decorator was given, checked."""

    mode: str
    ranks: int
    gpus: bool
    gpu_type: str
    cpus_per_rank: float
    memory: int
    remote: bool
    max_attempts: int
    timeout: float | None
    runtime_env: dict[str, Any]
    inherit_env: tuple[str, ...]
    name: str
    strategy: str
    priority: int = 0
    where: dict[str, Any] = field(default_factory=dict)
    api: str | None = None
    stop_grace: float = STOP_GRACE_S
    exit_grace: float = _leave.EXIT_GRACE_S
    preimport: tuple[str, ...] = ()

    def __reduce__(self) -> tuple:
        return _pickled.launch_options, (_pickled.fields_of(self),)


def _count(what: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TypeError(f"{what} must be a whole number of at least 1, not {value!r}")
    return value


def _options(mode: str, *, gpus: int | None, processes: int | None, gpu_type: str | None, cpus_per_rank: float,
             memory: float | str | None, remote: bool, max_attempts: int, timeout: float | None, runtime_env: Mapping[str, Any] | None,
             inherit_env: Iterable[str], name: str | None, strategy: str, priority: int, stop_grace: float,
             exit_grace: float, preimport: Iterable[str], api: str | None = None, **where: Any) -> LaunchOptions:
    decorator = "distributed" if mode == "distributed" else "ray_launch"
    if (gpus is None) == (processes is None):
        given = "neither" if gpus is None else "both"
        raise TypeError(f"@{decorator} takes exactly one of gpus= and processes=, {given} given")
    if gpu_type is not None and gpus is None:
        raise TypeError(f"@{decorator}: gpu_type= goes with gpus=")
    if isinstance(inherit_env, str):
        raise TypeError("inherit_env must be a list of names, not a text")
    if isinstance(cpus_per_rank, bool) or not isinstance(cpus_per_rank, (int, float)) or cpus_per_rank < 0:
        raise TypeError(f"cpus_per_rank must be a number of at least 0, not {cpus_per_rank!r}")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0):
        raise ValueError(f"timeout must be more than 0 seconds, not {timeout!r}")
    for what, seconds in (("stop_grace", stop_grace), ("exit_grace", exit_grace)):
        _leave.check_grace(what, seconds)
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(_STRATEGIES)}, not {strategy!r}")
    if api not in (None, "troupe"):
        raise ValueError(f"api must be 'troupe' or None, not {api!r}")
    return LaunchOptions(
        mode=mode, ranks=_count("gpus", gpus) if gpus is not None else _count("processes", processes),
        gpus=gpus is not None, gpu_type=gpu_type or "", cpus_per_rank=cpus_per_rank,
        memory=_resources.bytes_of(memory or 0), remote=bool(remote),
        max_attempts=_count("max_attempts", max_attempts), timeout=timeout,
        runtime_env=_runtime_env.check(runtime_env), inherit_env=tuple(inherit_env), name=name or "",
        strategy=strategy, priority=_resources.check_priority(priority), where=_selectors.where(**where), api=api,
        stop_grace=stop_grace, exit_grace=exit_grace, preimport=_environment.check_preimport(preimport))


def _check_arguments(function: Callable[..., Any], args: tuple, kwargs: dict) -> None:
    """Raises the TypeError that the ranks would, before there are any."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not tell
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{getattr(function, '__name__', 'the function')}{signature}: {error}") from None


class DistributedFunction:
    """A function and how it is launched. Calling it runs it here, in this process, alone."""

    def __init__(self, function: Callable[..., Any], options: LaunchOptions) -> None:
        if not callable(function):
            raise TypeError(f"@{options.mode} decorates a function, not {function!r}")
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self._options.mode} function {self.__name__}, {self._options.ranks} ranks>"

    def __reduce__(self) -> tuple:
        return _pickled.launch_function, (self._function, self._options)

    def submit(self, *args: Any, detach: bool = False, **kwargs: Any) -> Any:
        """Starts a launch and returns its LaunchHandle at once.

        What cannot start is refused here, before any rank exists: TypeError (arguments that the function
        does not take), LaunchError (a capture too large or unpicklable), PlacementError (more than the cluster can ever hold), ConnectionError. The launch is
        cancelled when this process ends, unless `detach`.
        """
        from troupe.launch import _submit

        _check_arguments(self._function, args, kwargs)
        return _submit.submit(self._function, args, kwargs, self._options, detach=detach)

    def distributed(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Runs the launch to its marker and returns the list of results by rank.

        Blocks; prints progress and the ranks' output, each line with its rank. Raises LaunchError (also
        an instance of the failing rank's exception type), GetTimeoutError over the decorator's
        `timeout`, LaunchCancelledError, and what `submit` raises. Ctrl-C cancels the launch: KeyboardInterrupt is
        raised in its ranks, which have `stop_grace` seconds; a second Ctrl-C ends them at once.
        """
        from troupe.launch import _progress

        return _progress.run(self.submit(*args, **kwargs))


def distributed(fn: Callable[..., Any] | None = None, *, gpus: int | None = None, processes: int | None = None,
                gpu_type: str | None = None, cpus_per_rank: float = 1, memory: float | str | None = None,
                remote: bool = False, max_attempts: int = 1, timeout: float | None = None,
                runtime_env: Mapping[str, Any] | None = None, inherit_env: Iterable[str] = (),
                name: str | None = None, strategy: str = "PACK", priority: int = 0,
                label_selector: Mapping[str, str] | None = None, within: str | None = None,
                near: str | None = None, stop_grace: float = STOP_GRACE_S, exit_grace: float = _leave.EXIT_GRACE_S,
                preimport: Iterable[str] = ()) -> Any:
    """Makes a function that every rank of a launch runs with the same arguments.

    Exactly one of `gpus` (one GPU and `cpus_per_rank` CPUs for each rank) and `processes` (CPUs only) is
    the number of ranks over all nodes. `memory`, of each rank: bytes, or "80GiB"; it is for placing, nobody is held to it.
    `remote=True` uses the cluster of `troupe.init()` or TROUPE_ADDRESS,
    else an embedded one on this machine. `max_attempts`: the whole gang is started again after a failure.
    `timeout` in seconds from submission until it is told to stop, queueing included. `stop_grace`: seconds from there, from
    Ctrl-C or `cancel()`, until SIGKILL; meanwhile the ranks' code has KeyboardInterrupt or SystemExit raised in it
    (2 s after another rank's failure). `exit_grace`: seconds that a rank has from its result to the end of its process, for
    threads, children and exit handlers. `preimport`: modules that the ranks' processes have imported when they are forked
    (docs/runtime_env.md). `priority`: of what waits the highest
    is first; whether it also ends what runs is the cluster's policy. `label_selector`, `within`, `near`: which
    nodes, and how near to each other (docs/placement.md).

        @distributed(processes=4)
        def train(epochs): ...
    """
    options = _options("distributed", gpus=gpus, processes=processes, gpu_type=gpu_type,
                       cpus_per_rank=cpus_per_rank, memory=memory, remote=remote, max_attempts=max_attempts, timeout=timeout,
                       runtime_env=runtime_env, inherit_env=inherit_env, name=name, strategy=strategy, priority=priority,
                       label_selector=label_selector, within=within, near=near, stop_grace=stop_grace,
                       exit_grace=exit_grace, preimport=preimport)
    if fn is not None:
        return DistributedFunction(fn, options)
    return lambda function: DistributedFunction(function, options)


def ray_launch(fn: Callable[..., Any] | None = None, *, gpus: int | None = None, processes: int | None = None,
               gpu_type: str | None = None, cpus_per_rank: float = 1, memory: float | str | None = None,
               remote: bool = False, max_attempts: int = 1, timeout: float | None = None,
               runtime_env: Mapping[str, Any] | None = None, inherit_env: Iterable[str] = (),
               name: str | None = None, strategy: str = "PACK", priority: int = 0,
               label_selector: Mapping[str, str] | None = None, within: str | None = None,
               near: str | None = None, stop_grace: float = STOP_GRACE_S, exit_grace: float = _leave.EXIT_GRACE_S,
               preimport: Iterable[str] = (), api: str | None = None) -> Any:
    """Makes a function that rank 0 of a launch runs as the driver; parameters as `distributed`.

    The driver is connected to exactly the launch's nodes and may use what the launch reserved there for
    actors and placement groups; `troupe.launch.current().run(...)` reaches all ranks. The result is a
    list by rank in which rank 0's value is the function's and the others are None. With `api="troupe"`,
    `import ray` in the function, and in what it starts, gives Troupe (`troupe.ray_compat`).
    """
    options = _options("driver", gpus=gpus, processes=processes, gpu_type=gpu_type,
                       cpus_per_rank=cpus_per_rank, memory=memory, remote=remote, max_attempts=max_attempts, timeout=timeout,
                       runtime_env=runtime_env, inherit_env=inherit_env, name=name, strategy=strategy, priority=priority,
                       label_selector=label_selector, within=within, near=near, stop_grace=stop_grace,
                       exit_grace=exit_grace, preimport=preimport, api=api)
    if fn is not None:
        return DistributedFunction(fn, options)
    return lambda function: DistributedFunction(function, options)
