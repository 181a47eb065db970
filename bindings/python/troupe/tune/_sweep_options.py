"""What `@tune.sweep` is given, checked, as what a Tuner is made of."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from troupe import _checks, _strategies
from troupe._cluster import infeasible as _infeasible, resources as _resources, selectors
from troupe._code import runtime_env as _runtime_env
from troupe.train._config import is_count
from troupe.tune import _gpu_share, _resources as _resources_of_trials, _trainable
from troupe.tune._config import CheckpointConfig, FailureConfig, RunConfig, TuneConfig

_OF_SCHEDULERS = ("max_t", "grace_period", "reduction_factor")
_MEANT = {
    "num_samples": "trials=N is the number of configurations",
    "samples": "trials=N is the number of configurations",
    "param_space": "space={...} is what is searched",
    "config": "space={...} is what is searched, and arguments of the call are constants",
    "scheduler": "stop_early='asha', or a scheduler of troupe.tune.schedulers",
    "search_alg": "search=, a searcher of troupe.tune.search",
    "storage_path": "storage= is the folder that the sweep's own is in",
    "time_budget_s": "timeout= is the seconds that the sweep has",
    "num_cpus": "cpus= is what each rank of a trial has",
    "num_gpus": "gpus= is what each rank of a trial has, 0.5 perhaps",
    "processes": "ranks=N is the number of each trial's ranks, trials=N that of the trials",
    "max_concurrent_trials": "max_concurrent=",
    "reuse_actors": "reuse=True",
    "num_to_keep": "keep=N checkpoints of each trial",
    "max_attempts": "max_failures=N is how often a trial that fails is started again",
    "detach": "submit() always outlives its caller",
}


@dataclass(frozen=True)
class SweepOptions:
    """See `sweep`, whose parameters these are."""

    trials: int = 1
    space: Mapping[str, Any] = field(default_factory=dict)
    metric: str | None = None
    mode: str | None = None
    stop_early: Any = None
    max_t: float | None = None
    grace_period: float | None = None
    reduction_factor: float | None = None
    search: Any = None
    seed: int | None = None
    stop: Any = None
    timeout: Any = None
    max_concurrent: int | None = None
    max_failures: int = 0
    keep: int | None = None
    reuse: bool = False
    cpus: float = 1
    gpus: float = 0
    memory: float | str | None = None
    gpu_type: str | None = None
    gpu_memory_fraction: bool = False
    ranks: int = 1
    strategy: str = "PACK"
    remote: bool = False
    runtime_env: Mapping[str, Any] | None = None
    priority: int = 0
    label_selector: Mapping[str, str] | None = None
    infeasible: str | None = None
    preimport: Sequence[str] = ()
    name: str | None = None
    storage: str | os.PathLike[str] | None = None
    callbacks: Sequence[Any] | None = None
    tracking: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        _check_amounts(self)
        if not isinstance(self.space, Mapping):
            raise TypeError(
                f"@sweep(space={self.space!r}): a dict of parameters and what each may be, {{'lr': "
                f"tune.loguniform(1e-4, 1e-1)}}"
            )
        if (self.metric is None) != (self.mode is None):
            raise TypeError(
                f"@sweep(metric={self.metric!r}, mode={self.mode!r}): the metric goes with "
                "mode='max' or mode='min'"
            )
        if self.seed is not None and self.search is not None:
            raise TypeError(
                "@sweep(seed=...) is of the random search; search= has a searcher, which takes its "
                "own seed"
            )
        if not isinstance(self.stop_early, str):
            given = [each for each in _OF_SCHEDULERS[1:] if getattr(self, each) is not None]
            if given:
                raise TypeError(
                    f"@sweep({given[0]}=...) goes with stop_early='asha' or another name; a "
                    "scheduler of one's own is made with it"
                )
        _runtime_env.check(self.runtime_env)
        _infeasible.check(self.infeasible)
        _checks.check_preimport(self.preimport)
        _resources.check_priority(self.priority)
        selectors.terms(self.label_selector, "label_selector")
        self.tune_config()
        self.run_config()

    def tune_config(self) -> TuneConfig:
        """Which trials. Raises ValueError or TypeError."""
        search = self.search
        if search is None and self.seed is not None:
            from troupe.tune.search.basic_variant import BasicVariantGenerator

            search = BasicVariantGenerator(random_state=self.seed)
        return TuneConfig(
            metric=self.metric,
            mode=self.mode,
            num_samples=self.trials,
            search_alg=search,
            scheduler=self._scheduler(),
            max_concurrent_trials=self.max_concurrent,
            time_budget_s=self.timeout,
            reuse_actors=bool(self.reuse),
        )

    def _scheduler(self) -> Any:
        if not isinstance(self.stop_early, str):
            return self.stop_early
        from troupe.tune.schedulers import create_scheduler

        given = {
            each: getattr(self, each) for each in _OF_SCHEDULERS if getattr(self, each) is not None
        }
        return create_scheduler(self.stop_early, **given)

    def run_config(self) -> RunConfig:
        """What it is called, where it is kept, what ends its trials.

        Raises ValueError or TypeError.
        """
        stop = self.stop
        if self.max_t is not None and not isinstance(self.stop_early, str):
            if stop is not None and not isinstance(stop, Mapping):
                raise TypeError(
                    "@sweep(max_t=...) is a number of reports after which a trial has done enough, "
                    "and so is stop=: give one of them"
                )
            stop = {**(stop or {}), "training_iteration": self.max_t}
        return RunConfig(
            name=self.name,
            storage_path=self.storage,
            failure_config=FailureConfig(max_failures=self.max_failures),
            checkpoint_config=CheckpointConfig(num_to_keep=self.keep),
            stop=stop,
            callbacks=self._callbacks() or None,
            verbose=0 if self.quiet else None,
        )

    def _callbacks(self) -> list[Any]:
        """Raises ImportError where MLflow is asked for and is not installed."""
        found = list(self.callbacks or ())
        if self.tracking:
            from troupe.tune.logger import MLflowLoggerCallback

            found += (
                []
                if any(isinstance(each, MLflowLoggerCallback) for each in found)
                else [MLflowLoggerCallback()]
            )
        return found

    def given(self, function: Any, parameters: Mapping[str, Any]) -> _trainable.Given:
        """What a trial runs, and what it holds."""
        held: Any = {
            "CPU": self.cpus,
            "GPU": self.gpus,
            "memory": _resources.bytes_of(self.memory or 0),
        }
        options: dict[str, Any] = {
            "runtime_env": self.runtime_env,
            "priority": self.priority,
            "accelerator_type": self.gpu_type,
            "label_selector": self.label_selector,
            "infeasible": self.infeasible,
            "preimport": tuple(self.preimport),
        }
        if self.ranks > 1:
            from troupe.tune import _gang

            bundle = _resources_of_trials.amounts(held)
            function = _gpu_share.Capped(function) if self.gpu_memory_fraction else function
            function, held = (
                _gang.GangTrial(function, self.ranks, bundle, tuple(self.preimport)),
                _resources_of_trials.PlacementGroupFactory([bundle] * self.ranks, self.strategy),
            )
        return _trainable.Given(
            function,
            parameters,
            held,
            {name: value for name, value in options.items() if value},
            gpu_memory_fraction=self.gpu_memory_fraction and self.ranks == 1,
        )

    def changed(self, given: Mapping[str, Any]) -> SweepOptions:
        """With these in the place of its own. Raises TypeError or ValueError."""
        refuse_unknown("options()", given)
        return replace(self, **given)


def refuse_unknown(called: str, given: Iterable[str]) -> None:
    """Raise TypeError for a name that is no option, with what may be meant by it."""
    _checks.refuse_unknown(
        called, given, [each.name for each in fields(SweepOptions)], meant=_MEANT
    )


def _check_amounts(options: SweepOptions) -> None:
    for what in ("cpus", "gpus"):
        amount = getattr(options, what)
        if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not amount >= 0:
            raise ValueError(
                f"@sweep({what}={amount!r}): a number of at least 0, for each rank of a trial"
            )
    _resources.check_gpus(options.gpus)
    _gpu_share.check(options.gpu_memory_fraction, "@sweep", options.gpus)
    if options.gpu_type is not None and not options.gpus:
        raise TypeError("@sweep: gpu_type= goes with gpus=")
    if not is_count(options.ranks, 1):
        raise ValueError(
            f"@sweep(ranks={options.ranks!r}): a whole number of at least 1, the processes of each "
            "trial"
        )
    _strategies.check(options.strategy)
    if not is_count(options.trials, 1) and options.trials != -1:
        raise ValueError(
            f"@sweep(trials={options.trials!r}): a whole number of at least 1, or -1: until "
            "something stops the sweep"
        )
    if options.keep is not None and not is_count(options.keep, 1):
        raise ValueError(
            f"@sweep(keep={options.keep!r}): a whole number of at least 1, the checkpoints of each "
            "trial that stay"
        )
    for what in ("remote", "reuse", "tracking", "quiet"):
        if not isinstance(getattr(options, what), bool):
            raise TypeError(f"@sweep({what}={getattr(options, what)!r}): True or False")
