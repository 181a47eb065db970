"""A sweep as a storage of Optuna's: its samplers, its plots and its dashboard look at the sweep's
trials as at their own.

It holds in memory what the sweep's journal has, and is written by nobody else: what the storage is
told of trials is kept by the sweep.
"""

from __future__ import annotations

import datetime
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from troupe.tune._search import optuna_space


@dataclass
class TrialRecord:
    """The known state of a trial.

    `values`: of each metric that is optimized, when it is over; None where there are none.
    """

    trial: str
    config: Mapping[str, Any]
    state: str = "running"
    """running, completed, stopped, failed"""
    reports: Mapping[int, float] = field(default_factory=dict)
    values: list[float] | None = None
    began: datetime.datetime | None = None
    ended: datetime.datetime | None = None


def directions(modes: list[str]) -> list[StudyDirection]:
    """Return the direction of each metric."""
    return [StudyDirection.MINIMIZE if mode == "min" else StudyDirection.MAXIMIZE for mode in modes]


@contextmanager
def quiet() -> Iterator[None]:
    """Without the line that Optuna writes for each study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def final(values: list[Any] | None, failed: bool) -> tuple[TrialState, list[float] | None]:
    """How a trial ends for Optuna: what failed, or ended without numbers, has failed.

    One that was stopped early is complete, with its last values.
    """
    known = values is not None and all(
        isinstance(value, (int, float)) and not math.isnan(value) for value in values
    )
    if failed or not known or values is None:
        return TrialState.FAIL, None
    return TrialState.COMPLETE, [float(value) for value in values]


class SweepStorage(InMemoryStorage):  # type: ignore[misc]
    """A sweep's trials.

    `changes`: gives the records of those that have changed since it was last asked; it is asked
    before everything is read.

    With `follow`, one study has them. Without, it is a storage as any other, that of a sampler
    which is told by itself.
    """

    def __init__(self, changes: Callable[[], Iterable[TrialRecord]] | None = None) -> None:
        super().__init__()
        self._changes = changes
        self._space: Mapping[str, Any] = {}
        self._study: int | None = None
        self._ids: dict[str, int] = {}
        self._reading = threading.RLock()

    def __getstate__(self) -> dict[Any, Any]:
        return {
            name: value
            for name, value in super().__getstate__().items()
            if name not in ("_reading", "_changes")
        }

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self._reading, self._changes = threading.RLock(), None

    def follow(self, name: str, modes: list[str], space: Mapping[str, Any]) -> int:
        """Makes the study that has the sweep's trials; its id."""
        with quiet():
            self._space, self._study = space, super().create_new_study(directions(modes), name)
        return self._study

    def catch_up(self) -> None:
        """Has all that the sweep has."""
        if self._changes is None or self._study is None:
            return
        with self._reading:
            for record in self._changes():
                self._apply(record)

    def _apply(self, record: TrialRecord) -> None:
        assert self._study is not None
        number = self._ids.get(record.trial)
        if number is None:
            found = list(optuna_space.parameters(self._space, record.config))
            template = create_trial(
                state=TrialState.RUNNING,
                params={name: value for name, value, _ in found},
                distributions={name: each for name, _, each in found},
                user_attrs={"trial": record.trial},
            )
            if record.began is not None:
                template.datetime_start = record.began
            number = self._ids[record.trial] = super().create_new_trial(self._study, template)
        if super().get_trial(number).state.is_finished():
            return
        for step, value in record.reports.items():
            if not math.isnan(value):
                super().set_trial_intermediate_value(number, step, value)
        if record.state != "running":
            super().set_trial_state_values(number, *final(record.values, record.state == "failed"))

    def get_all_studies(self) -> list[Any]:
        self.catch_up()
        found: list[Any] = super().get_all_studies()
        return found

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Any = None
    ) -> list[FrozenTrial]:
        self.catch_up()
        found: list[FrozenTrial] = super().get_all_trials(study_id, deepcopy, states)
        return found

    def get_best_trial(self, study_id: int) -> FrozenTrial:
        self.catch_up()
        return super().get_best_trial(study_id)

    def get_n_trials(self, study_id: int, state: Any = None) -> int:
        self.catch_up()
        found: int = super().get_n_trials(study_id, state)
        return found

    def get_trial(self, trial_id: int) -> FrozenTrial:
        self.catch_up()
        return super().get_trial(trial_id)
