"""The table of the options of sweeps.

A new option is an entry here, and the code that uses it: what `@tune.sweep` and `f.options()` take
and say, the checks, and what type checkers see are made of the table.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from troupe._base import checks as _checks, strategies as _strategies
from troupe._cluster import resources as _resources, selectors
from troupe._cluster.options.placed import INFEASIBLE, PRIORITY
from troupe._code import runtime_env as _runtime_env
from troupe._typed.option import Option, table_of
from troupe.train._config import is_count

if TYPE_CHECKING:
    from troupe.tune._callback import Callback
    from troupe.tune.schedulers import TrialScheduler
    from troupe.tune.search import Searcher
    from troupe.tune.stopper import Stopper


def _amount(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError(
            f"@sweep({name}={value!r}): a number of at least 0, for each rank of a trial"
        )
    return value


def _gpus(name: str, value: Any) -> Any:
    _resources.check_gpus(_amount(name, value))
    return value


def _count(of: str, *also: Any) -> Callable[[str, Any], Any]:
    """Return the check of a whole number of at least 1, or one of the values `also`."""

    def check(name: str, value: Any) -> Any:
        if not is_count(value, 1) and value not in also:
            raise ValueError(f"@sweep({name}={value!r}): a whole number of at least 1, {of}")
        return value

    return check


def _truth(name: str, value: Any) -> Any:
    if not isinstance(value, bool):
        raise TypeError(f"@sweep({name}={value!r}): True or False")
    return value


def _space(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"@sweep(space={value!r}): a dict of parameters and what each may be, {{'lr': "
            f"tune.loguniform(1e-4, 1e-1)}}"
        )
    return value


def _strategy(name: str, value: Any) -> Any:
    _strategies.check(value)
    return value


class SweepOptions(TypedDict, total=False):
    """Options of `@tune.sweep`."""

    trials: Annotated[
        int,
        Option(
            1,
            "How many configurations, of a grid how many times each; -1: until something stops the "
            "sweep.",
            _count("or -1: until something stops the sweep", -1),
        ),
    ]
    space: Annotated[
        Mapping[str, Any], Option({}, "Parameters of the function, and what each may be.", _space)
    ]
    metric: Annotated[str | None, Option(None, "The reported value that is compared.")]
    mode: Annotated[
        Literal["max", "min"] | None, Option(None, 'The better `metric`: "max" or "min".')
    ]
    stop_early: Annotated[
        "str | TrialScheduler | None",
        Option(None, 'Who stops bad trials: "asha", "median", "hyperband" or a scheduler.'),
    ]
    max_t: Annotated[
        float | None,
        Option(
            None,
            "The end of a trial for `stop_early` by name; alone: a trial is done after so many "
            "reports.",
        ),
    ]
    grace_period: Annotated[
        float | None, Option(None, "What each trial may do before `stop_early` by name stops it.")
    ]
    reduction_factor: Annotated[
        float | None,
        Option(None, 'The part of the trials that goes on at each step of "asha", "hyperband".'),
    ]
    search: Annotated[
        "Searcher | None",
        Option(None, "Who proposes configurations. None: random ones, and grids."),
    ]
    seed: Annotated[int | None, Option(None, "Of the random search.")]
    stop: Annotated[
        "Mapping[str, Any] | Callable[[str, Mapping[str, Any]], bool] | Stopper | None",
        Option(None, "When trials have done enough, as RunConfig's `stop`."),
    ]
    timeout: Annotated[Any, Option(None, "Seconds of the whole sweep, or a timedelta.")]
    max_concurrent: Annotated[int | None, Option(None, "At most so many trials at once.")]
    max_failures: Annotated[
        int,
        Option(0, "How often a trial is started again, from its latest checkpoint; -1: always."),
    ]
    keep: Annotated[
        int | None,
        Option(
            None,
            "How many checkpoints of each trial stay. None: all.",
            _count("the checkpoints of each trial that stay", None),
        ),
    ]
    reuse: Annotated[bool, Option(False, "A process takes one trial after the other.", _truth)]
    cpus: Annotated[float, Option(1, "CPUs that each rank of a trial holds.", _amount)]
    gpus: Annotated[
        float, Option(0, "GPUs that each rank of a trial holds; 0.5: two share one.", _gpus)
    ]
    memory: Annotated[
        float | str | None,
        Option(None, "Memory that each rank of a trial holds, in bytes or as '80GiB'."),
    ]
    gpu_type: Annotated[
        str | None,
        Option(None, "Which GPUs, as the nodes' labels name them.", told="accelerator_type"),
    ]
    gpu_memory_fraction: Annotated[
        bool,
        Option(False, "Of trials that share a GPU, torch in each keeps to its part of the memory."),
    ]
    ranks: Annotated[
        int,
        Option(
            1,
            "Each trial is a gang of so many processes, with a process group as in "
            "`@distributed`; rank 0's reports count.",
            _count("the processes of each trial"),
        ),
    ]
    strategy: Annotated[
        Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"],
        Option("PACK", "How a trial's ranks lie over the nodes: on few, or on many.", _strategy),
    ]
    remote: Annotated[
        bool,
        Option(
            False,
            "True: the cluster of `troupe.init()` or TROUPE_ADDRESS. False: this machine.",
            _truth,
        ),
    ]
    runtime_env: Annotated[
        Mapping[str, Any] | None,
        Option(
            None,
            "What the trials' code needs (docs/guides/runtime_env.md).",
            lambda name, value: _runtime_env.check(value),
            told="runtime_env",
        ),
    ]
    priority: Annotated[int, replace(PRIORITY, told="priority")]
    label_selector: Annotated[
        Mapping[str, str] | None,
        Option(
            None,
            "Labels that the nodes have (docs/guides/placement.md).",
            lambda name, value: selectors.terms(value, name),
            told="label_selector",
        ),
    ]
    infeasible: Annotated[Literal["refuse", "wait"] | None, replace(INFEASIBLE, told="infeasible")]
    preimport: Annotated[
        Sequence[str],
        Option(
            (),
            "Modules that the trials' processes have imported when they are forked, of a gang all "
            "ranks (docs/guides/runtime_env.md).",
            lambda name, value: _checks.check_preimport(value),
            told="preimport",
        ),
    ]
    name: Annotated[
        str | None, Option(None, "The sweep's folder is the one of this name in `storage`.")
    ]
    storage: Annotated[
        str | os.PathLike[str] | None, Option(None, "A folder of sweeps. None: ~/troupe_results.")
    ]
    callbacks: Annotated["Sequence[Callback] | None", Option(None, "Told of what happens.")]
    tracking: Annotated[
        bool, Option(False, "Runs in MLflow, as MLflowLoggerCallback writes them.", _truth)
    ]
    quiet: Annotated[bool, Option(False, "No status lines.", _truth)]


SWEEPS = table_of(SweepOptions)
