"""Validated options of the launch decorators."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from troupe import _pickled
from troupe._base import checks as _checks
from troupe._cluster import selectors
from troupe._typed import option as _option
from troupe.launch._options import table as _launches

STOP_GRACE_S = _launches.STOP_GRACE_S
OF_ONE_LAUNCH = tuple(_launches.OF_ONE_LAUNCH)
"""Options that `f.options()` takes and the decorators do not."""
_WHERE = ("label_selector", "within", "near")
_NOT_HELD = ("gpus", "processes", *_WHERE)  # stored as `ranks`, `gpus` and `where`
_TABLES = {"distributed": _launches.DISTRIBUTED, "driver": _launches.DRIVER}


class _Held:
    """A base of LaunchOptions."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.launch_options, (_pickled.fields_of(self),)


def _fields() -> list[tuple[str, Any, Any]]:
    """Return the fields of LaunchOptions: those that no option is by itself, and the options."""
    own: list[tuple[str, Any, Any]] = [
        ("mode", str, dataclasses.field()),
        ("ranks", int, dataclasses.field()),
        ("gpus", bool, dataclasses.field()),
    ]
    for name, each in _launches.ALL.items():
        if name not in _NOT_HELD:
            of_drivers = name in _launches.DriverOnlyOptions.__annotations__
            default = None if of_drivers else each.check(name, each.default)
            made = lambda default=default: default  # noqa: E731
            own.append((name, Any, dataclasses.field(default_factory=made)))
    return [
        *own,
        ("where", dict, dataclasses.field(default_factory=dict)),
        ("nodes", int, 0),
        # Default without `tracking`: each launch has a run wherever MLflow is installed, made
        # before it starts
        ("tracks", bool, False),
        ("run_name", str, ""),  # name of its run in MLflow; "": the launch's name
        ("run_experiment", str, ""),  # in which the run is; "": as the caller's variables say
        ("run_tags", Mapping, dataclasses.field(default_factory=dict)),
        # Facts a front door records with the launch
        ("about", Mapping, dataclasses.field(default_factory=dict)),
        # Origin of the launch, for people: troupe.launch, or a front door
        ("door", str, "launch"),
    ]


if TYPE_CHECKING:

    class LaunchOptions(_Held):
        """The validated options of a decorator; frozen. Its fields are `_fields()`."""

        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

        def __init__(self, **fields: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

else:
    LaunchOptions = dataclasses.make_dataclass(
        "LaunchOptions",
        _fields(),
        bases=(_Held,),
        frozen=True,
        namespace={
            "__doc__": "What a decorator was given, checked; frozen.",
            "__module__": __name__,
        },
    )


def options_of_mode(mode: str) -> Mapping[str, _option.Option]:
    """Return the options of the decorator whose launches have this mode."""
    return _TABLES[mode]


def decorator(mode: str) -> str:
    """Return the name of the decorator whose launches have this mode."""
    return "distributed" if mode == "distributed" else "ray_launch"


def checked(mode: str, given: Mapping[str, Any], called: str = "") -> LaunchOptions:
    """Return the options of a launch, of those that are given.

    Args:
        mode: of the launch, "distributed" or "driver".
        given: options by name.
        called: what they were given to, where it is not the decorator.

    Raises:
        TypeError or ValueError, which say what could be meant.
    """
    asked = called or f"@{decorator(mode)}"
    _checks.refuse_unknown(asked, given, options_of_mode(mode), meant=_launches.MEANT)
    options = _option.complete(options_of_mode(mode), given)
    gpus, processes = options["gpus"], options["processes"]
    if (gpus is None) == (processes is None):
        both = "neither" if gpus is None else "both"
        raise TypeError(
            f"{asked} takes exactly one of gpus= and processes=, {both} given: "
            f"{asked}({'..., ' if called else ''}processes=4)"
        )
    if options["gpu_type"] is not None and gpus is None:
        raise TypeError(f"{asked}: gpu_type= goes with gpus=")
    held = _option.held(options_of_mode(mode), options)
    counted = "processes" if gpus is None else "gpus"
    ranks = _launches.count(counted, options[counted])
    _check_deaths(ranks, options)
    where = selectors.where(**{name: options[name] for name in _WHERE})
    fields = {name: value for name, value in held.items() if name not in _NOT_HELD}
    return LaunchOptions(mode=mode, ranks=ranks, gpus=gpus is not None, where=where, **fields)


def _check_deaths(ranks: int, options: Mapping[str, Any]) -> None:
    names = tuple(_launches.DistributedOnlyOptions.__annotations__)
    given = {name: options[name] for name in names if name in options}
    if any(value != _launches.ALL[name].default for name, value in given.items()):
        from troupe.launch import _deaths

        _deaths.check(ranks, *(given[name] for name in names))


@_pickled.maker("launch_options")
def _launch_options(fields: Mapping[str, Any]) -> Any:
    """Rebuild validated options from their fields."""
    return _pickled.of_fields(LaunchOptions, fields)
