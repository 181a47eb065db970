"""The table of the options of actors, and of those that tasks have in common with them.

A new option is an entry here, and the code that uses it: what `@troupe.remote` and `.options()`
take and say, the checks, the fields of ActorSpec, what the actor's process is told, and what type
checkers see are made of the table.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from troupe._base import checks as _checks, job as _job, words as _words
from troupe._cluster import resources as _resources
from troupe._cluster.options.placed import INFEASIBLE, PRIORITY
from troupe._typed.option import FOR_RAY, Option, table_of

if TYPE_CHECKING:
    from troupe._base.strategies import (
        NodeAffinitySchedulingStrategy,
        NodeLabelSchedulingStrategy,
        PlacementGroupSchedulingStrategy,
    )
    from troupe._cluster.groups import PlacementGroup


def _where_given(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return the check, which None, as in Ray's options, passes."""
    return lambda name, value: None if value is None else check(name, value)


def _amount(name: str, value: Any) -> None:
    _resources.check_amount(name, value)


def _gpus(name: str, value: Any) -> None:
    _resources.check_amount(name, value)
    if not _words.current.late_checks():
        _resources.check_gpus(value)


def _at_least(least: int, otherwise: str) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number{otherwise}, not {value!r}")

    return _where_given(check)


def _lifetime(name: str, value: Any) -> None:
    if value not in (None, "detached", "non_detached"):
        raise ValueError(f"lifetime must be None, 'detached' or 'non_detached', not {value!r}")


def _truth_or_none(name: str, value: Any) -> None:
    if value not in (None, True, False):
        raise ValueError(f"{name} must be True, False or None, not {value!r}")


def _groups(name: str, groups: Any) -> None:
    if not isinstance(groups, Mapping):
        raise ValueError(f"concurrency_groups must be a dict of names and limits, not {groups!r}")
    for each, limit in groups.items():
        if not isinstance(each, str) or not each or not isinstance(limit, int) or limit < 1:
            raise ValueError(
                f"concurrency_groups: {each!r}: {limit!r} is no name of a group with a limit of at "
                "least 1"
            )


def _name(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"name must be a string, or None for none, not {value!r}")
    if value == "":
        raise ValueError(
            "name cannot be an empty string: None, or no name=, is for an actor without one"
        )


class PlacedOptions(TypedDict, total=False):
    """Options that tasks and actors have in common."""

    num_cpus: Annotated[
        float | None,
        Option(
            None,
            "CPUs that it holds. None: a task holds one; an actor needs one to be placed, and "
            "holds none while it runs.",
            _where_given(_amount),
        ),
    ]
    num_gpus: Annotated[
        float | None,
        Option(None, "GPUs that it holds: whole ones, or a part of one.", _where_given(_gpus)),
    ]
    memory: Annotated[
        float | None,
        Option(
            None,
            "Bytes of memory that it is to have. It is for placing: nobody is held to it.",
            _where_given(_amount),
        ),
    ]
    resources: Annotated[
        Mapping[str, float] | None,
        Option(
            None,
            "Amounts of other resources that it holds, by name.",
            _where_given(lambda name, value: _resources.check_custom(value)),
        ),
    ]
    runtime_env: Annotated[
        Mapping[str, Any] | None,
        Option(None, "What its code needs where it runs (docs/guides/runtime_env.md)."),
    ]
    scheduling_strategy: Annotated[
        "Literal['DEFAULT', 'SPREAD'] | PlacementGroupSchedulingStrategy "
        "| NodeAffinitySchedulingStrategy | NodeLabelSchedulingStrategy | None",
        Option(
            None,
            '"SPREAD", or a strategy of `troupe.util.scheduling_strategies` '
            "(docs/guides/placement.md).",
        ),
    ]
    placement_group: Annotated[
        "PlacementGroup | Literal['default'] | None",
        Option("default", "As a PlacementGroupSchedulingStrategy of this group. None: in none."),
    ]
    placement_group_bundle_index: Annotated[
        int, Option(-1, "The bundle of `placement_group`; -1: any.")
    ]
    placement_group_capture_child_tasks: Annotated[
        bool | None, Option(None, "What it makes goes into `placement_group` too.")
    ]
    accelerator_type: Annotated[
        str | None, Option(None, "Which GPUs, as the nodes' labels name them.")
    ]
    label_selector: Annotated[
        Mapping[str, str] | None,
        Option(None, "Labels that the node has (docs/guides/placement.md)."),
    ]
    fallback_strategy: Annotated[
        Sequence[Mapping[str, Any]] | None,
        Option(None, "Other label selectors, tried in order where nothing fits the first."),
    ]
    priority: Annotated[
        int | None,
        replace(
            PRIORITY,
            default=None,
            check=lambda name, value: _resources.check_priority(value or 0),
            wire="priority",
            sent=lambda value: value or 0,
        ),
    ]
    infeasible: Annotated[Literal["refuse", "wait"] | None, INFEASIBLE]
    preimport: Annotated[
        Iterable[str] | None,
        Option(
            None,
            "Modules that its process has imported when it is forked (docs/guides/runtime_env.md).",
            lambda name, value: _checks.check_preimport(value or ()),
        ),
    ]


class ActorOptions(PlacedOptions, total=False):
    """Options of an actor class."""

    name: Annotated[
        str | None,
        Option(
            None,
            "Its name; of an actor, that by which `get_actor` finds it.",
            _where_given(_name),
            wire="name",
            sent=lambda value: value or "",
        ),
    ]
    namespace: Annotated[
        str | None,
        Option(
            None,
            "Where its name is. None: in the program's namespace.",
            lambda name, value: _job.check_namespace(value),
        ),
    ]
    lifetime: Annotated[
        Literal["detached", "non_detached"] | None,
        Option(
            None,
            '"detached": it outlives the program that made it.',
            _lifetime,
            wire="detached",
            sent=lambda value: value == "detached",
        ),
    ]
    max_concurrency: Annotated[
        int | None,
        Option(
            None,
            "How many of its calls run at once. None: 1, or 1000 where a method is `async def`.",
            _at_least(1, " of at least 1"),
            wire="max_concurrency",
            sent=lambda value: value or 1,
            told="max_concurrency",
        ),
    ]
    max_restarts: Annotated[
        int | None,
        Option(
            None,
            "How often it is started again when its process dies; -1: always. None: never.",
            _at_least(-1, ", or -1 for any number"),
            wire="max_restarts",
            sent=lambda value: value or 0,
        ),
    ]
    max_task_retries: Annotated[
        int | None,
        Option(
            None,
            "How often a call is made again when the process is lost; -1: always. None: never.",
            _at_least(-1, ", or -1 for any number"),
        ),
    ]
    get_if_exists: Annotated[
        bool | None,
        Option(
            None,
            "The actor that has the name already is taken, where there is one.",
            wire="get_if_exists",
            sent=bool,
        ),
    ]
    max_pending_calls: Annotated[
        int | None,
        Option(
            None,
            "How many calls a process may have without an answer, before another one is "
            "PendingCallsLimitExceeded. None, -1: any number.",
            _at_least(-1, " of at least 1, or -1 for no limit"),
        ),
    ]
    concurrency_groups: Annotated[
        Mapping[str, int] | None,
        Option(
            None,
            "Names of groups of methods, and how many calls of each run at once.",
            _where_given(_groups),
            told="groups",
        ),
    ]
    allow_out_of_order_execution: Annotated[
        bool | None,
        Option(
            None,
            "Calls may overtake those that wait for their arguments. None: where calls run beside "
            "each other.",
            _truth_or_none,
        ),
    ]
    exit_grace: Annotated[
        float | None,
        Option(
            None,
            "Seconds that its process has for its end, for threads, children and exit handlers. "
            f"None: {_checks.EXIT_GRACE_S:g}.",
            _where_given(_checks.check_grace),
            told="exit_grace",
        ),
    ]
    enable_task_events: Annotated[bool | None, Option(None, FOR_RAY)]
    enable_tensor_transport: Annotated[bool | None, Option(None, FOR_RAY)]
    object_store_memory: Annotated[float | None, Option(None, FOR_RAY)]


ACTORS = table_of(ActorOptions)
PLACED = table_of(PlacedOptions)
