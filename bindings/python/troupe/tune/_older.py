"""`tune.run` and what it gives, for scripts that were written before Tuner; on the same engine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from troupe import _pickled
from troupe.train._checkpoint import Checkpoint
from troupe.tune import _trainable
from troupe.tune._config import CheckpointConfig, FailureConfig, RunConfig, TuneConfig
from troupe.tune._results import Result, ResultGrid
from troupe.tune._tuner import Tuner

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable

    import pandas as pd

    from troupe.tune._config import SearchAlgorithm, Stop
    from troupe.tune._core.deciding import Scheduler
    from troupe.tune._resources import PlacementGroupFactory

_registered: dict[str, Any] = {}


def register_trainable(name: str, trainable: Callable[..., Any]) -> None:
    """The trainable is known to `tune.run` and Tuner by that name, in this program.

    Raises TypeError for what is none.
    """
    _trainable.given(trainable)
    _registered[name] = trainable


def registered(trainable: Any) -> Any:
    """Return the trainable registered under a name; anything else is returned as it is.

    Raises ValueError for a name that is not known.
    """
    if not isinstance(trainable, str):
        return trainable
    if trainable not in _registered:
        raise ValueError(
            f"no trainable {trainable!r} is registered; there are: "
            f"{', '.join(_registered) or 'none'} (tune.register_trainable)"
        )
    return _registered[trainable]


def run(
    run_or_experiment: Callable[..., Any] | str,
    *,
    name: str | None = None,
    metric: str | None = None,
    mode: str | None = None,
    stop: Stop | None = None,
    time_budget_s: float | datetime.timedelta | None = None,
    config: Mapping[str, Any] | None = None,
    resources_per_trial: Mapping[str, float] | PlacementGroupFactory | None = None,
    num_samples: int = 1,
    storage_path: str | os.PathLike[str] | None = None,
    search_alg: SearchAlgorithm | None = None,
    scheduler: Scheduler | None = None,
    checkpoint_config: CheckpointConfig | None = None,
    verbose: int | None = None,
    callbacks: Sequence[Any] | None = None,
    max_failures: int = 0,
    fail_fast: bool | str = False,
    raise_on_failed_trial: bool = True,
    reuse_actors: bool = False,
    max_concurrent_trials: int | None = None,
) -> ExperimentAnalysis:
    """Runs a sweep, as `Tuner(...).fit()` does, with its parameters in one list; blocks.

    Raises what that does, and TuneError where a trial has failed, unless
    `raise_on_failed_trial=False`. As Ray's `tune.run`.

        analysis = tune.run(
            train, config={"lr": tune.uniform(0, 1)}, num_samples=10, metric="acc", mode="max")
        print(analysis.best_config)
    """
    from troupe.tune._errors import TuneError

    trainable = registered(run_or_experiment)
    if resources_per_trial is not None:
        trainable = _trainable.with_resources(trainable, resources_per_trial)
    grid = Tuner(
        trainable,
        param_space=config,
        tune_config=TuneConfig(
            metric=metric,
            mode=mode,
            num_samples=num_samples,
            search_alg=search_alg,
            scheduler=scheduler,
            time_budget_s=time_budget_s,
            reuse_actors=reuse_actors,
            max_concurrent_trials=max_concurrent_trials,
        ),
        run_config=RunConfig(
            name=name,
            storage_path=storage_path,
            stop=stop,
            callbacks=callbacks,
            verbose=verbose,
            checkpoint_config=checkpoint_config,
            failure_config=FailureConfig(max_failures=max_failures, fail_fast=fail_fast),
        ),
    ).fit()
    if grid.num_errors and raise_on_failed_trial:
        raise TuneError(
            f"{grid.num_errors} of {len(grid)} trials failed, in {grid.experiment_path}; the "
            f"first: {grid.errors[0]}"
        )
    return ExperimentAnalysis(grid, metric, mode)


class ExperimentAnalysis:
    """The result of `tune.run`: results under their older names.

    `grid`: all of them, as a ResultGrid.
    """

    def __init__(
        self, grid: ResultGrid, default_metric: str | None = None, default_mode: str | None = None
    ) -> None:
        self.grid, self.default_metric, self.default_mode = grid, default_metric, default_mode

    def get_best_trial(
        self,
        metric: str | None = None,
        mode: str | None = None,
        scope: str = "last",
        filter_nan_and_inf: bool = True,
    ) -> Result:
        """See ResultGrid.get_best_result."""
        return self.grid.get_best_result(metric, mode, scope, filter_nan_and_inf)

    def get_best_config(
        self, metric: str | None = None, mode: str | None = None, scope: str = "last"
    ) -> dict[str, Any]:
        """The configuration of the best trial."""
        return dict(self.get_best_trial(metric, mode, scope).config)

    def get_best_checkpoint(
        self, trial: Result, metric: str | None = None, mode: str | None = None
    ) -> Checkpoint | None:
        """Return the best checkpoint of a trial; see Result.get_best_checkpoint."""
        return trial.get_best_checkpoint(
            metric or self.default_metric or "training_iteration",
            mode or self.default_mode or "max",
        )

    @property
    def best_trial(self) -> Result:
        """By the metric that `run` was given; raises ValueError where it was given none."""
        return self.get_best_trial()

    @property
    def best_config(self) -> dict[str, Any]:
        """The configuration of the best trial."""
        return self.get_best_config()

    @property
    def best_result(self) -> dict[str, Any]:
        """The last report of the best trial."""
        return self.best_trial.metrics

    @property
    def best_checkpoint(self) -> Checkpoint | None:
        """The best checkpoint of the best trial."""
        return self.get_best_checkpoint(self.best_trial)

    @property
    def trials(self) -> list[Result]:
        """All of them."""
        return list(self.grid)

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """Trial -> its last report."""
        return {each.trial_id: each.metrics for each in self.grid}

    @property
    def experiment_path(self) -> str:
        """The sweep's folder."""
        return self.grid.experiment_path

    @property
    def trial_dataframes(self) -> dict[str, Any]:
        """Folder of a trial -> its history, as a DataFrame of pandas."""
        return {each.path: each.metrics_dataframe for each in self.grid}

    @property
    def results_df(self) -> pd.DataFrame:
        """A row for each trial, as a DataFrame of pandas."""
        return self.grid.get_dataframe()

    def dataframe(self, metric: str | None = None, mode: str | None = None) -> pd.DataFrame:
        """See ResultGrid.get_dataframe."""
        return self.grid.get_dataframe(metric, mode)


_pickled.named_in("troupe.tune", ExperimentAnalysis, register_trainable, run)
