"""The median rules, Ray's and Azure's, and Azure's other policies decide as slow plain references.

Method: random traces for both, and cases by hand.
"""

from __future__ import annotations

import copy
import math
import random
import statistics
from typing import Any

import pytest
from driven import Sweep, curves

from troupe.tune._core.deciding import (
    Choice,
    End,
    Mode,
    Pause,
    Report,
    Resume,
    Scheduler,
    Stop,
)
from troupe.tune._core.ranked import IntervalRanks, Ranked
from troupe.tune.schedulers import (
    BanditPolicy,
    MedianStoppingPolicy,
    MedianStoppingRule,
    TruncationSelectionPolicy,
)


def report(trial: str, number: int, score: float, time: Any = None, **more: Any) -> Report:
    return Report(
        trial, number, {"training_iteration": number if time is None else time}, score, **more
    )


def median(values: list[float]) -> float:
    values = sorted(values)
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    return low if low == high or low == -math.inf else low + (high - low) / 2


def mean(values: list[float]) -> float:
    return (
        -math.inf
        if -math.inf in values
        else min(max(sum(values) / len(values), min(values)), max(values))
    )


@pytest.mark.parametrize("seed", range(40))
def test_values_that_hold_for_a_while(seed: int) -> None:
    generator, ranks, plain = random.Random(seed), IntervalRanks(), []
    for _ in range(300):
        if plain and generator.random() < 0.3:
            ranks.remove(*plain.pop(generator.randrange(len(plain))))
        first = generator.randrange(200)
        one = (
            first,
            first + generator.choice([-1, 0, 1, 5, 70]),
            generator.choice([generator.random(), generator.randrange(3), -math.inf]),
        )
        ranks.add(*one)
        plain.append(one)
        tick, value = (
            generator.randrange(260),
            generator.choice([generator.random(), generator.randrange(3), -math.inf]),
        )
        there = [each for low, high, each in plain if low <= tick <= high]
        count, is_above, _ = ranks.at(tick, value)
        assert count == len(there) and is_above == bool(there and median(there) > value)


def test_ranked() -> None:
    ranked = Ranked()
    assert ranked.quantile(0.5) is None
    for score in (3.0, 1.0, 2.0, 2.0):
        ranked.add(score)
    assert (ranked.above(2.0), ranked.below(2.0), ranked.quantile(0.5), ranked.quantile(1)) == (
        1,
        1,
        2.0,
        3.0,
    )
    ranked.remove(2.0)
    assert ranked.scores == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="not among them"):
        ranked.remove(2.5)


class SlowMedianRule:
    """The rule, by looking at all reports each time."""

    def __init__(self, grace: float, least: int) -> None:
        self.grace, self.least = grace, least
        self.reports: dict[str, list[tuple[float, float]]] = {}

    def reported(self, trial: str, time: float, score: float) -> bool:
        mine = self.reports.setdefault(trial, [])
        mine.append((time, score))
        if time < self.grace:
            return False
        means = []
        for other, reports in self.reports.items():
            counted = [each for at, each in reports if self.grace <= at <= time]
            if other != trial and reports[-1][0] >= time and counted:
                means.append(mean(counted))
        return len(means) >= self.least and median(means) > max(each for _, each in mine)


@pytest.mark.parametrize("seed", range(60))
def test_the_median_rule(seed: int) -> None:
    generator = random.Random(seed)
    grace, least, fractions = (
        generator.choice([0, 2, 4]),
        generator.choice([1, 2, 3, 5]),
        seed % 2 == 0,
    )
    rule, slow = (
        MedianStoppingRule("training_iteration", grace_period=grace, min_samples_required=least),
        SlowMedianRule(grace, least),
    )
    rule.begin("acc", Mode.MAX)
    live, at, numbers, stopped = [f"t{each}" for each in range(30)], {}, {}, 0
    for trial in live:
        rule.added(trial, {})
    while live:
        trial = generator.choice(live)
        # Multiples of 1/1024, which are exact, as whole numbers are.
        at[trial] = at.get(trial, 0) + (
            generator.randrange(1, 3000) / 1024 if fractions else generator.choice([1, 1, 1, 4])
        )
        numbers[trial] = numbers.get(trial, 0) + 1
        score = (
            -math.inf
            if generator.random() < 0.03
            else generator.choice([generator.randrange(100) / 64, generator.randrange(3)])
        )
        actions = rule.reported(report(trial, numbers[trial], score, at[trial]))
        assert bool(actions) == slow.reported(trial, at[trial], score)
        stopped += bool(actions)
        if actions or at[trial] > 25:
            live.remove(trial)
            rule.ended(trial, End.STOPPED)
    assert stopped


def test_equal_scores_are_not_worse_than_their_average() -> None:
    rule, policy = (
        MedianStoppingRule("training_iteration", grace_period=0, min_samples_required=1),
        MedianStoppingPolicy(),
    )
    for each in (rule, policy):
        each.begin("acc", Mode.MAX)
        for trial in "abc":
            each.added(trial, {})
            for number in range(1, 30):
                assert each.reported(report(trial, number, 0.1)) == ()


def test_what_a_trial_has_taken_back_counts_no_more() -> None:
    made = [
        MedianStoppingRule("training_iteration", grace_period=0, min_samples_required=1),
        MedianStoppingPolicy(),
        BanditPolicy(slack_amount=0.1),
        TruncationSelectionPolicy(truncation_percentage=50),
    ]
    for each in made:
        each.begin("acc", Mode.MAX)
        for trial in "ab":
            each.added(trial, {})
        for number in (1, 2, 3, 4):
            each.reported(report("a", number, 9.0 if number > 2 else 1.0))
        each.went_back("a", 2)
        for number in (1, 2, 3):
            assert each.reported(report("b", number, 1.0)) == (), each
        each.reported(report("a", 3, 9.0))
        assert each.reported(report("a", 4, 9.0)) == ()
        assert isinstance(each.reported(report("b", 4, 0.5))[0], Stop), each


def test_a_trial_that_cannot_be_compared_makes_room_if_it_can_go_on() -> None:
    rule = MedianStoppingRule(
        "training_iteration", grace_period=1, min_samples_required=2, min_time_slice=1
    )
    rule.begin("acc", Mode.MAX)
    rule.added("a", {})
    assert (
        rule.reported(report("a", 1, 1.0, can_add=True)) == ()
    )  # without a checkpoint it would begin anew
    assert rule.reported(report("a", 2, 1.0, checkpoint=True)) == ()  # nobody waits
    (pause,) = rule.reported(report("a", 3, 1.0, checkpoint=True, can_add=True))
    assert (
        isinstance(pause, Pause)
        and rule.choose(True) is Choice.NEW
        and rule.choose(False) == Resume("a", "nothing else waits")
    )
    rule.added("b", {})
    assert rule.reported(report("b", 1, 1.0, checkpoint=True))  # a waits now
    rule.resumed("a", {})
    assert rule.reported(report("a", 4, 1.0, checkpoint=True)) == () and rule.choose(
        False
    ) == Resume("b", "nothing else waits")


def test_a_soft_stop_pauses_and_what_is_paused_goes_on_in_the_end() -> None:
    sweep = Sweep(
        MedianStoppingRule("training_iteration", grace_period=2, hard_stop=False),
        [{}] * 20,
        curves(1),
        reports=8,
        slots=3,
    ).run()
    assert sweep.scheduler.needs_checkpoints and any(
        "median" in action.why for action in sweep.actions
    )
    assert all(each.end is End.COMPLETED for each in sweep.trials.values())


class SlowPolicy:
    """The rules of the three, by looking at all reports each time."""

    def __init__(self, policy: Any, mode: Mode) -> None:
        self.policy, self.mode = policy, mode
        self.values: dict[str, list[float]] = {}
        self.over: set[str] = set()

    def reported(self, trial: str, value: float) -> bool:
        mine = self.values.setdefault(trial, [])
        mine.append(value)
        number, policy = len(mine), self.policy
        if number < policy.delay_evaluation or number % (policy.evaluation_interval or 1):
            return False
        there = {
            each: values[:number] for each, values in self.values.items() if len(values) >= number
        }
        best = max if self.mode is Mode.MAX else min
        if isinstance(policy, BanditPolicy):
            top = best(values[-1] for values in there.values())
            if self.mode is Mode.MAX:
                return value < (
                    top - policy.slack_amount
                    if policy.slack_amount
                    else top / (1 + policy.slack_factor)
                    if top > 0
                    else top - abs(top) * policy.slack_factor / (1 + policy.slack_factor)
                )
            return value > (
                top + policy.slack_amount
                if policy.slack_amount
                else top + abs(top) * policy.slack_factor
            )
        if isinstance(policy, MedianStoppingPolicy):
            middle = statistics.median(statistics.fmean(values) for values in there.values())
            return best(mine) < middle if self.mode is Mode.MAX else best(mine) > middle
        others = [
            values[-1] for each, values in there.items() if each not in self.over and each != trial
        ]
        not_better = sum(
            other <= value if self.mode is Mode.MAX else other >= value for other in others
        )
        return not_better < (len(others) + 1) * policy.truncation_percentage // 100


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    "policy",
    [
        BanditPolicy(slack_factor=0.2),
        BanditPolicy(slack_amount=0.3, evaluation_interval=2, delay_evaluation=3),
        MedianStoppingPolicy(delay_evaluation=2),
        TruncationSelectionPolicy(truncation_percentage=30, evaluation_interval=2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("seed", range(12))
def test_the_policies_of_azure(policy: Any, mode: Mode, seed: int) -> None:
    generator = random.Random(seed)
    made: Scheduler = type(policy)(
        **{
            name: value
            for name, value in vars(policy).items()
            if name
            in (
                "slack_factor",
                "slack_amount",
                "delay_evaluation",
                "evaluation_interval",
                "truncation_percentage",
            )
        }
    )
    slow = SlowPolicy(policy, mode)
    made.begin("acc", mode)
    live, numbers, stopped = [f"t{each}" for each in range(30)], {}, 0
    for trial in live:
        made.added(trial, {})
    low = -1 if seed % 2 else 1
    while live:
        trial = generator.choice(live)
        numbers[trial] = numbers.get(trial, 0) + 1
        value = (
            generator.randrange(low * 32, 96) / 32 if low < 0 else generator.randrange(32, 96) / 32
        )
        actions = made.reported(report(trial, numbers[trial], mode.score(value)))
        assert bool(actions) == slow.reported(trial, value), (trial, numbers[trial], value)
        stopped += bool(actions)
        if actions or numbers[trial] >= 10:
            live.remove(trial)
            slow.over.add(trial)
            made.ended(trial, End.STOPPED if actions else End.COMPLETED)
    assert stopped


def test_why_of_the_policies() -> None:
    bandit = BanditPolicy(slack_factor=0.1)
    bandit.begin("loss", Mode.MIN)
    for trial in "ab":
        bandit.added(trial, {})
    bandit.reported(report("a", 1, -1.0))
    assert (
        bandit.reported(report("b", 1, -2.0))[0].why
        == "BanditPolicy at report 1: loss is 2, the best 1, and it may be above that by 0.1"
    )
    assert repr(bandit) == (
        "BanditPolicy(delay_evaluation=0, evaluation_interval=0, slack_amount=0, slack_factor=0.1)"
    )


@pytest.mark.parametrize(
    "made",
    [
        MedianStoppingRule("training_iteration", grace_period=1),
        BanditPolicy(slack_factor=0.3),
        MedianStoppingPolicy(),
        TruncationSelectionPolicy(truncation_percentage=40),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("seed", range(6))
def test_G10_every_trial_is_over_and_a_replay_decides_the_same(made: Any, seed: int) -> None:
    sweep = Sweep(
        copy.deepcopy(made),
        [{}] * 30,
        curves(seed, (math.nan, None)),
        reports=9,
        slots=4,
        seed=seed,
        fails=0.02,
        goes_back=0.05,
    ).run()
    replayed = sweep.replayed()
    for each in (sweep.scheduler, replayed):
        each.added("new", {})
    for number in range(1, 10):
        assert sweep.scheduler.reported(report("new", number, number / 3)) == replayed.reported(
            report("new", number, number / 3)
        )


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: BanditPolicy(slack_amount=1, slack_factor=1), "say one of them"),
        (lambda: BanditPolicy(slack_factor=-1), "slack_factor must be a finite number at least 0"),
        (
            lambda: MedianStoppingPolicy(evaluation_interval=-1),
            "MedianStoppingPolicy: evaluation_interval must be at least 0",
        ),
        (lambda: TruncationSelectionPolicy(), "truncation_percentage must be at least 1"),
        (lambda: TruncationSelectionPolicy(truncation_percentage=100), "must be 1 to 99, not 100"),
        (
            lambda: MedianStoppingRule(min_samples_required=0),
            "min_samples_required must be at least 1",
        ),
        (
            lambda: MedianStoppingRule(grace_period=-1),
            "grace_period must be a finite number at least 0",
        ),
    ],
)
def test_what_is_refused(made: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        made()
