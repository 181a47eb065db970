"""Schedulers by the names of `ray.tune.schedulers`: who decides which trials run on, stop, wait, or
go on from another one's checkpoint."""

import importlib
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troupe.tune._core.deciding import Scheduler
    from troupe.tune.schedulers.async_hyperband import (
        ASHAScheduler,
        AsyncHyperBandScheduler,
    )
    from troupe.tune.schedulers.early_termination import (
        BanditPolicy,
        MedianStoppingPolicy,
        TruncationSelectionPolicy,
    )
    from troupe.tune.schedulers.hb_bohb import HyperBandForBOHB
    from troupe.tune.schedulers.hyperband import HyperBandScheduler
    from troupe.tune.schedulers.median_stopping_rule import MedianStoppingRule
    from troupe.tune.schedulers.optuna_pruner import OptunaPruner
    from troupe.tune.schedulers.pb2 import PB2
    from troupe.tune.schedulers.pbt import PopulationBasedTraining
    from troupe.tune.schedulers.pbt_replay import PopulationBasedTrainingReplay
    from troupe.tune.schedulers.resource_changing_scheduler import (
        ResourceChangingScheduler,
    )
    from troupe.tune.schedulers.trial_scheduler import FIFOScheduler, TrialScheduler

_WHERE = {
    "ASHAScheduler": "async_hyperband",
    "AsyncHyperBandScheduler": "async_hyperband",
    "BanditPolicy": "early_termination",
    "FIFOScheduler": "trial_scheduler",
    "HyperBandForBOHB": "hb_bohb",
    "HyperBandScheduler": "hyperband",
    "MedianStoppingPolicy": "early_termination",
    "MedianStoppingRule": "median_stopping_rule",
    "OptunaPruner": "optuna_pruner",
    "PB2": "pb2",
    "PopulationBasedTraining": "pbt",
    "PopulationBasedTrainingReplay": "pbt_replay",
    "ResourceChangingScheduler": "resource_changing_scheduler",
    "TrialScheduler": "trial_scheduler",
    "TruncationSelectionPolicy": "early_termination",
}
_BY_WORD = {
    "fifo": "FIFOScheduler",
    "asha": "ASHAScheduler",
    "async_hyperband": "AsyncHyperBandScheduler",
    "asynchyperband": "AsyncHyperBandScheduler",
    "median_stopping_rule": "MedianStoppingRule",
    "medianstopping": "MedianStoppingRule",
    "median": "MedianStoppingRule",
    "hyperband": "HyperBandScheduler",
    "hb_bohb": "HyperBandForBOHB",
    "pbt": "PopulationBasedTraining",
    "pbt_replay": "PopulationBasedTrainingReplay",
    "pb2": "PB2",
    "resource_changing": "ResourceChangingScheduler",
    "optuna": "OptunaPruner",
    "bandit": "BanditPolicy",
    "median_stopping": "MedianStoppingPolicy",
    "truncation_selection": "TruncationSelectionPolicy",
}
__all__ = [
    "PB2",
    "ASHAScheduler",
    "AsyncHyperBandScheduler",
    "BanditPolicy",
    "FIFOScheduler",
    "HyperBandForBOHB",
    "HyperBandScheduler",
    "MedianStoppingPolicy",
    "MedianStoppingRule",
    "OptunaPruner",
    "PopulationBasedTraining",
    "PopulationBasedTrainingReplay",
    "ResourceChangingScheduler",
    "TrialScheduler",
    "TruncationSelectionPolicy",
    "create_scheduler",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it."""
    if name not in _WHERE:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def create_scheduler(scheduler: str, **kwargs: object) -> "Scheduler":
    """The scheduler of that name, with those of the keywords that it knows; the others are dropped,
    so that schedulers can be exchanged.

    Raises ValueError for a name that is none, NotImplementedError for one that is refused, and what
    the scheduler itself raises.

        tune.create_scheduler("async_hyperband", max_t=20)
    """
    if not isinstance(scheduler, str) or scheduler.lower() not in _BY_WORD:
        raise ValueError(f"there is no scheduler {scheduler!r}; there are {', '.join(_BY_WORD)}")
    made = __getattr__(_BY_WORD[scheduler.lower()])
    parameters = inspect.signature(made).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    found: Scheduler = made(
        **{name: value for name, value in kwargs.items() if name in parameters or takes_all}
    )
    return found
