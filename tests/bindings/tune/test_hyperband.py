"""Hyperband: in each bracket the best go on when all are at the milestone, whoever fails, whenever
    trials come.

Method: whole sweeps in a random order of events beside a plain simulation bracket by bracket, and
cases by hand.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from driven import Sweep, curves

from troupe.tune._core.deciding import Choice, End, Mode, Pause, Report, Stop
from troupe.tune.schedulers import (
    PB2,
    FIFOScheduler,
    HyperBandForBOHB,
    HyperBandScheduler,
    ResourceChangingScheduler,
    create_scheduler,
)


def stops_plainly(number: int, score: Any, max_t: int, factor: float) -> dict[str, int]:
    """Trial -> the iteration at which it ends, bracket by bracket, trials in the order in which
    they come."""
    kinds = round(math.log(max_t) / math.log(factor)) + 1
    trials, kind, ends = [f"t{each}" for each in range(number)], 0, {}
    while trials:
        milestone = int(max_t * factor**-kind)
        if milestone > 0:
            keep = size = math.ceil(kinds / (kind + 1) * factor**kind)
            there, trials = trials[:size], trials[size:]
            for halving in range(kind, -1, -1):
                if halving == 0:
                    ends.update(dict.fromkeys(there, milestone))
                    break
                keep = math.ceil(keep / factor)
                ranked = sorted(there, key=lambda trial: score(trial, milestone, None))
                ends.update(dict.fromkeys(ranked[:-keep], milestone))
                there = [trial for trial in there if trial in ranked[-keep:]]
                milestone = int(min(milestone * factor, max_t))
        kind = (kind + 1) % kinds
    return ends


@pytest.mark.parametrize("seed", range(25))
def test_the_best_of_each_bracket_go_on(seed: int) -> None:
    max_t, factor = [(9, 3), (16, 2), (27, 3), (8, 4)][seed % 4]
    number, score = 5 + 7 * (seed % 6), curves(seed)
    sweep = Sweep(
        HyperBandScheduler(max_t=max_t, reduction_factor=factor),
        [{}] * number,
        score,
        reports=200,
        slots=1 + seed % 5,
        seed=seed,
    ).run()
    assert {trial: each.number for trial, each in sweep.trials.items()} == stops_plainly(
        number, score, max_t, factor
    )
    assert all(each.end is End.STOPPED and "bracket" in each.why for each in sweep.trials.values())


@pytest.mark.parametrize("seed", range(12))
def test_G10_every_trial_is_over_whoever_fails_and_a_replay_decides_the_same(seed: int) -> None:
    made = HyperBandScheduler(max_t=9, reduction_factor=3, stop_last_trials=seed % 2 == 0)
    sweep = Sweep(
        copy.deepcopy(made),
        [{}] * 25,
        curves(seed, (math.nan,)),
        reports=12,
        slots=3,
        seed=seed,
        fails=0.05,
        goes_back=0.03,
    ).run()
    replayed = sweep.replayed()
    for each in (sweep.scheduler, replayed):
        each.added("new", {})
    for number in range(1, 10):
        report = Report("new", number, {"training_iteration": number}, number / 3, True)
        assert sweep.scheduler.reported(report) == replayed.reported(report)
        assert sweep.scheduler.choose(False) == replayed.choose(False)


def test_one_that_fails_is_the_worst_of_its_bracket_at_once() -> None:
    made = HyperBandScheduler(
        max_t=3, reduction_factor=3
    )  # brackets of 2 trials to 3, then of 3 trials to 1, of which one goes on
    made.begin("acc", Mode.MAX)
    for trial in "abcde":
        made.added(trial, {})

    def report(trial: str, score: float) -> list:
        return list(made.reported(Report(trial, 1, {"training_iteration": 1}, score, True)))

    assert isinstance(report("c", 0.5)[0], Pause) and isinstance(report("d", 0.9)[0], Pause)
    assert made.choose(False) is Choice.WAIT
    (stop,) = made.ended("e", End.FAILED)
    assert stop == Stop(
        "c",
        "its acc is 0.5: it is not one of the best 1 of 2 in its bracket at training_iteration 1",
    )
    assert made.choose(True).trial == "d"


def test_a_bracket_that_is_not_full_waits_for_those_that_are_to_come() -> None:
    made = HyperBandScheduler(max_t=3, reduction_factor=3)
    made.begin("acc", Mode.MAX)
    for trial in "abcd":
        made.added(trial, {})
    for trial in "cd":
        assert isinstance(
            made.reported(Report(trial, 1, {"training_iteration": 1}, 0.5, True, can_add=True))[0],
            Pause,
        )
    assert made.choose(True) is Choice.NEW and made.choose(False) is Choice.WAIT
    assert [type(each) for each in made.stalled()] == [Stop] and made.choose(False).trial == "d"


def test_the_names_that_are_refused_say_what_to_take() -> None:
    for name, words in (
        (HyperBandForBOHB, "search_alg=OptunaSearch"),
        (PB2, "PopulationBasedTraining"),
        (ResourceChangingScheduler, "with_resources"),
    ):
        with pytest.raises(NotImplementedError, match=words):
            name(time_attr="x")
    with pytest.raises(NotImplementedError, match="PB2 is no part of Troupe"):
        create_scheduler("pb2")


def test_schedulers_by_their_words() -> None:
    assert isinstance(create_scheduler("FIFO", metric="dropped"), FIFOScheduler)
    made = create_scheduler("hyperband", max_t=27, metric="acc", mode="max", reduction_facto=3)
    assert isinstance(made, HyperBandScheduler) and (made.metric, made.mode) == ("acc", "max")
    assert create_scheduler("bandit", slack_factor=0.5).slack_factor == 0.5
    with pytest.raises(ValueError, match="there is no scheduler 'ashaa'; there are fifo, asha"):
        create_scheduler("ashaa")
    with pytest.raises(ValueError, match="max_t"):
        HyperBandScheduler(max_t=0)
