"""The table of the options of tasks: remote functions.

A new option is an entry here, or among those that actors have too, and the code that uses it.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from troupe._actors.method_table import CallOptions, ReturnsOptions
from troupe._actors.option_table import ActorOptions, PlacedOptions
from troupe._typed.option import FOR_RAY, Option, table_of

RETRIES = 3


def _whole(least: int, also: str) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> int | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be a whole number, or {also}, not {value!r}")
        if not least <= value < 1 << 31:
            raise ValueError(
                f"{name} must be a whole number of at least 0, or {also}, not {value!r}"
            )
        return value

    return check


def _name(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"name must be a text, not {value!r}")


class TaskOnlyOptions(TypedDict, total=False):
    """Options of tasks alone."""

    max_retries: Annotated[
        int | None,
        Option(
            None,
            "How often a task is made again when its process is lost; -1: always. "
            f"What did not begin is not counted. None: {RETRIES}.",
            _whole(-1, "-1 for any number"),
        ),
    ]
    max_calls: Annotated[
        int | None,
        Option(
            None,
            "How many tasks of the function a process runs before it ends, for memory that is not "
            "given back; 0: any number. None: 1 with `num_gpus`, else 0.",
            _whole(0, "0 for any number"),
        ),
    ]


class TaskOptions(PlacedOptions, CallOptions, TaskOnlyOptions, total=False):
    """Options of a remote function, `num_returns` aside."""

    name: Annotated[
        str | None, Option(None, "Name of its tasks, for people. None: the function's.", _name)
    ]
    enable_task_events: Annotated[bool | None, Option(None, FOR_RAY)]


class RemoteOptions(ActorOptions, CallOptions, TaskOnlyOptions, total=False):
    """Options of `@remote`, of a class or a function, `num_returns` aside."""


TASKS = table_of(ReturnsOptions, TaskOptions)
