"""`@tune.sweep`: a function of its hyperparameters, and the sweeps that search them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from troupe import _pickled
from troupe._base import checks as _checks
from troupe._cluster import session, status_lines
from troupe._typed import option as _option
from troupe.launch import _hints
from troupe.tune import _sweep_options
from troupe.tune._search import space_tree
from troupe.tune._search.domains import Domain
from troupe.tune._sweep_options import SweepOptions
from troupe.tune._sweep_table import SWEEPS, SweepOptions as GivenOptions
from troupe.tune._tuner import Tuner

if TYPE_CHECKING:
    from typing import Unpack

    from troupe.tune._handle import SweepHandle
    from troupe.tune._results import ResultGrid


@dataclass(frozen=True)
class ByKeyword:
    """A function of hyperparameters as a trial's function of a configuration."""

    function: Callable[..., Any]

    def __call__(self, config: Mapping[str, Any], **parameters: Any) -> Any:
        return self.function(**config, **parameters)

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", "trial")


class SweepFunction:
    """A function of hyperparameters, and how it is swept.

    Calling it runs it here, in this process, with the values given.
    """

    __name__: str

    def __init__(self, function: Callable[..., Any], options: SweepOptions) -> None:
        _hints.check_function(function, "@sweep", "tune.sweep(...)({})")
        if not callable(function):
            raise TypeError(f"@sweep decorates a function, not {function!r}")
        functools.update_wrapper(self, function)
        self._function, self._options = function, options
        self._check_names(options.space, "space=")

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        from troupe.tune import _here

        self._refuse_domains(args, kwargs)
        return _here.call(self._function, args, kwargs, quiet=self._options.quiet)

    def __repr__(self) -> str:
        return f"<sweep of {self.__name__}, {self._options.trials} trials>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.sweep_function, (self._function, _pickled.fields_of(self._options))

    @_option.documented(GivenOptions)
    def options(self, /, **options: Unpack[GivenOptions]) -> SweepFunction:
        """Return the function with other options of its sweeps: those of the decorator.

        Does not block. Raises TypeError or ValueError as the decorator does.

            train.options(trials=8, name="narrow").sweep(lr=tune.loguniform(1e-3, 1e-2))
        """
        return type(self)(self._function, self._options.changed(options))

    def sweep(self, /, *args: object, **kwargs: object) -> ResultGrid:
        """Runs the sweep to its end and returns its ResultGrid.

        All arguments are the function's; of those that are domains (`lr=tune.loguniform(1e-4,
        1e-1)`) each trial gets a value, and constants take the place of what `space=` says of them.

        Blocks. A trial that fails is no error of this: its Result has it. Ctrl-C ends the trials,
        KeyboardInterrupt is raised, and the sweep can be gone on with (`troupe sweep resume NAME`).
        Raises TypeError for arguments that the function does not take, ConnectionError without a
        cluster (`remote=True`), and what `Tuner.fit` does.

            grid = train.sweep(epochs=30)
            print(grid.get_best_result().config)
        """
        tuner = self._tuner(args, kwargs)
        connect(self._options.remote)
        return tuner.fit()

    def submit(self, /, *args: object, **kwargs: object) -> SweepHandle:
        """Starts the same sweep in a process of the cluster, which outlives this program, and
        returns its SweepHandle at once.

        Where that process is lost, another one goes on with the sweep. A cluster of this program's
        own ends with it, and the sweep there: that is said, and it can be gone on with. Raises as
        `sweep` does for what can never be right, LaunchError where the function cannot travel.

            handle = train.options(remote=True).submit(epochs=30)
            print(handle.status()); handle.result()
        """
        from troupe.tune import _handle

        tuner = self._tuner(args, kwargs)
        connect(self._options.remote)
        return _handle.submit(tuner)

    def _tuner(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tuner:
        space, parameters = self._space(args, kwargs)
        given = self._options.given(ByKeyword(self._function), parameters)
        return Tuner(
            given,
            param_space=space,
            tune_config=self._options.tune_config(),
            run_config=self._options.run_config(),
        )

    def _space(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (space of each trial's configuration, large values that all trials share).

        Raises TypeError for arguments that do not fit.
        """
        signature = _signature(self._function)
        given = dict(kwargs)
        if signature is not None:
            try:
                bound = signature.bind_partial(*args, **kwargs)
            except TypeError as error:
                raise TypeError(
                    f"{self.__name__}{signature}: {error}{self._meant(kwargs)}"
                ) from None
            given = _by_name(signature, bound)
        elif args:
            raise TypeError(f"{self.__name__}() does not tell its parameters: give them by name")
        space = {**self._options.space, **given}
        parameters = {
            name: space.pop(name) for name in list(space) if not _is_of_config(space[name])
        }
        if signature is not None:
            try:
                signature.bind(**space, **parameters)
            except TypeError as error:
                raise TypeError(
                    f"{self.__name__}{signature}: {error}: neither space= nor the call gives it"
                ) from None
        return space, parameters

    def _check_names(self, space: Mapping[str, Any], what: str) -> None:
        signature = _signature(self._function)
        if signature is None or any(
            each.kind is each.VAR_KEYWORD for each in signature.parameters.values()
        ):
            return
        for name in space:
            if name not in signature.parameters:
                raise TypeError(
                    f"@sweep({what}) has {name!r}, and {self.__name__}{signature} has no such "
                    "parameter"
                    f"{_checks.or_nearest(name, signature.parameters)}"
                )

    def _meant(self, kwargs: Mapping[str, Any]) -> str:
        return "".join(
            f"\n  {name}= as an option of the sweep: {self.__name__}.options({name}=...)"
            for name in kwargs
            if name in SWEEPS
        )

    def _refuse_domains(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        named = [
            *(f"argument {place}" for place, each in enumerate(args, 1) if _is_searched(each)),
            *(f"{name}=" for name, each in kwargs.items() if _is_searched(each)),
        ]
        if named:
            raise TypeError(
                f"{self.__name__}() runs the function here, once, and {named[0]} is something to "
                f"be searched: {self.__name__}.sweep(...) "
                "searches it"
            )


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """None of a builtin that does not tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _by_name(signature: inspect.Signature, bound: inspect.BoundArguments) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise TypeError(
                f"the parameter {name!r} has no name that a configuration could give it by: trials "
                "are given all by name"
            )
        found.update(value if kind is inspect.Parameter.VAR_KEYWORD else {name: value})
    return found


def _is_searched(value: Any) -> bool:
    return any(isinstance(leaf, Domain) or _is_grid(leaf) for _, leaf in space_tree.leaves(value))


def _is_grid(leaf: Any) -> bool:
    return isinstance(leaf, Mapping) and set(leaf) == {"grid_search"}


def _is_of_config(value: Any) -> bool:
    """Return True if the value belongs to the configuration, which is searched and shown to people;
    all else is shared as it is."""
    return all(
        leaf is None or isinstance(leaf, (bool, int, float, str, Domain, Mapping, list, tuple))
        for _, leaf in space_tree.leaves(value)
    )


def connect(remote: bool) -> None:
    """The cluster that a sweep runs on is that of this process from now on.

    Raises ConnectionError, JoinError; RuntimeError where this process is connected to another one.
    """
    import troupe
    from troupe._cluster import connect as connecting

    current = session.current_or_none()
    if current is not None:
        if not remote and not current.in_process and current.embedded is None and not current.guest:
            raise RuntimeError(
                f"this program is connected to the cluster at {current.address}: "
                "@tune.sweep(remote=True) runs its trials there, and "
                "without it they run on this machine, in a program that is connected to no other"
            )
        return
    if remote:
        session.set_current(connecting.from_environment())
        return
    troupe.init(address="local")
    held = ", ".join(
        f"{amount:g} {name}"
        for name, amount in troupe.cluster_resources().items()
        if name in ("CPU", "GPU")
    )
    status_lines.say(f"troupe.tune: on this machine: {held}")


@overload
def sweep(fn: Callable[..., Any], /) -> SweepFunction: ...
@overload
def sweep(
    **options: Unpack[GivenOptions],
) -> Callable[[Callable[..., Any]], SweepFunction]: ...
@_option.documented(GivenOptions)
def sweep(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a function of hyperparameters that is swept: run by trials, as many at once as there is
    room for, each with other values.

    Does not block. Raises TypeError or ValueError for what can never be right.

        @tune.sweep(trials=64, gpus=0.5, metric="acc", mode="max", stop_early="asha", max_t=20,
                    space={"lr": tune.loguniform(1e-4, 1e-1)})
        def train(lr, epochs=20): ...

        grid = train.sweep(epochs=30)
    """
    if fn is not None and not callable(fn):
        raise TypeError(
            f"@sweep({fn!r}) does not say what it is: @tune.sweep(space={{...}}, trials=64, "
            "metric='acc', mode='max')"
        )
    _sweep_options.refuse_unknown("@sweep", options)
    made = SweepOptions(**options)
    if fn is not None:
        return SweepFunction(fn, made)
    return lambda function: SweepFunction(function, made)


@_pickled.maker("sweep_function")
def _sweep_function(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """A function of `@tune.sweep` with its options."""
    return SweepFunction(function, _pickled.of_fields(SweepOptions, options))


_pickled.named_in("troupe._pickled", ByKeyword)
_pickled.named_in("troupe.tune", SweepFunction, sweep)
