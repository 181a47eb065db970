"""Optuna's pruners as a scheduler."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from troupe import exceptions
from troupe.tune._core.deciding import WORST, Action, End, Mode, Report, Scheduler, Stop
from troupe.tune.schedulers import _said

if TYPE_CHECKING:
    from optuna.pruners import BasePruner


class OptunaPruner(Scheduler):
    """A trial ends where one of Optuna's pruners says so, asked at each report.

    For `TuneConfig(scheduler=...)`; needs `pip install 'troupe[tune]'`.

    A pruner looks at all trials each time, so a decision takes milliseconds with thousands of them;
    ASHAScheduler and MedianStoppingRule take microseconds, and know what a trial that has failed
    and goes on from a checkpoint has taken back. Steps are what is reported as `time_attr`. Raises
    ImportError or TypeError.

        pruner = tune.OptunaPruner(optuna.pruners.PercentilePruner(25.0))
        TuneConfig(metric="acc", mode="max", scheduler=pruner)
    """

    def __init__(
        self,
        pruner: BasePruner,
        time_attr: str = "training_iteration",
        metric: str | None = None,
        mode: str | None = None,
    ) -> None:
        _said.objective("OptunaPruner", time_attr, metric, mode)
        if importlib.util.find_spec("optuna") is None:
            raise exceptions.MissingPackageError(
                "OptunaPruner needs Optuna, which is not installed: pip install 'troupe[tune]'",
                name="optuna",
            )
        if not callable(getattr(pruner, "prune", None)):
            raise TypeError(f"OptunaPruner takes one of optuna.pruners, not {pruner!r}")
        self.metric, self.mode = metric, mode
        self._pruner, self._time_attr = pruner, time_attr
        self._study: Any = None
        self._ids: dict[str, int] = {}
        self._last: dict[str, float] = {}
        self._steps: dict[
            str, dict[int, tuple[int, float]]
        ] = {}  # number of the report -> step and value, of trials that are not over
        self._negated = False

    def begin(self, metric: str, mode: Mode) -> None:
        from troupe.tune._search.optuna_study import quietly_made

        self.metric, self._negated = metric, mode is Mode.MIN
        # The study's name counts: HyperbandPruner draws brackets by it.
        self._study = quietly_made(
            study_name="sweep",
            direction="minimize" if self._negated else "maximize",
            pruner=self._pruner,
        )

    def added(self, trial: str, config: Mapping[str, Any]) -> None:
        self._ids[trial], self._steps[trial] = self._new({}), {}

    def _new(self, values: dict[int, float]) -> int:
        from optuna.trial import TrialState, create_trial

        template = create_trial(state=TrialState.RUNNING, intermediate_values=values)
        found: int = self._study._storage.create_new_trial(self._study._study_id, template)
        return found

    def reported(self, report: Report) -> Sequence[Action]:
        time = _said.progress("OptunaPruner", self._time_attr, report)
        if time is None:
            return ()
        trial, step = report.trial, int(time)
        value = (
            float("nan")
            if report.score == WORST
            else -report.score
            if self._negated
            else report.score
        )
        self._last[trial] = value
        self._steps[trial][report.number] = step, value
        storage = self._study._storage
        storage.set_trial_intermediate_value(self._ids[trial], step, value)
        if not self._pruner.prune(self._study, storage.get_trial(self._ids[trial])):
            return ()
        return (
            Stop(
                trial,
                f"{type(self._pruner).__name__} prunes it at {self._time_attr} {step}, where its "
                f"{self.metric} is "
                f"{_said.shown(report.score, self._negated)}",
            ),
        )

    def ended(self, trial: str, end: End) -> Sequence[Action]:
        from optuna.trial import TrialState

        number, value = self._ids.pop(trial), self._last.pop(trial, None)
        self._steps.pop(trial)
        failed = end is End.FAILED or value is None or math.isnan(value)
        state = (
            TrialState.FAIL
            if failed
            else TrialState.COMPLETE
            if end is End.COMPLETED
            else TrialState.PRUNED
        )
        self._study._storage.set_trial_state_values(number, state, None if failed else [value])
        return ()

    def went_back(self, trial: str, number: int) -> None:
        from optuna.trial import TrialState

        # A storage takes no value back: the trial begins anew with those that count.
        self._study._storage.set_trial_state_values(self._ids[trial], TrialState.FAIL)
        self._steps[trial] = {
            each: value for each, value in self._steps[trial].items() if each <= number
        }
        self._ids[trial] = self._new(dict(self._steps[trial].values()))
        self._last.pop(trial, None)
