"""Validated options of `@tune.sweep`, in the form a Tuner takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from troupe._base import checks as _checks
from troupe._cluster import resources as _resources
from troupe._typed import option as _option
from troupe.tune import _gpu_share, _resources as _resources_of_trials, _trainable
from troupe.tune._config import CheckpointConfig, FailureConfig, RunConfig, TuneConfig
from troupe.tune._sweep_table import SWEEPS

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


class _Checked:
    """A base of SweepOptions: what a sweep is made of."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __post_init__(self) -> None:
        _option.held(SWEEPS, vars(self))
        _gpu_share.check(self.gpu_memory_fraction, "@sweep", self.gpus)
        if self.gpu_type is not None and not self.gpus:
            raise TypeError("@sweep: gpu_type= goes with gpus=")
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
        self.tune_config()
        self.run_config()

    def changed(self, given: Mapping[str, Any]) -> SweepOptions:
        """Return the options with those given in their place. Raises TypeError or ValueError."""
        refuse_unknown("options()", given)
        return SweepOptions(**{**vars(self), **given})

    def tune_config(self) -> TuneConfig:
        """Return the configuration of trials. Raises ValueError or TypeError."""
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
        """Return the configuration of the run: its name, its folder, and the end of its trials.

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
        """Return the function of a trial, and the resources it holds."""
        held: Any = {
            "CPU": self.cpus,
            "GPU": self.gpus,
            "memory": _resources.bytes_of(self.memory or 0),
        }
        options = {**_option.told(SWEEPS, vars(self)), "preimport": tuple(self.preimport)}
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


if TYPE_CHECKING:

    class SweepOptions(_Checked):
        """Options of `sweep`, checked; frozen. Its fields are the table's."""

        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

        def __init__(self, **options: Any) -> None: ...

else:
    SweepOptions = dataclasses.make_dataclass(
        "SweepOptions",
        [
            (name, Any, dataclasses.field(default_factory=lambda each=each: each.default))
            for name, each in SWEEPS.items()
        ],
        bases=(_Checked,),
        frozen=True,
        namespace={
            "__doc__": "Options of `sweep`, checked; frozen.",
            "__module__": __name__,
        },
    )


def refuse_unknown(called: str, given: Iterable[str]) -> None:
    """Raise TypeError for a name that is no option, with what may be meant by it."""
    _checks.refuse_unknown(called, given, SWEEPS, meant=_MEANT)
