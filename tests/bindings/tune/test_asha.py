"""ASHA decides as the paper says, and, where it stops trials, as a slow plain reference of Ray's
rule.

Method: random traces for both, and cases by hand.
"""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import pytest
from driven import Sweep, curves

from troupe.tune._core.deciding import (
    Choice,
    End,
    Mode,
    Pause,
    Report,
    ReportError,
    Resume,
    Stop,
)
from troupe.tune.schedulers import ASHAScheduler, AsyncHyperBandScheduler


def percentile(values: list[float], fraction: float) -> float:
    """As numpy's, of a list."""
    values = sorted(values)
    place = (len(values) - 1) * fraction
    first = math.floor(place)
    low, high, share = values[first], values[min(first + 1, len(values) - 1)], place - first
    if share == 0 or low == high or low == -math.inf:
        return low
    return (
        high
        if high == math.inf
        else high - (high - low) * (1 - share)
        if share >= 0.5
        else low + (high - low) * share
    )


class SlowAsha:
    """The rule, by looking at everything each time."""

    def __init__(self, grace: float, max_t: float, factor: float, stop_last: bool) -> None:
        self.max_t, self.factor, self.stop_last = max_t, factor, stop_last
        number = int(math.log(max_t / grace) / math.log(factor) + 1)
        self.rungs: dict[float, dict[str, float]] = {
            grace * factor**rung: {} for rung in range(number)
        }

    def reported(self, trial: str, time: float, score: float) -> bool:
        return time >= self.max_t and self.stop_last or self.recorded(trial, time, score)

    def recorded(self, trial: str, time: float, score: float) -> bool:
        for milestone in sorted(self.rungs, reverse=True):
            there = self.rungs[milestone]
            if time >= milestone and trial in there and not self.stop_last:
                return False
            if time >= milestone and trial not in there:
                stop = bool(there) and score < percentile(list(there.values()), 1 - 1 / self.factor)
                there[trial] = score
                return stop
        return False


def report(trial: str, number: int, score: Any, time: float | None = None, **more: Any) -> Report:
    metrics = {"training_iteration": number if time is None else time, "acc": score}
    return Report(trial, number, metrics, Mode.MAX.score(score), **more)


@pytest.mark.parametrize("seed", range(60))
def test_stops_as_the_plain_rule(seed: int) -> None:
    generator = random.Random(seed)
    grace, factor, max_t = (
        generator.choice([1, 2, 3]),
        generator.choice([2, 3, 4, 2.5]),
        generator.choice([9, 16, 81, 100]),
    )
    stop_last = generator.random() < 0.7
    asha, slow = (
        ASHAScheduler(
            max_t=max_t, grace_period=grace, reduction_factor=factor, stop_last_trials=stop_last
        ),
        SlowAsha(grace, max_t, factor, stop_last),
    )
    asha.begin("acc", Mode.MAX)
    live, time, number, decided = [f"t{each}" for each in range(40)], {}, {}, 0
    for trial in live:
        asha.added(trial, {})
    while live:
        trial = generator.choice(live)
        time[trial] = time.get(trial, 0) + (1 if seed % 3 else generator.choice([1, 2, 5]))
        number[trial] = number.get(trial, 0) + 1
        score = generator.choice(
            [generator.random(), generator.randrange(5), math.nan, None, -math.inf, math.inf]
        )
        actions = asha.reported(report(trial, number[trial], score, time[trial]))
        stop = slow.reported(trial, time[trial], Mode.MAX.score(score))
        assert stop == bool(actions) and all(
            isinstance(action, Stop) and action.trial == trial for action in actions
        )
        if actions or time[trial] > 120:
            decided += bool(actions)
            live.remove(trial)
            slow.recorded(trial, time[trial], Mode.MAX.score(score))
            asha.ended(trial, End.STOPPED if actions else End.COMPLETED)
    assert decided


def test_the_first_of_a_rung_goes_on_and_nan_is_worst() -> None:
    asha = ASHAScheduler(max_t=100, grace_period=1, reduction_factor=2)
    asha.begin("acc", Mode.MAX)
    for trial in "abcde":
        asha.added(trial, {})
    assert asha.reported(report("a", 1, math.nan)) == ()  # nothing was recorded there before it
    assert asha.reported(report("b", 1, 0.1)) == ()
    assert asha.reported(report("c", 1, 0.3)) == ()
    (stop,) = asha.reported(report("e", 1, 0.05))
    assert "acc is 0.05 at training_iteration 1" in stop.why
    (stop,) = asha.reported(report("d", 1, None))
    assert stop == Stop(
        "d",
        "acc is nothing that is a number at training_iteration 1, and the best 1/2 of 4 before it "
        "are at 0.075",
    )


def test_why_says_the_metric_and_not_its_negative() -> None:
    asha = ASHAScheduler(max_t=100, reduction_factor=2)
    asha.begin("loss", Mode.MIN)
    for trial, loss in (("a", 1.0), ("b", 2.0)):
        asha.added(trial, {})
        actions = asha.reported(Report(trial, 1, {"training_iteration": 1}, Mode.MIN.score(loss)))
    assert (
        actions[0].why
        == "loss is 2 at training_iteration 1, and the best 1/2 of 1 before it are at 1"
    )


@pytest.mark.parametrize("kind", ["stopping", "promotion"])
def test_what_was_reported_after_a_checkpoint_that_is_gone_back_to_counts_no_more(
    kind: str,
) -> None:
    asha, other = (
        ASHAScheduler(max_t=100, grace_period=2, reduction_factor=2, type=kind) for _ in range(2)
    )
    for each in (asha, other):
        each.begin("acc", Mode.MAX)
        for trial in "ab":
            each.added(trial, {})
    for number in (1, 2):
        asha.reported(report("a", number, 0.9))
    asha.went_back("a", 1)
    for each in (asha, other):  # the 0.9 is not there any more, so 0.1 is the first of the rung
        assert [type(one) for one in each.reported(report("b", 2, 0.1))] == (
            [] if kind == "stopping" else [Pause]
        )
        assert [type(one) for one in each.reported(report("a", 2, 0.05))] == (
            [Stop] if kind == "stopping" else [Pause]
        )
        assert each.choose(True) == (
            Choice.NEW
            if kind == "stopping"
            else Resume("b", "it is number 1 of 2, of which 1 go on, at training_iteration 2")
        )


class SlowPromotion:
    """Promotion by the paper, in plain code: from the highest rung down, a trial of the best
    floor(n/factor) that was not promoted."""

    def __init__(self, asha_rungs: list[float], factor: float) -> None:
        self.rungs = {milestone: {} for milestone in asha_rungs}
        self.gone: dict[float, set[str]] = {milestone: set() for milestone in asha_rungs}
        self.factor, self.order, self.paused = factor, 0, set()

    def reported(self, trial: str, time: float, score: float) -> bool:
        passed = [
            milestone
            for milestone in self.rungs
            if time >= milestone and trial not in self.rungs[milestone]
        ]
        for milestone in sorted(passed, reverse=True):
            self.order += 1
            self.rungs[milestone][trial] = (score, -self.order)
        for milestone in sorted(passed)[:-1]:
            self.gone[milestone].add(trial)
        if passed:
            self.paused.add(trial)
        return bool(passed)

    def next(self) -> str | None:
        for milestone in sorted(self.rungs, reverse=True):
            best = sorted(
                self.rungs[milestone], key=self.rungs[milestone].__getitem__, reverse=True
            )
            for trial in best[: int(len(best) / self.factor)]:
                if (
                    trial in self.paused
                    and trial not in self.gone[milestone]
                    and self.rungs[milestone][trial][0] != -math.inf
                ):
                    return trial
        return None

    def resumed(self, trial: str) -> None:
        self.paused.discard(trial)
        for milestone, there in self.rungs.items():
            if trial in there:
                self.gone[milestone].add(trial)


@pytest.mark.parametrize("seed", range(60))
def test_promotes_as_the_paper(seed: int) -> None:
    generator = random.Random(seed)
    factor, max_t = generator.choice([2, 3, 4]), generator.choice([9, 16, 30])
    asha = ASHAScheduler(max_t=max_t, reduction_factor=factor, type="promotion")
    slow = SlowPromotion([each.milestone for each in asha._brackets[0].rungs], factor)
    asha.begin("acc", Mode.MAX)
    running: dict[str, list[int]] = {}
    places: dict[str, list[int]] = {}
    for step in range(400):
        chosen = asha.choose(True)
        promoted = slow.next()
        assert (chosen.trial if isinstance(chosen, Resume) else None) == promoted
        if len(running) < 4:
            trial = promoted or f"t{step}"
            if promoted:
                asha.resumed(trial, {})
                slow.resumed(trial)
            else:
                asha.added(trial, {})
            running[trial] = places.setdefault(trial, [0, 0])
        trial = generator.choice(list(running))
        place = running[trial]
        place[0], place[1] = place[0] + 1, place[1] + generator.choice([1, 1, 1, 3])
        score = generator.choice([generator.random(), generator.randrange(3), math.nan])
        actions = asha.reported(report(trial, *[place[0]], score, place[1]))
        if place[1] >= max_t:
            assert isinstance(actions[0], Stop)
            del running[trial]
            asha.ended(trial, End.STOPPED)
        elif slow.reported(trial, place[1], Mode.MAX.score(score)):
            assert isinstance(actions[0], Pause)
            del running[trial]
        else:
            assert not actions


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["stopping", "promotion"])
def test_G10_every_trial_is_over_and_a_replay_decides_the_same(kind: str, seed: int) -> None:
    asha = ASHAScheduler(max_t=27, reduction_factor=3, type=kind, brackets=1 + seed % 3, seed=seed)
    sweep = Sweep(
        pickle.loads(pickle.dumps(asha)),
        [{}] * 40,
        curves(seed, (math.nan, None)),
        reports=40,
        slots=4,
        seed=seed,
        fails=0.01,
        goes_back=0.02,
    ).run()
    assert any(isinstance(each, Stop) for each in sweep.actions)
    replayed = sweep.replayed()
    for each in (sweep.scheduler, replayed):
        each.added("new", {})
    for number in range(1, 28):
        one = report("new", number, number / 3, can_add=True)
        assert sweep.scheduler.reported(one) == replayed.reported(one)
        assert sweep.scheduler.choose(True) == replayed.choose(True)
    assert pickle.loads(pickle.dumps(replayed)).choose(True) == replayed.choose(True)


def test_brackets_are_drawn_by_their_number_of_rungs() -> None:
    asha = ASHAScheduler(max_t=64, brackets=3, seed=1)
    asha.begin("acc", Mode.MAX)
    for number in range(3000):
        asha.added(f"t{number}", {})
    counts = [
        sum(bracket is each for bracket in asha._bracket_of.values()) for each in asha._brackets
    ]
    assert (
        1850 < counts[0] < 2150 and 600 < counts[1] < 850 and 180 < counts[2] < 360
    )  # as e^4 : e^3 : e^2


def test_a_report_without_progress() -> None:
    asha = ASHAScheduler(time_attr="epoch")
    asha.begin("acc", Mode.MAX)
    asha.added("a", {})
    with pytest.raises(
        ReportError,
        match="ASHAScheduler asks for 'epoch' .time_attr., which is not reported: did you mean "
        "'epochs'?",
    ):
        asha.reported(Report("a", 1, {"epochs": 3}, 0.5))
    with pytest.raises(ReportError, match="reported as 'three' and must be a finite number"):
        asha.reported(Report("a", 1, {"epoch": "three"}, 0.5))
    assert asha.reported(Report("a", 2, {"epochs": 3}, 0.5)) == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_t": 0}, "max_t must be a finite number above 0"),
        ({"grace_period": 0}, "grace_period must be a finite number above 0"),
        ({"grace_period": 101}, "grace_period .* at most 100"),
        ({"reduction_factor": 1}, "reduction_factor .* above 1"),
        ({"brackets": 0}, "brackets must be at least 1"),
        ({"mode": "maximum"}, 'mode must be "min" or "max", not \'maximum\''),
        ({"type": "both"}, 'type must be "stopping" or "promotion"'),
        ({"max_t": math.nan}, "max_t must be a finite number"),
    ],
)
def test_what_is_refused(arguments: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AsyncHyperBandScheduler(**arguments)
    with pytest.raises(TypeError):
        AsyncHyperBandScheduler(time_attr=3)  # type: ignore[arg-type]
