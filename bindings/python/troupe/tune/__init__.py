"""Sweeps: trials of a training with other hyperparameters, many at once, of which the bad ones are stopped early. By Ray's names.

    from troupe import tune

    def train(config):
        for epoch in range(20):
            ...
            tune.report({"acc": acc})

    grid = tune.Tuner(train, param_space={"lr": 1e-3}, tune_config=tune.TuneConfig(metric="acc", mode="max", num_samples=8)).fit()
    print(grid.get_best_result().config)
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_WHERE = {
    "Tuner": "_tuner", "TuneConfig": "_config", "RunConfig": "_config", "FailureConfig": "_config", "CheckpointConfig": "_config",
    "Result": "_results", "ResultGrid": "_results", "TrialStopped": "_errors", "TuneError": "_errors", "TrialFailedError": "_errors",
    "TuneContext": "_context", "with_parameters": "_trainable", "with_resources": "_trainable",
}
_OF_TRAIN = ("Checkpoint", "get_checkpoint", "get_context", "report")
__all__ = sorted([*_WHERE, *_OF_TRAIN])

if TYPE_CHECKING:
    from troupe.train import Checkpoint, get_checkpoint, get_context, report
    from troupe.tune._config import CheckpointConfig, FailureConfig, RunConfig, TuneConfig
    from troupe.tune._context import TuneContext
    from troupe.tune._errors import TrialFailedError, TrialStopped, TuneError
    from troupe.tune._results import Result, ResultGrid
    from troupe.tune._trainable import with_parameters, with_resources
    from troupe.tune._tuner import Tuner


def __getattr__(name: str) -> Any:
    if name in _OF_TRAIN:
        found = getattr(importlib.import_module("troupe.train"), name)
    elif name in _WHERE:
        found = getattr(importlib.import_module(f"troupe.tune.{_WHERE[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
