"""`@distributed` and `@ray_launch`: what they check, and the function they make."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from troupe import _checks, _pickled
from troupe._typed import ElementT, LaunchFunctionOf, P, T
from troupe.launch import _arguments, _hints
from troupe.launch._options import (
    REFORM_TIMEOUT_S,
    STOP_GRACE_S,
    LaunchOptions,
    _decorator,
    _options,
)

if TYPE_CHECKING:
    from typing import ParamSpec, TypeVar, Unpack

    from troupe._typed import options as _typed_options
    from troupe._typed.decorators import DriverDecorator, LaunchDecorator
    from troupe.launch._handle import LaunchHandle

    Parameters = ParamSpec("Parameters")
    Result = TypeVar("Result")

OF_ONE_LAUNCH = ("detach", "idempotency_key")
"""Options that `f.options()` takes and the decorators do not."""
_OF_ONE_LAUNCH = " ".join(f"{name}=" for name in OF_ONE_LAUNCH)


def _option_names(mode: str) -> dict[str, Any]:
    """Those of the decorator, with their defaults."""
    parameters = inspect.signature(distributed if mode == "distributed" else ray_launch).parameters
    return {name: each.default for name, each in parameters.items() if name != "fn"}


def _of_one_launch(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options among `given` that are one launch's, not the function's, checked."""
    found = {name: given[name] for name in OF_ONE_LAUNCH if name in given}
    if not isinstance(found.get("detach", False), bool):
        raise TypeError(f"detach must be True or False, not {found['detach']!r}")
    if "idempotency_key" in found:
        found["idempotency_key"] = _checks.check_idempotency_key(found["idempotency_key"])
    return found


def options_of(called: str, given: Mapping[str, Any]) -> LaunchOptions:
    """What `distributed` takes as options, given to `called`, which also takes OF_ONE_LAUNCH.

    Raises TypeError or ValueError.
    """
    known = _option_names("distributed")
    unknown = [name for name in given if name not in known and name not in OF_ONE_LAUNCH]
    if unknown:
        raise TypeError(
            f"{called} has no {unknown[0]}=; it takes {_OF_ONE_LAUNCH} and what @distributed does: "
            f"{', '.join(known)}"
        )
    asked = {**known, **{name: value for name, value in given.items() if name not in OF_ONE_LAUNCH}}
    return replace(_options("distributed", **asked, called=called), **_of_one_launch(given))


def _changed(old: LaunchOptions, given: Mapping[str, Any]) -> LaunchOptions:
    """`old` with what is given, each option checked as the decorator checks it."""
    known = _option_names(old.mode)
    unknown = [name for name in given if name not in known and name not in OF_ONE_LAUNCH]
    if unknown:
        raise TypeError(
            f"options() has no {unknown[0]}=; it takes {_OF_ONE_LAUNCH} and what "
            f"@{_decorator(old.mode)} does: {', '.join(known)}"
        )
    fields = _of_one_launch(given)
    asked = {
        **known,
        **{name: value for name, value in given.items() if name not in OF_ONE_LAUNCH},
        "mode": old.mode,
    }
    if "on_rank_death" in known and "on_rank_death" not in given:
        asked["on_rank_death"] = old.on_rank_death
        asked["min_processes"] = given.get("min_processes", old.min_processes)
    counted = "gpus" in given or "processes" in given
    if not counted:
        asked["gpus" if old.gpus else "processes"] = old.ranks
    if "gpu_type" not in given and not (counted and asked["gpus"] is None):
        asked["gpu_type"] = old.gpu_type or None
    new = _options(**asked)
    fields.update(
        {
            name: getattr(new, name)
            for name in given
            if hasattr(old, name) and name not in ("gpus", *OF_ONE_LAUNCH)
        }
    )
    if counted:
        fields.update(ranks=new.ranks, gpus=new.gpus, gpu_type=new.gpu_type)
    where = dict(old.where)
    if "label_selector" in given:
        where["labels"] = new.where["labels"]
    if "within" in given or "near" in given:
        where.update(level=new.where["level"], level_required=new.where["level_required"])
    return replace(old, where=where, **fields)


class DistributedFunction(LaunchFunctionOf[P, T, ElementT]):
    """A function and how it is launched.

    Calling it runs it here, in this process, as rank 0 of 1.
    """

    __name__: str

    def __init__(self, function: Callable[P, T], options: LaunchOptions) -> None:
        decorator = _decorator(options.mode)
        _hints.check_function(function, f"@{decorator}", f"{decorator}(...)({{}})")
        if not callable(function):
            raise TypeError(f"@{options.mode} decorates a function, not {function!r}")
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> T:
        from troupe.launch import _plain

        value: T = _plain.call(self._function, args, kwargs)
        return value

    def __repr__(self) -> str:
        return f"<{self._options.mode} function {self.__name__}, {self._options.ranks} ranks>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.launch_function, (self._function, self._options)

    def options(
        self, /, **options: Unpack[_typed_options.ChangedLaunchOptions]
    ) -> DistributedFunction[P, T, ElementT]:
        """The same function with other options of its launches: those of the decorator, `detach`
        and `idempotency_key`.

        Does not block. With `detach=True` a launch outlives the process that submitted it. With
        `idempotency_key="..."` a second submission with that key returns the first one's launch,
        also from another process and after the head was restarted, for as long as the cluster keeps
        the launch. Raises TypeError or ValueError as the decorator does.

            train.options(timeout=3600, detach=True).submit(epochs=3)
        """
        return type(self)(self._function, _changed(self._options, options))

    def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> LaunchHandle[ElementT]:
        """Starts a launch of the function with these arguments, all of which are its own, and
        returns a LaunchHandle at once.

        What cannot start is refused here, before any rank exists: TypeError (arguments that the
        function does not take), LaunchError (a capture too large or unpicklable), PlacementError
        (more than the cluster can ever hold), ConnectionError. The launch is cancelled when this
        process ends, unless the function has `options(detach=True)`.

            handle = train.submit(epochs=3)
        """
        return self._launch(args, *self._split(kwargs))

    def _split(self, kwargs: dict[str, Any]) -> tuple[dict[str, Any], LaunchOptions]:
        kwargs, given = _arguments.split_detach(self._function, kwargs)
        return kwargs, _changed(self._options, given) if given else self._options

    def _launch(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], options: LaunchOptions
    ) -> LaunchHandle[ElementT]:
        try:
            from troupe.launch import _submit

            _arguments.check(
                self._function, args, kwargs, (*_option_names(options.mode), *OF_ONE_LAUNCH)
            )
            return _submit.submit(
                self._function,
                args,
                kwargs,
                options,
                place=self._place,
                without_place=self._without_place,
            )
        except (
            AttributeError,
            ImportError,
        ) as error:  # of the runtime's own imports, or of what the function takes along
            from troupe._code import shadows

            shadowed = shadows.text_of(sys.path)
            if shadowed:
                error.add_note(f"troupe: {shadowed}")
            raise

    def _place(self, options: LaunchOptions) -> tuple[Any, LaunchOptions]:
        """Return the session of one launch, and its options on that cluster: those of the function,
        and what a front door reads at each call."""
        from troupe.launch import _submit

        return _submit.session_for(options.remote), options

    def _without_place(self, session: Any) -> str:
        """What to say with an error that no node can hold the ranks."""
        return _hints.of_gpus(session)

    def distributed(self, /, *args: P.args, **kwargs: P.kwargs) -> list[ElementT]:
        """Runs the launch to its marker and returns the list of results by rank.

        All arguments are the function's.

        Blocks; prints progress and the ranks' output, each line with its rank. Raises LaunchError
        (also an instance of the failing rank's exception type), GetTimeoutError over the option
        `timeout`, LaunchCancelledError, and what `submit` raises. Ctrl-C cancels the launch:
        KeyboardInterrupt is raised in its ranks, which have `stop_grace` seconds; a second Ctrl-C
        ends them at once.

            results = train.distributed(epochs=3)
        """
        from troupe.launch import _progress

        own, options = self._split(kwargs)
        results: list[ElementT] = _progress.run(
            self._launch(args, own, options), quiet=options.quiet
        )
        return results


@overload
def distributed(
    fn: Callable[Parameters, Result], /, **options: Unpack[_typed_options.LaunchOptions]
) -> DistributedFunction[Parameters, Result, Result]: ...
@overload
def distributed(**options: Unpack[_typed_options.LaunchOptions]) -> LaunchDecorator: ...
@_hints.explained
def distributed(
    fn: Callable[..., Any] | None = None,
    *,
    gpus: int | None = None,
    processes: int | None = None,
    gpu_type: str | None = None,
    cpus_per_rank: float = 1,
    memory: float | str | None = None,
    remote: bool = False,
    max_attempts: int = 1,
    timeout: float | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    inherit_env: Iterable[str] = (),
    name: str | None = None,
    strategy: str = "PACK",
    priority: int = 0,
    label_selector: Mapping[str, str] | None = None,
    within: str | None = None,
    near: str | None = None,
    stop_grace: float = STOP_GRACE_S,
    exit_grace: float = _checks.EXIT_GRACE_S,
    quiet: bool = False,
    infeasible: str | None = None,
    preimport: Iterable[str] = (),
    tracking: bool | None = None,
    backend: str | None = None,
    on_rank_death: str = "fail",
    min_processes: int | None = None,
    reform_timeout: float = REFORM_TIMEOUT_S,
    hang_timeout: float | None = None,
) -> Any:
    """Makes a function that every rank of a launch runs with the same arguments.

    Exactly one of `gpus` (one GPU and `cpus_per_rank` CPUs for each rank) and `processes` (CPUs
    only) is the number of ranks over all nodes. `memory`, of each rank: bytes, or "80GiB"; it is
    for placing, nobody is held to it. `remote=True` uses the cluster of `troupe.init()` or
    TROUPE_ADDRESS, else an embedded one on this machine. `max_attempts`: the whole gang is started
    again after a failure. `timeout` in seconds from submission until it is told to stop, queueing
    included. `stop_grace`: seconds from there, from Ctrl-C or `cancel()`, until SIGKILL; meanwhile
    the ranks' code has KeyboardInterrupt or SystemExit raised in it (2 s after another rank's
    failure). `exit_grace`: seconds that a rank has from its result to the end of its process, for
    threads, children and exit handlers. `preimport`: modules that the ranks' processes have
    imported when they are forked (docs/runtime_env.md). `priority`: of what waits the highest is
    first; whether it also ends what runs is the cluster's policy. `label_selector`, `within`,
    `near`: which nodes, and how near to each other (docs/placement.md). `quiet`: no status lines
    (nor with TROUPE_QUIET=1); they go to stderr. `infeasible="wait"`: what no node can hold waits
    for one that joins, instead of being refused. `tracking=False`: no run in MLflow where its
    address is set (docs/mlflow.md); True: one in any case. `backend="troupe"`: groups of torch that
    name no backend are of Troupe's own, where their tensors are on CPUs (docs/collectives.md);
    None: torch chooses. `on_rank_death`: what it means that a rank is killed, lost with its node or
    ends without a value, once all run (docs/recovery.md). "fail": the launch fails; "shrink": the
    others go on in a smaller group, and the result has a RankLost in its place; "replace": another
    process takes its place, and runs the function from its beginning. Both while at least
    `min_processes` (default 1) have not died; all must come to the new group within
    `reform_timeout` seconds, by `troupe.train.attempts()`. What a rank raises is a failure in any
    case. `hang_timeout`: a rank that has kept others waiting in a collective for so many seconds is
    ended, which is a death as any other; None: it is only warned of.

        @distributed(processes=4)
        def train(epochs): ...
    """
    options = _options(
        "distributed",
        gpus=gpus,
        processes=processes,
        gpu_type=gpu_type,
        cpus_per_rank=cpus_per_rank,
        memory=memory,
        remote=remote,
        max_attempts=max_attempts,
        timeout=timeout,
        runtime_env=runtime_env,
        inherit_env=inherit_env,
        name=name,
        strategy=strategy,
        priority=priority,
        label_selector=label_selector,
        within=within,
        near=near,
        stop_grace=stop_grace,
        exit_grace=exit_grace,
        quiet=quiet,
        infeasible=infeasible,
        preimport=preimport,
        tracking=tracking,
        backend=backend,
        on_rank_death=on_rank_death,
        min_processes=min_processes,
        reform_timeout=reform_timeout,
        hang_timeout=hang_timeout,
    )
    if fn is not None:
        return DistributedFunction(fn, options)
    return lambda function: DistributedFunction(function, options)


@overload
def ray_launch(
    fn: Callable[Parameters, Result], /, **options: Unpack[_typed_options.DriverOptions]
) -> DistributedFunction[Parameters, Result, Result | None]: ...
@overload
def ray_launch(**options: Unpack[_typed_options.DriverOptions]) -> DriverDecorator: ...
@_hints.explained
def ray_launch(
    fn: Callable[..., Any] | None = None,
    *,
    gpus: int | None = None,
    processes: int | None = None,
    gpu_type: str | None = None,
    cpus_per_rank: float = 1,
    memory: float | str | None = None,
    remote: bool = False,
    max_attempts: int = 1,
    timeout: float | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    inherit_env: Iterable[str] = (),
    name: str | None = None,
    strategy: str = "PACK",
    priority: int = 0,
    label_selector: Mapping[str, str] | None = None,
    within: str | None = None,
    near: str | None = None,
    stop_grace: float = STOP_GRACE_S,
    exit_grace: float = _checks.EXIT_GRACE_S,
    api: str | None = "troupe",
    quiet: bool = False,
    infeasible: str | None = None,
    preimport: Iterable[str] = (),
    tracking: bool | None = None,
    backend: str | None = None,
) -> Any:
    """Makes a function that rank 0 of a launch runs as the driver; parameters as `distributed`.

    The driver is connected to exactly the launch's nodes and may use what the launch reserved there
    for actors and placement groups; `troupe.launch.current().run(...)` reaches all ranks. The
    result is a list by rank in which rank 0's value is the function's and the others are None.

    `import ray` in the function, and in what it starts, gives Troupe (`troupe.ray_compat`). With
    `api="ray"` a real Ray cluster is started on the launch's nodes, whose driver the function is:
    it finds it by `ray.init()`, and has to bring Ray on the nodes (docs/ray.md). A process of Ray's
    that ends before the function does fails the launch with RayProcessDiedError. `api=None`:
    `import ray` is what is installed.

        @ray_launch(gpus=16, api="ray")
        def tune(): ...
    """
    options = _options(
        "driver",
        gpus=gpus,
        processes=processes,
        gpu_type=gpu_type,
        cpus_per_rank=cpus_per_rank,
        memory=memory,
        remote=remote,
        max_attempts=max_attempts,
        timeout=timeout,
        runtime_env=runtime_env,
        inherit_env=inherit_env,
        name=name,
        strategy=strategy,
        priority=priority,
        label_selector=label_selector,
        within=within,
        near=near,
        stop_grace=stop_grace,
        exit_grace=exit_grace,
        api=api,
        quiet=quiet,
        infeasible=infeasible,
        preimport=preimport,
        tracking=tracking,
        backend=backend,
    )
    if fn is not None:
        return DistributedFunction(fn, options)
    return lambda function: DistributedFunction(function, options)


@_pickled.maker("launch_function")
def _launch_function(function: Callable[..., Any], options: Any) -> Any:
    """What `@distributed` and `@ray_launch` make of one."""
    return DistributedFunction(function, options)
