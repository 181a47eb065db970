"""A sweep as a storage of Optuna's: Optuna's own suite, and that it has what the sweep has at each
moment.

Method: `optuna.testing.pytest_storages.StorageTestCase` on the storage; records that change while
Optuna reads.
"""

from __future__ import annotations

import pytest

from troupe import tune

optuna = pytest.importorskip("optuna")
pytest_storages = pytest.importorskip("optuna.testing.pytest_storages")
from troupe.tune._search.optuna_storage import SweepStorage, TrialRecord


class TestSweepStorage(pytest_storages.StorageTestCase):
    """Optuna's."""

    @pytest.fixture
    def storage(self) -> SweepStorage:
        """A storage for each test."""
        return SweepStorage()


def test_it_has_what_the_sweep_has_when_it_is_read() -> None:
    changed = [TrialRecord("a", {"x": 0.5, "g": 1}), TrialRecord("b", {"x": 0.25, "g": 2})]

    def changes() -> list[TrialRecord]:
        found = list(changed)
        changed.clear()
        return found

    storage = SweepStorage(changes)
    storage.follow("digits", ["max"], {"x": tune.uniform(0, 1), "g": tune.grid_search([1, 2])})
    study = optuna.load_study(study_name="digits", storage=storage)
    assert [(trial.params, trial.state.name, trial.user_attrs) for trial in study.trials] == [
        ({"x": 0.5, "g": 1}, "RUNNING", {"trial": "a"}),
        ({"x": 0.25, "g": 2}, "RUNNING", {"trial": "b"}),
    ]
    changed.append(TrialRecord("a", {}, reports={1: 0.1, 2: float("nan"), 3: 0.3}))
    assert study.trials[0].intermediate_values == {1: 0.1, 3: 0.3}
    changed += [
        TrialRecord("a", {}, "stopped", {3: 0.3}, [0.3]),
        TrialRecord("b", {}, "failed"),
        TrialRecord("c", {"x": 0.75, "g": 1}, "completed", {}, [0.9]),
    ]
    assert study.best_trial.user_attrs == {"trial": "c"} and [
        trial.state.name for trial in study.trials
    ] == ["COMPLETE", "FAIL", "COMPLETE"]
    changed.append(TrialRecord("a", {}, "completed", {}, [0.5]))  # ended trials stay as they are
    assert study.trials[0].value == 0.3 and len(study.get_trials(deepcopy=False)) == 3
    copied = optuna.storages.InMemoryStorage()
    optuna.copy_study(from_study_name="digits", from_storage=storage, to_storage=copied)
    assert len(optuna.load_study(study_name="digits", storage=copied).trials) == 3
