"""The table of the options of launches.

A new option is an entry here, and the code that uses it. The decorators' signatures and docstrings,
their checks, `f.options()`, `submit_command`, flags of `troupe submit`, fields of LaunchSpec and
what type checkers see are made of the table.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypedDict

from troupe._base import checks as _checks, strategies as _strategies
from troupe._cluster import resources
from troupe._cluster.options.placed import INFEASIBLE, PRIORITY
from troupe._code import runtime_env as _runtime_env
from troupe._typed.option import Option, table_of

STOP_GRACE_S = 10.0
REFORM_TIMEOUT_S = 300.0
COUNT = "gpus=N for N ranks with a GPU each, or processes=N for ranks without"
MEANT = {
    "num_gpus": "gpus=N is the number of ranks, over all nodes, each with one GPU",
    "num_cpus": "processes=N is the number of ranks, and cpus_per_rank= what each has",
    "max_restarts": "max_attempts=",
    "max_retries": "max_attempts=",
    "env_vars": 'runtime_env={"env_vars": {...}}',
    "detach": "options(detach=True) of the function that it makes",
    **dict.fromkeys(
        (
            "num_workers",
            "num_processes",
            "nprocs",
            "nproc",
            "nproc_per_node",
            "ranks",
            "world_size",
            "n",
        ),
        COUNT,
    ),
}
"""What to write instead of options that other launchers have, by their names."""


def _text(name: str, value: Any) -> str:
    return value or ""


def _truth(name: str, value: Any) -> bool:
    return bool(value)


def count(name: str, value: Any) -> int:
    """Return a number of ranks or attempts as it is given. Raises TypeError for another value."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TypeError(f"{name} must be a whole number of at least 1, not {value!r}")
    return value


def _amount(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise TypeError(f"{name} must be a number of at least 0, not {value!r}")
    return value


def _seconds(name: str, value: Any) -> Any:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0
    ):
        raise ValueError(f"{name} must be more than 0 seconds, not {value!r}")
    return value


def _grace(name: str, value: Any) -> Any:
    _checks.check_grace(name, value)
    return value


def _names(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError(f"{name} must be a list of names, not a text")
    return tuple(value)


def _strategy(name: str, value: Any) -> Any:
    _strategies.check(value)
    return value


def _tracking(name: str, value: Any) -> Any:
    if value not in (None, True, False):
        raise TypeError(
            f"{name} must be True, False, or None for the rule of docs/guides/mlflow.md, "
            f"not {value!r}"
        )
    return value


def _backend(name: str, value: Any) -> Any:
    if value not in (None, "troupe"):
        raise ValueError(
            f"{name} must be 'troupe' (process groups that name no backend are Troupe's, on CPUs) "
            f"or None (torch chooses), not {value!r}; "
            "init_process_group() takes any by name"
        )
    return value


def _api(name: str, value: Any) -> Any:
    if value not in (None, "troupe", "ray"):
        raise ValueError(
            f"{name} must be 'troupe' (`import ray` is Troupe), 'ray' (a real Ray cluster is "
            f"started on the launch's nodes) or None, not {value!r}"
        )
    return value


def _detach(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return value


def _ms(seconds: float | None) -> int:
    return round((seconds or 0) * 1000)


class SharedOptions(TypedDict, total=False):
    """Options that all launches have."""

    gpus: Annotated[
        int | None,
        Option(
            None,
            "Ranks over all nodes, each with one GPU and `cpus_per_rank` CPUs. "
            "Exactly one of `gpus` and `processes` is given.",
        ),
    ]
    processes: Annotated[
        int | None, Option(None, "Ranks over all nodes, each with `cpus_per_rank` CPUs and no GPU.")
    ]
    gpu_type: Annotated[
        str | None,
        Option(
            None,
            "Which GPUs, as the nodes' labels name them.",
            _text,
            wire="gpu_type",
            flag="TYPE",
            unsaid="any",
        ),
    ]
    cpus_per_rank: Annotated[float, Option(1, "CPUs that each rank is to have.", _amount, flag="N")]
    memory: Annotated[
        float | str | None,
        Option(
            None,
            "Memory of each rank, in bytes or as '80GiB'. It is for placing: nobody is held to it.",
            lambda name, value: resources.bytes_of(value or 0),
            flag="BYTES",
            unsaid="none is asked for",
        ),
    ]
    remote: Annotated[
        bool,
        Option(
            False,
            "True: the cluster of `troupe.init()` or TROUPE_ADDRESS. "
            "False: an embedded one on this machine.",
            _truth,
        ),
    ]
    max_attempts: Annotated[
        int,
        Option(
            1,
            "How often the whole gang is started, the first time included; again after a failure.",
            count,
            wire="attempts_max",
        ),
    ]
    timeout: Annotated[
        float | None,
        Option(
            None,
            "Seconds from submission, with the time in the queue, until it is told to stop.",
            _seconds,
            wire="timeout_ms",
            sent=_ms,
            flag="SECONDS",
            unsaid="as long as it takes",
        ),
    ]
    runtime_env: Annotated[
        Mapping[str, Any] | None,
        Option(
            None,
            "What the ranks' code needs (docs/guides/runtime_env.md).",
            lambda name, value: _runtime_env.check(value),
        ),
    ]
    inherit_env: Annotated[
        Iterable[str],
        Option((), "Names of variables that travel from here to the ranks.", _names),
    ]
    name: Annotated[
        str | None,
        Option(
            None,
            "Name of the launch.",
            _text,
            flag="NAME",
            unsaid="the program's",
        ),
    ]
    strategy: Annotated[
        Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"],
        Option(
            "PACK",
            "How the ranks lie over the nodes: on few, or on many.",
            _strategy,
            wire="strategy",
            sent=_strategies.BY_NAME.__getitem__,
            flag="STRATEGY",
        ),
    ]
    priority: Annotated[int, replace(PRIORITY, wire="priority", flag="N")]
    label_selector: Annotated[
        Mapping[str, str] | None,
        Option(None, "Labels that the nodes have (docs/guides/placement.md)."),
    ]
    within: Annotated[
        str | None,
        Option(None, "All ranks lie in one part of the network of this level."),
    ]
    near: Annotated[
        str | None,
        Option(None, "As `within`, but only where there is such a part with room."),
    ]
    stop_grace: Annotated[
        float,
        Option(
            STOP_GRACE_S,
            "Seconds from `timeout`, Ctrl-C or `cancel()` until SIGKILL. Meanwhile the ranks' code "
            "has KeyboardInterrupt or SystemExit raised in it (2 s after another rank's failure).",
            _grace,
            wire="stop_grace_ms",
            sent=_ms,
        ),
    ]
    exit_grace: Annotated[
        float,
        Option(
            _checks.EXIT_GRACE_S,
            "Seconds that a rank has from its result to the end of its process, for threads, "
            "children and exit handlers.",
            _grace,
            wire="exit_grace_ms",
            sent=_ms,
            flag="SECONDS",
        ),
    ]
    quiet: Annotated[
        bool,
        Option(False, "No status lines, which go to stderr; nor with TROUPE_QUIET=1.", _truth),
    ]
    infeasible: Annotated[Literal["refuse", "wait"] | None, INFEASIBLE]
    preimport: Annotated[
        Iterable[str],
        Option(
            (),
            "Modules that the ranks' processes have imported when they are forked "
            "(docs/guides/runtime_env.md).",
            lambda name, value: _checks.check_preimport(value),
        ),
    ]
    tracking: Annotated[
        bool | None,
        Option(
            None,
            "True: a run in MLflow. False: none. None: one where MLflow's address is set "
            "(docs/guides/mlflow.md).",
            _tracking,
        ),
    ]
    backend: Annotated[
        Literal["troupe"] | None,
        Option(
            None,
            '"troupe": groups of torch that name no backend are of Troupe\'s own, where their '
            "tensors are on CPUs (docs/guides/collectives.md). None: torch chooses.",
            _backend,
        ),
    ]


class DriverOnlyOptions(TypedDict, total=False):
    """Options of `@ray_launch` alone."""

    api: Annotated[
        Literal["troupe", "ray"] | None,
        Option(
            "troupe",
            '"troupe": `import ray` is Troupe. "ray": a real Ray cluster is started on the '
            "launch's nodes (docs/coming/ray.md). None: `import ray` is what is installed.",
            _api,
        ),
    ]


class DistributedOnlyOptions(TypedDict, total=False):
    """Options of `@distributed` alone."""

    on_rank_death: Annotated[
        Literal["fail", "shrink", "replace"],
        Option(
            "fail",
            "Whether the others go on when a rank is killed, is lost with its node, or ends "
            'without a value (docs/guides/recovery.md). "fail": the launch fails. "shrink": the '
            "others go on in a smaller group, and the result has a RankLost in its place. "
            '"replace": another process takes its place, and runs the function from its beginning. '
            "What a rank raises is a failure in any case.",
            wire="on_rank_death",
            flag="POLICY",
        ),
    ]
    min_processes: Annotated[
        int | None,
        Option(
            None,
            "With shrink and replace, the ranks that must not have died.",
            wire="ranks_min",
            sent=lambda value: value or 1,
            flag="N",
            unsaid="1",
        ),
    ]
    reform_timeout: Annotated[
        float,
        Option(
            REFORM_TIMEOUT_S,
            "Seconds from a death until all have come to the next group, by "
            "`troupe.train.attempts()`.",
            wire="reform_ms",
            sent=_ms,
            flag="SECONDS",
        ),
    ]
    hang_timeout: Annotated[
        float | None,
        Option(
            None,
            "A rank that has kept others waiting in a collective for so many seconds is ended, "
            "which is a death as any other.",
            wire="hang_ms",
            sent=_ms,
            flag="SECONDS",
            unsaid="it is only warned of",
        ),
    ]


class OneLaunchOptions(TypedDict, total=False):
    """Options of one launch, which `f.options()` takes and the decorators do not."""

    detach: Annotated[
        bool,
        Option(
            False,
            "The launch outlives the process that submitted it.",
            _detach,
            wire="detached",
        ),
    ]
    idempotency_key: Annotated[
        str | None,
        Option(
            None,
            "A second submission with the same key returns the first one's launch, for as long as "
            "the cluster keeps it.",
            lambda name, value: _checks.check_idempotency_key(value),
        ),
    ]


class DriverOptions(SharedOptions, DriverOnlyOptions, total=False):
    """Options of `@ray_launch`."""


class DistributedOptions(SharedOptions, DistributedOnlyOptions, total=False):
    """Options of `@distributed`."""


class CommandOptions(DistributedOptions, OneLaunchOptions, total=False):
    """Options of `submit_command`."""


class ChangedLaunchOptions(CommandOptions, DriverOnlyOptions, total=False):
    """Options of `f.options()`, of a function of either decorator."""


DRIVER = table_of(DriverOptions)
DISTRIBUTED = table_of(DistributedOptions)
OF_ONE_LAUNCH = table_of(OneLaunchOptions)
ALL = table_of(ChangedLaunchOptions)
