"""Sweeps: trials of a training with other hyperparameters, many at once, of which the bad ones are
    stopped early. By the names of `ray.tune`.

from troupe import tune

def train(config):
    for epoch in range(20):
        ...
        tune.report({"acc": acc})

grid = tune.Tuner(train, param_space={"lr": tune.loguniform(1e-4, 1e-1)},
                  tune_config=tune.TuneConfig(metric="acc", mode="max", num_samples=64)).fit()
print(grid.get_best_result().config)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troupe.train import Checkpoint, get_checkpoint, report
    from troupe.tune._callback import Callback
    from troupe.tune._config import CheckpointConfig, FailureConfig, RunConfig, TuneConfig
    from troupe.tune._context import TuneContext, get_context
    from troupe.tune._decorator import SweepFunction, sweep
    from troupe.tune._errors import TrialFailedError, TrialStopped, TuneError
    from troupe.tune._handle import SweepHandle, attach
    from troupe.tune._older import ExperimentAnalysis, register_trainable, run
    from troupe.tune._resources import PlacementGroupFactory
    from troupe.tune._results import Result, ResultGrid
    from troupe.tune._search.spaces import (
        choice,
        grid_search,
        lograndint,
        loguniform,
        qlograndint,
        qloguniform,
        qrandint,
        qrandn,
        quniform,
        randint,
        randn,
        sample_from,
        uniform,
    )
    from troupe.tune._trainable import with_parameters, with_resources
    from troupe.tune._trainable_class import Trainable
    from troupe.tune._tuner import Tuner
    from troupe.tune.schedulers import OptunaPruner, create_scheduler
    from troupe.tune.search import create_searcher
    from troupe.tune.stopper import Stopper

_MODULES = ("logger", "schedulers", "search", "stopper")
_SPACES = (
    "choice",
    "grid_search",
    "lograndint",
    "loguniform",
    "qlograndint",
    "qloguniform",
    "qrandint",
    "qrandn",
    "quniform",
    "randint",
    "randn",
    "sample_from",
    "uniform",
)
_WHERE = {
    **dict.fromkeys(_SPACES, "tune._search.spaces"),
    **dict.fromkeys(("Checkpoint", "get_checkpoint", "report"), "train"),
    **dict.fromkeys(
        ("CheckpointConfig", "FailureConfig", "RunConfig", "TuneConfig"), "tune._config"
    ),
    **dict.fromkeys(("TuneContext", "get_context"), "tune._context"),
    **dict.fromkeys(("SweepFunction", "sweep"), "tune._decorator"),
    **dict.fromkeys(("TrialFailedError", "TrialStopped", "TuneError"), "tune._errors"),
    **dict.fromkeys(("ExperimentAnalysis", "register_trainable", "run"), "tune._older"),
    **dict.fromkeys(("SweepHandle", "attach"), "tune._handle"),
    **dict.fromkeys(("Result", "ResultGrid"), "tune._results"),
    **dict.fromkeys(("with_parameters", "with_resources"), "tune._trainable"),
    "Callback": "tune._callback",
    "PlacementGroupFactory": "tune._resources",
    "Trainable": "tune._trainable_class",
    "Tuner": "tune._tuner",
    "create_scheduler": "tune.schedulers",
    "create_searcher": "tune.search",
    "Stopper": "tune.stopper",
    "OptunaPruner": "tune.schedulers",
}


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"troupe.{_WHERE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_MODULES})


__all__ = [
    "Callback",
    "Checkpoint",
    "CheckpointConfig",
    "ExperimentAnalysis",
    "FailureConfig",
    "OptunaPruner",
    "PlacementGroupFactory",
    "Result",
    "ResultGrid",
    "RunConfig",
    "Stopper",
    "Trainable",
    "TrialFailedError",
    "TrialStopped",
    "TuneConfig",
    "TuneContext",
    "TuneError",
    "Tuner",
    "choice",
    "create_scheduler",
    "create_searcher",
    "get_checkpoint",
    "get_context",
    "grid_search",
    "lograndint",
    "loguniform",
    "qlograndint",
    "qloguniform",
    "qrandint",
    "qrandn",
    "quniform",
    "randint",
    "randn",
    "register_trainable",
    "report",
    "run",
    "sample_from",
    "uniform",
    "with_parameters",
    "with_resources",
    "SweepFunction",
    "SweepHandle",
    "attach",
    "sweep",
]
