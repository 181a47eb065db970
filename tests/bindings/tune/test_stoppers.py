"""Stoppers: when a trial is done, when a sweep is, and what is refused.

Method: case by case.
"""

from __future__ import annotations

import copy
import datetime
import math
import pickle
from typing import Any

import pytest

from troupe.tune import stopper
from troupe.tune._core.deciding import ReportError


def done(made: Any, values: list, name: str = "m", trial: str = "a") -> list[bool]:
    return [
        made(trial, {name: value, "training_iteration": number})
        for number, value in enumerate(values, 1)
    ]


def test_a_number_of_results_per_trial() -> None:
    made = stopper.MaximumIterationStopper(2)
    assert (
        done(made, [1, 1, 1]) == [False, True, True]
        and done(made, [1], trial="b") == [False]
        and not made.stop_all()
    )


def test_a_trial_whose_metric_does_not_move() -> None:
    make = stopper.TrialPlateauStopper
    assert done(make("m"), [1, 1, 1, 1]) == [False, False, False, True]
    assert done(make("m", num_results=2, grace_period=3), [1, 1, 1, 2, 2]) == [
        False,
        False,
        True,
        False,
        True,
    ]
    assert done(
        make("m", num_results=2, grace_period=0, metric_threshold=2, mode="max"), [1, 1, 2, 2]
    ) == [False, False, False, True]
    assert done(
        make("m", num_results=2, grace_period=0, metric_threshold=2, mode="min"), [3, 3, 2, 2]
    ) == [False, False, False, True]
    assert not any(done(make("m", num_results=2, grace_period=0), [math.nan, math.nan, None, None]))
    assert done(make("v/m", num_results=2, grace_period=0), [1, 1], name="v/m") == [False, True]


def test_a_sweep_whose_best_do_not_move() -> None:
    make = stopper.ExperimentPlateauStopper
    made = make("m", top=3, mode="max")
    assert done(made, [1, 9, 1, 9, 9]) == [False, False, False, False, True] and made.stop_all()
    patient = make("m", top=2, patience=2)
    assert done(patient, [1, 1, 5, 5]) == [False, False, True, True]
    assert not any(done(make("m", top=2), [math.nan, math.nan, 1, 2]))


def test_thresholds_hold_from_there_on_losses_too() -> None:
    made = stopper.made({"m": 2, "training_iteration": 9})
    assert done(made, [1, 2, 3]) == [False, True, True]
    assert done(stopper.made({"v/m": 1}), [{"m": 0}, {"m": 1}], name="v") == [False, True]
    with pytest.raises(
        ReportError, match="stop has 'acc', which is not reported: did you mean 'accu'"
    ):
        stopper.made({"acc": 1})("a", {"accu": 0.1})
    assert stopper.made({"acc": 1})("a", {"acc": None}) is False


def test_functions_and_several() -> None:
    one, other = (
        stopper.MaximumIterationStopper(3),
        stopper.FunctionStopper(lambda trial, result: result["m"] > 5),
    )
    both = stopper.CombinedStopper(one, other)
    assert done(both, [1, 9, 1]) == [False, True, True] and not both.stop_all()
    assert done(stopper.made([{"m": 5}, lambda trial, result: trial == "z"]), [1, 5]) == [
        False,
        True,
    ]
    assert stopper.made(None)("a", {}) is False and stopper.made(both) is both


def test_the_time_of_a_sweep_is_the_sweeps_to_measure() -> None:
    made = stopper.TimeoutStopper(datetime.timedelta(minutes=1))
    assert (
        made.timeout_s == 60
        and not made.stop_all()
        and pickle.loads(pickle.dumps(made))._since is None
    )
    both = stopper.CombinedStopper(
        made, stopper.CombinedStopper(stopper.TimeoutStopper(5)), stopper.NoopStopper()
    )
    assert stopper.timeout_s(both) == 5 and stopper.timeout_s(stopper.NoopStopper()) is None
    short = stopper.TimeoutStopper(1e-9)
    short.stop_all()
    assert short.stop_all()


def test_the_same_results_bring_a_stopper_to_the_same_state() -> None:
    for fresh in (
        stopper.TrialPlateauStopper("m"),
        stopper.ExperimentPlateauStopper("m", top=2, patience=1),
        stopper.MaximumIterationStopper(5),
    ):
        one, other = copy.deepcopy(fresh), pickle.loads(pickle.dumps(fresh))
        assert done(one, [1, 2, 2]) == done(other, [1, 2, 2]) and done(one, [2, 2, 2]) == done(
            other, [2, 2, 2]
        )


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: stopper.MaximumIterationStopper(0), ValueError, "max_iter must be at least 1"),
        (lambda: stopper.TimeoutStopper("1h"), TypeError, "timeout must be a number"),
        (lambda: stopper.TimeoutStopper(0), ValueError, "above 0"),
        (lambda: stopper.TrialPlateauStopper("m", metric_threshold=1), ValueError, "mode must be"),
        (
            lambda: stopper.ExperimentPlateauStopper("m", top=1),
            ValueError,
            "top must be at least 2",
        ),
        (lambda: stopper.ExperimentPlateauStopper("m", mode="x"), ValueError, "mode must be"),
        (lambda: stopper.CombinedStopper(3), TypeError, "takes stoppers, not 3"),
        (lambda: stopper.made(3), TypeError, "stop takes a dict"),
        (lambda: stopper.made({"a": "b"}), TypeError, "'a': 'b'"),
        (lambda: stopper.FunctionStopper(3), TypeError, "takes a function"),
    ],
)
def test_what_is_refused(make: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        make()


def test_an_object_that_only_looks_like_a_stopper() -> None:
    class Looks:
        def __call__(self, trial_id: str, result: dict) -> bool:
            return False

        def stop_all(self) -> bool:
            return False

    with pytest.raises(TypeError, match="is no tune.Stopper"):
        stopper.made(Looks())
