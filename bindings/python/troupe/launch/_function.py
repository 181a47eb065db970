"""`@distributed` and `@ray_launch`: what they check, and the function they make."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from troupe import _pickled
from troupe._base import checks as _checks
from troupe._typed import ElementT, LaunchFunctionOf, P, T, option as _option
from troupe.launch import _arguments, _hints, _options
from troupe.launch._options import OF_ONE_LAUNCH, LaunchOptions, table as _launches

if TYPE_CHECKING:
    from typing import ParamSpec, TypeVar, Unpack

    from troupe._typed.decorators import DriverDecorator, LaunchDecorator
    from troupe.launch._handle import LaunchHandle

    Parameters = ParamSpec("Parameters")
    Result = TypeVar("Result")


def _of_one_launch(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options among `given` that are one launch's, not the function's, checked."""
    asked = {name: value for name, value in given.items() if name in OF_ONE_LAUNCH}
    return _option.held(_launches.OF_ONE_LAUNCH, asked)


def options_of(called: str, given: Mapping[str, Any]) -> LaunchOptions:
    """Return the options of `distributed`, given to `called`, which also takes OF_ONE_LAUNCH.

    Raises TypeError or ValueError.
    """
    _refuse_unknown("distributed", given, called)
    own = {name: value for name, value in given.items() if name not in OF_ONE_LAUNCH}
    return replace(_options.checked("distributed", own, called), **_of_one_launch(given))


def _refuse_unknown(mode: str, given: Mapping[str, Any], called: str) -> None:
    known = (*_options.options_of_mode(mode), *OF_ONE_LAUNCH)
    _checks.refuse_unknown(called, given, known, meant=_launches.MEANT)


def _changed(old: LaunchOptions, given: Mapping[str, Any]) -> LaunchOptions:
    """`old` with what is given, each option checked as the decorator checks it."""
    _refuse_unknown(old.mode, given, "options()")
    asked = {name: value for name, value in given.items() if name not in OF_ONE_LAUNCH}
    if "on_rank_death" in _options.options_of_mode(old.mode) and "on_rank_death" not in given:
        asked["on_rank_death"] = old.on_rank_death
        asked["min_processes"] = given.get("min_processes", old.min_processes)
    counted = "gpus" in given or "processes" in given
    if not counted:
        asked["gpus" if old.gpus else "processes"] = old.ranks
    if "gpu_type" not in given and not (counted and asked.get("gpus") is None):
        asked["gpu_type"] = old.gpu_type or None
    new = _options.checked(old.mode, asked)
    fields = _of_one_launch(given)
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
        decorator = _options.decorator(options.mode)
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
        self, /, **options: Unpack[_launches.ChangedLaunchOptions]
    ) -> DistributedFunction[P, T, ElementT]:
        """Return the function with other options of its launches: those of the decorator, `detach`
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
                self._function,
                args,
                kwargs,
                (*_options.options_of_mode(options.mode), *OF_ONE_LAUNCH),
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
        ) as error:  # raised by the runtime's own imports, or by the function's captured values
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
        """Return a hint for the error that no node can hold the ranks."""
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
    fn: Callable[Parameters, Result], /, **options: Unpack[_launches.DistributedOptions]
) -> DistributedFunction[Parameters, Result, Result]: ...
@overload
def distributed(**options: Unpack[_launches.DistributedOptions]) -> LaunchDecorator: ...
@_option.documented(_launches.DistributedOptions)
def distributed(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function that every rank of a launch runs with the same arguments.

    Does not block: a launch begins by `train.distributed(...)` or `train.submit(...)`. Raises
    TypeError or ValueError for options that are not right.

        @distributed(processes=4)
        def train(epochs): ...
    """
    return _decorated("distributed", fn, options)


@overload
def ray_launch(
    fn: Callable[Parameters, Result], /, **options: Unpack[_launches.DriverOptions]
) -> DistributedFunction[Parameters, Result, Result | None]: ...
@overload
def ray_launch(**options: Unpack[_launches.DriverOptions]) -> DriverDecorator: ...
@_option.documented(_launches.DriverOptions)
def ray_launch(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function that rank 0 of a launch runs as the driver.

    The driver is connected to exactly the launch's nodes and may use what the launch reserved there
    for actors and placement groups; `troupe.launch.current().run(...)` reaches all ranks. The
    result is a list by rank in which rank 0's value is the function's and the others are None.

    `import ray` in the function, and in what it starts, gives Troupe (`troupe.ray_compat`). With
    `api="ray"` a real Ray cluster is started on the launch's nodes, whose driver the function is:
    it finds it by `ray.init()`, and has to bring Ray on the nodes (docs/coming/ray.md). A process
    of Ray's that ends before the function does fails the launch with RayProcessDiedError. Does not
    block; raises TypeError or ValueError for options that are not right.

        @ray_launch(gpus=16, api="ray")
        def tune(): ...
    """
    return _decorated("driver", fn, options)


def _decorated(mode: str, fn: Callable[..., Any] | None, given: Mapping[str, Any]) -> Any:
    if fn is not None and not callable(fn):
        raise TypeError(
            f"@{_options.decorator(mode)}({fn!r}) does not say of what: {_launches.COUNT}"
        )
    options = _options.checked(mode, given)
    if fn is not None:
        return DistributedFunction(fn, options)
    return lambda function: DistributedFunction(function, options)


@_pickled.maker("launch_function")
def _launch_function(function: Callable[..., Any], options: Any) -> Any:
    """Rebuild a function decorated with `@distributed` or `@ray_launch`."""
    return DistributedFunction(function, options)
