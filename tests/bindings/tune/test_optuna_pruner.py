"""Optuna's pruners as a scheduler: they decide as in a study of Optuna's own.

Method: the same reports to both.
"""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import pytest
from driven import Sweep, curves

from troupe import tune
from troupe.tune._core.deciding import End, Mode, Report, Stop

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

PRUNERS = [
    optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=1),
    optuna.pruners.SuccessiveHalvingPruner(reduction_factor=2),
    optuna.pruners.PercentilePruner(30.0, n_startup_trials=1),
    optuna.pruners.ThresholdPruner(lower=0.3),
    optuna.pruners.NopPruner(),
]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("pruner", PRUNERS, ids=lambda each: type(each).__name__)
def test_prunes_as_in_optuna(pruner: Any, mode: Mode) -> None:
    generator = random.Random(1)
    scheduler = tune.OptunaPruner(copy.deepcopy(pruner))
    scheduler.begin("loss", mode)
    study = optuna.create_study(
        direction="minimize" if mode is Mode.MIN else "maximize", pruner=pruner, study_name="sweep"
    )
    for name in range(25):
        trial = study.ask()
        scheduler.added(f"t{name}", {})
        for step in range(1, 9):
            value = generator.choice(
                [generator.random(), generator.random(), generator.random(), math.nan]
            )
            trial.report(value, step)
            actions = scheduler.reported(
                Report(f"t{name}", step, {"training_iteration": step}, mode.score(value))
            )
            assert trial.should_prune() == bool(actions)
            if actions:
                assert (
                    isinstance(actions[0], Stop)
                    and f"{type(pruner).__name__} prunes it at training_iteration {step}"
                    in actions[0].why
                )
                break
        end = End.STOPPED if actions else End.COMPLETED
        scheduler.ended(f"t{name}", end)
        study.tell(trial, state=optuna.trial.TrialState.PRUNED) if actions or math.isnan(
            value
        ) else study.tell(trial, value)
        if math.isnan(value) and not actions:
            break


def test_G10_every_trial_is_over_and_a_replay_decides_the_same() -> None:
    made = tune.OptunaPruner(optuna.pruners.MedianPruner(n_startup_trials=2))
    sweep = Sweep(
        copy.deepcopy(made),
        [{}] * 15,
        curves(1, (math.nan,)),
        reports=8,
        slots=3,
        fails=0.02,
        goes_back=0.05,
    ).run()
    replayed = sweep.replayed()
    for each in (sweep.scheduler, replayed):
        each.added("new", {})
    for number in range(1, 9):
        report = Report("new", number, {"training_iteration": number}, number / 4)
        assert sweep.scheduler.reported(report) == replayed.reported(report)


def test_what_is_taken_back_is_not_compared() -> None:
    made = tune.OptunaPruner(optuna.pruners.ThresholdPruner(upper=5.0))
    made.begin("acc", Mode.MAX)
    made.added("a", {})
    made.reported(Report("a", 1, {"training_iteration": 1}, 1.0))
    assert made.reported(Report("a", 2, {"training_iteration": 2}, 9.0))
    made.went_back("a", 1)
    assert not made.reported(Report("a", 2, {"training_iteration": 2}, 1.0))
    with pytest.raises(TypeError, match="takes one of optuna.pruners, not 3"):
        tune.OptunaPruner(3)
