"""Population based training and its replay: who copies whom, how configurations change, that score
and checkpoint are of one step.

Method: random traces beside a slow plain reference, and cases by hand.
"""

from __future__ import annotations

import copy
import json
import math
import pathlib
import random
from typing import Any

import pytest
from driven import Sweep, curves

from troupe import tune
from troupe.tune._core.deciding import (
    Choice,
    End,
    Exploit,
    Mode,
    Pause,
    Report,
    ReportError,
    Resume,
    Stop,
)
from troupe.tune._core.explore import Explorer, completed
from troupe.tune.schedulers import (
    PopulationBasedTraining,
    PopulationBasedTrainingReplay,
    pbt_replay,
)


def report(trial: str, number: int, score: Any, *, checkpoint: bool = True, **more: Any) -> Report:
    return Report(
        trial,
        number,
        {"training_iteration": number, "acc": score},
        Mode.MAX.score(score),
        checkpoint,
        **more,
    )


def population(number: int, **arguments: Any) -> PopulationBasedTraining:
    arguments = {
        "time_attr": "training_iteration",
        "perturbation_interval": 1,
        "hyperparam_mutations": {"lr": [1, 2, 3]},
        "seed": 1,
        **arguments,
    }
    made = PopulationBasedTraining(**arguments)
    made.begin("acc", Mode.MAX)
    for each in range(number):
        made.added(f"t{each}", {"lr": each, "kept": each})
    return made


@pytest.mark.parametrize("seed", range(40))
def test_who_copies_whom(seed: int) -> None:
    generator = random.Random(seed)
    fraction = generator.choice([0.1, 0.25, 0.5])
    number = generator.randrange(2, 13)
    pbt = population(number, quantile_fraction=fraction, seed=seed)
    scores: dict[str, float] = {}
    numbers = dict.fromkeys((f"t{each}" for each in range(number)), 0)
    copies = 0
    for _ in range(200):
        trial = generator.choice(list(numbers))
        numbers[trial] += 1
        scores[trial] = Mode.MAX.score(
            generator.choice([generator.random(), generator.randrange(3), math.nan])
        )
        actions = pbt.reported(report(trial, numbers[trial], scores[trial]))
        ranked = sorted(scores, key=lambda each: (scores[each], int(each[1:])))
        size = min(math.ceil(len(ranked) * fraction), len(ranked) // 2)
        lower, upper = ranked[:size], ranked[len(ranked) - size :]
        donors = [
            each for each in upper if scores[each] > scores[trial] and each not in pausing(pbt)
        ]
        if trial not in lower or not donors:
            assert actions == ()
            continue
        (exploit,) = actions
        copies += 1
        assert (
            exploit.trial == trial
            and exploit.donor in donors
            and exploit.donor_report == numbers[exploit.donor]
        )
        numbers[trial] = exploit.donor_report
        pbt.resumed(trial, exploit.config)
    assert copies or number < 3


def pausing(pbt: PopulationBasedTraining) -> set[str]:
    """Return the members that nobody can copy, since they have not reported after they became
    copies."""
    return {trial for trial, member in pbt._population.members.items() if member.copyable is None}


def test_a_copy_has_the_donors_progress_and_configuration_and_is_no_donor_before_it_reports() -> (
    None
):
    pbt = population(4, quantile_fraction=0.5, perturbation_interval=2, resample_probability=0)
    for number in (1, 2, 3):
        assert pbt.reported(report("t3", number, 9.0)) == ()
    assert pbt.reported(report("t1", 1, 0.5)) == ()
    (exploit,) = pbt.reported(report("t1", 2, 0.5))
    assert exploit.donor == "t3" and exploit.donor_report == 3 and exploit.config["kept"] == 3
    assert "its acc is 0.5 and t3's 9; lr " in exploit.why and "->" in exploit.why
    assert pbt.choose(False) == Resume(
        "t1", "none that waits has come less far than training_iteration 3"
    )
    pbt.resumed("t1", exploit.config)
    assert pbt.choose(False) is Choice.WAIT
    # The copy takes over the donor's clock, which was compared at 2: the next time is 4.
    assert pbt.reported(report("t1", 4, 9.9)) == () and pbt._population.members["t1"].perturbed == 4


def test_score_and_checkpoint_are_of_one_step() -> None:
    pbt = population(2, quantile_fraction=0.5)
    pbt.reported(report("t0", 1, 5.0))
    pbt.reported(
        report("t0", 2, 0.1, checkpoint=False)
    )  # the copyable report of t0 is still as good as 5
    (exploit,) = pbt.reported(report("t1", 1, 1.0))
    assert (exploit.donor, exploit.donor_report) == ("t0", 1)
    with pytest.raises(
        ReportError, match="copies checkpoints, and a has reported none in 2 reports"
    ):
        pbt.added("a", {"lr": 1})
        for number in (1, 2):
            pbt.reported(report("a", number, 1.0, checkpoint=False))


def test_after_a_failure_what_was_reported_since_the_checkpoint_is_not_copied() -> None:
    pbt = population(2, quantile_fraction=0.5)
    for number in (1, 2, 3):
        pbt.reported(report("t0", number, 9.0))
    pbt.went_back("t0", 1)
    assert pbt.reported(report("t1", 1, 1.0)) == ()
    pbt.ended("t0", End.FAILED)
    assert pbt.reported(report("t1", 2, 1.0)) == ()


def test_nothing_before_burn_in_and_between_intervals() -> None:
    pbt = population(2, quantile_fraction=0.5, burn_in_period=4, perturbation_interval=3)
    for number in range(1, 4):
        for trial, score in (("t0", 9.0), ("t1", 1.0)):
            assert pbt.reported(report(trial, number, score)) == ()
    pbt.reported(report("t0", 4, 9.0))
    assert isinstance(pbt.reported(report("t1", 4, 1.0))[0], Exploit)


def test_more_trials_than_slots_take_turns() -> None:
    sweep = Sweep(
        population(0),
        [{"lr": each} for each in (1, 2, 3, 1, 2, 3)],
        curves(3),
        reports=12,
        slots=2,
        seed=2,
    ).run()
    assert (
        sweep.most_running == 2
        and len(sweep.trials) == 6
        and all(each.end is End.COMPLETED for each in sweep.trials.values())
    )
    assert any(isinstance(each, Exploit) for each in sweep.actions) and any(
        isinstance(each, Pause) for each in sweep.actions
    )


@pytest.mark.parametrize("synch", [False, True])
@pytest.mark.parametrize("every", range(1, 8))
def test_checkpoints_need_not_come_with_the_interval(every: int, synch: bool) -> None:
    """More often than the interval, less often, or beside it: no trial fails, and none ends before
    its last report."""
    copied = 0
    for interval in range(1, 6):
        for seed in range(6):
            made = population(
                0, perturbation_interval=interval, quantile_fraction=0.5, synch=synch, seed=seed
            )
            noise = random.Random(seed)
            sweep = Sweep(
                made,
                [{"lr": 1 + each % 3} for each in range(5)],
                lambda trial, number, config: number + 3 * noise.random(),
                reports=24,
                slots=2 + seed % 4,
                seed=seed,
                saves=lambda number: number % every == 1 % every,
            ).run()
            assert [each.end for each in sweep.trials.values()] == [End.COMPLETED] * 5, (
                interval,
                seed,
            )
            copied += any(isinstance(each, Exploit) for each in sweep.actions)
    assert copied


@pytest.mark.parametrize("synch", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_G10_every_trial_is_over_and_a_replay_decides_the_same(seed: int, synch: bool) -> None:
    made = PopulationBasedTraining(
        "training_iteration",
        perturbation_interval=1 + seed % 3,
        quantile_fraction=0.4,
        synch=synch,
        seed=seed,
        hyperparam_mutations={
            "lr": tune.uniform(0, 1),
            "n": {"k": [1, 2, 3]},
            "f": lambda: random.random(),
        },
    )
    space = made.completed({"kept": 7})
    assert set(space) == {"kept", "lr", "n", "f"}
    sweep = Sweep(
        copy.deepcopy(made),
        [{"lr": 0.5, "n": {"k": 2}, "f": 0.5}] * 8,
        curves(seed, (math.nan,)),
        reports=14,
        slots=3 + seed % 6,
        seed=seed,
        fails=0.02,
    ).run()
    replayed = sweep.replayed()
    for each in (sweep.scheduler, replayed):
        for trial in ("x", "y"):
            each.added(trial, {"lr": 0.5, "n": {"k": 2}, "f": 0.5})
    for number in range(1, 9):
        for trial in ("x", "y"):
            one, other = (
                each.reported(report(trial, number, 1.0 if trial == "x" else 0.0))
                for each in (sweep.scheduler, replayed)
            )
            assert [(each.trial, type(each)) for each in one] == [
                (each.trial, type(each)) for each in other
            ]
            for (
                action
            ) in one:  # draws of the user's function are in the journal, so both continue with them
                if isinstance(action, Exploit):
                    assert {**action.config, "f": 0} == {
                        **next(each for each in other if isinstance(each, Exploit)).config,
                        "f": 0,
                    }
            for action in one:
                for each in (sweep.scheduler, replayed):
                    if not isinstance(action, Stop):
                        each.resumed(
                            action.trial,
                            getattr(action, "config", {"lr": 0.5, "n": {"k": 2}, "f": 0.5}),
                        )


def test_all_wait_for_each_other() -> None:
    pbt = population(4, synch=True, perturbation_interval=2, quantile_fraction=0.25)
    for trial, score in (("t0", 1.0), ("t1", 2.0), ("t2", 3.0)):
        assert pbt.reported(report(trial, 1, score)) == ()
        assert isinstance(pbt.reported(report(trial, 2, score))[0], Pause)
    assert pbt.choose(False) is Choice.WAIT
    pause, exploit = pbt.reported(report("t3", 2, 4.0))
    assert isinstance(pause, Pause) and (exploit.trial, exploit.donor, exploit.donor_report) == (
        "t0",
        "t3",
        2,
    )
    order = []
    for _ in range(4):
        order.append(pbt.choose(False).trial)
        pbt.resumed(order[-1], {"lr": 1})
    assert sorted(order) == ["t0", "t1", "t2", "t3"] and pbt.choose(False) is Choice.WAIT


def test_those_that_wait_for_one_that_fails_go_on() -> None:
    pbt = population(3, synch=True, quantile_fraction=0.5)
    for trial in ("t0", "t1"):
        pbt.reported(report(trial, 1, 1.0 if trial == "t0" else 2.0))
    pbt.ended("t2", End.FAILED)
    assert pbt.choose(False) is Choice.WAIT
    (exploit,) = pbt.stalled()
    assert (exploit.trial, exploit.donor) == ("t0", "t1") and isinstance(pbt.choose(False), Resume)
    reports_seldom = population(2, synch=True, perturbation_interval=5)
    for trial in ("t0", "t1"):
        reports_seldom.reported(report(trial, 23, 1.0))
    assert isinstance(reports_seldom.choose(False), Resume)  # the next time lies ahead of them


def explored(
    mutations: Any, config: Any, times: int = 300, resample: float = 0.25, custom: Any = None
) -> list[dict]:
    explorer, generator = Explorer(mutations, resample, (1.2, 0.8), custom), random.Random(1)
    return [explorer.explored(config, generator)[0] for _ in range(times)]


def test_lists_move_to_a_neighbour_and_numbers_are_multiplied_within_their_bounds() -> None:
    assert {each["b"] for each in explored({"b": [16, 32, 64, 128]}, {"b": 32}, resample=0)} == {
        16,
        64,
    }
    assert {each["b"] for each in explored({"b": (16, 32, 64)}, {"b": 16}, resample=0)} == {16, 32}
    assert {each["b"] for each in explored({"b": [16, 32]}, {"b": 5}, resample=0)} == {
        16,
        32,
    }  # belongs to none of them
    assert {
        each["b"] for each in explored({"b": tune.choice(["x", "y", "z"])}, {"b": "y"}, resample=0)
    } == {"x", "z"}
    assert {
        each["lr"] for each in explored({"lr": tune.uniform(0.45, 0.55)}, {"lr": 0.5}, resample=0)
    } == {0.45, 0.55}
    assert {each["n"] for each in explored({"n": tune.randint(1, 12)}, {"n": 10}, resample=0)} == {
        8,
        11,
    }
    assert {
        each["n"] for each in explored({"n": tune.qrandint(8, 64, 8)}, {"n": 40}, resample=0)
    } == {48, 32}
    assert {each["f"] for each in explored({"f": lambda: 3.0}, {"f": 10.0})} == {12.0, 8.0, 3.0}
    assert {each["f"] for each in explored({"f": lambda: "c"}, {"f": "a"})} == {"a", "c"}
    assert {each["f"] for each in explored({"f": lambda: 0}, {"f": True})} == {True, False}
    nested = explored({"a": {"b": [1, 2]}}, {"a": {"b": 1, "kept": 5}, "other": 6})
    assert all(each["a"]["kept"] == 5 and each["other"] == 6 for each in nested) and {
        each["a"]["b"] for each in nested
    } == {1, 2}
    assert (
        len({each["lr"] for each in explored({"lr": tune.uniform(0, 1)}, {"lr": 0.5}, resample=1)})
        == 300
    )


def test_the_users_function_has_the_last_word() -> None:
    assert (
        explored({"a": [1, 2]}, {"a": 1}, 1, custom=lambda config: {**config, "b": 3})[0]["b"] == 3
    )
    with pytest.raises(
        TypeError, match="custom_explore_fn must return the configuration, and has returned None"
    ):
        explored({}, {"a": 1}, 1, custom=lambda config: None)
    config = {"a": {"b": [1]}}
    explored({"a": {"b": [1, 2]}}, config, 5)
    assert config == {"a": {"b": [1]}}


def test_what_the_space_has_not_is_drawn_by_the_mutations() -> None:
    space = completed(
        {"lr": 0.1}, {"lr": [1], "b": [1, 2], "n": {"k": tune.uniform(0, 1)}, "f": lambda: 5}
    )
    assert (
        space["lr"] == 0.1
        and repr(space["b"]) == "choice([1, 2])"
        and set(space) == {"lr", "b", "n", "f"}
    )


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"hyperparam_mutations": None}, ValueError, "say what changes"),
        ({"quantile_fraction": 0.6}, ValueError, "quantile_fraction .* at most 0.5"),
        ({"perturbation_interval": 0}, ValueError, "perturbation_interval .* above 0"),
        ({"resample_probability": 2}, ValueError, "at most 1"),
        (
            {"hyperparam_mutations": {"a": {"b": 3}}},
            TypeError,
            "hyperparam_mutations: a/b: a list of values, a domain",
        ),
        ({"hyperparam_mutations": {"a": []}}, ValueError, "a: .* has no values"),
        ({"perturbation_factors": ()}, ValueError, "is empty"),
        (
            {"hyperparam_mutations": {"a": tune.uniform(2, 1)}},
            ValueError,
            "a: uniform.*below the upper",
        ),
        ({"mode": "up"}, ValueError, "mode must be"),
        (
            {"hyperparam_mutations": {"a": tune.sample_from(lambda spec: 1)}},
            ValueError,
            "a: sample_from.* is drawn with the rest",
        ),
        ({"hyperparam_mutations": 3}, TypeError, "must be a dict"),
    ],
)
def test_what_is_refused(arguments: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        PopulationBasedTraining(**{"hyperparam_mutations": {"a": [1]}, **arguments})


def test_a_report_without_progress() -> None:
    strict, lenient = (
        population(1, time_attr="epoch"),
        population(1, time_attr="epoch", require_attrs=False),
    )
    for each in (strict, lenient):
        each.reported(Report("t0", 1, {"epoch": 1}, 1.0, True))
    with pytest.raises(ReportError, match="in every report, and report 2 of t0 has none"):
        strict.reported(Report("t0", 2, {}, 1.0))
    assert lenient.reported(Report("t0", 2, {}, 1.0)) == ()


def policy(folder: pathlib.Path, *rows: tuple) -> str:
    file = folder / "pbt_policy_3.txt"
    file.write_text("".join(pbt_replay.line(*row) + "\n" for row in rows))
    return str(file)


def test_replay_changes_the_configuration_where_the_trial_had_it_changed(
    tmp_path: pathlib.Path,
) -> None:
    # b became a copy of a, which changed before; what b itself had gone through does not count.
    file = policy(
        tmp_path,
        ("z", "b", 1, 1, {"lr": 9}, {"lr": 8}),
        ("a", "c", 3, 2, {"lr": 1}, {"lr": 2}),
        ("b", "a", 6, 5, {"lr": 2}, {"lr": 3}),
    )
    replay = PopulationBasedTrainingReplay(file)
    assert replay.completed({}) == {"lr": 1}
    replay.begin("acc", Mode.MAX)
    replay.added("t", {"lr": 1})
    assert (
        replay.reported(report("t", 1, 0.0)) == ()
        and replay.reported(report("t", 2, 0.0, checkpoint=False)) == ()
    )
    (exploit,) = replay.reported(report("t", 3, 0.0))
    assert exploit == Exploit(
        "t", "t", 3, {"lr": 2}, "the policy changes it at training_iteration 2"
    ) and replay.choose(False) == Resume("t")
    replay.resumed("t", {"lr": 2})
    with pytest.warns(UserWarning, match="param_space is passed over"):
        assert replay.completed({"lr": 5}) == {"lr": 1}
    (exploit,) = replay.reported(report("t", 5, 0.0))
    assert exploit.config == {"lr": 3}
    with pytest.raises(ValueError, match="trains one trial"):
        replay.added("u", {})


def test_replay_is_told_what_it_cannot_do(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        PopulationBasedTrainingReplay(str(tmp_path / "none"))
    (tmp_path / "bad").write_text(json.dumps([1, 2, 3]) + "\n")
    with pytest.raises(ValueError, match="bad, line 1, is no line of a policy"):
        PopulationBasedTrainingReplay(str(tmp_path / "bad"))
    replay = PopulationBasedTrainingReplay(
        policy(
            tmp_path, ("a", "c", 3, 2, {"lr": 1}, {"lr": 2}), ("b", "a", 6, 5, {"lr": 2}, {"lr": 3})
        )
    )
    replay.added("t", {})
    for number in range(1, 5):
        replay.reported(report("t", number, 0.0, checkpoint=False))
    with pytest.raises(
        ReportError, match="at training_iteration 2 and 5 and goes on from a checkpoint of there"
    ):
        replay.reported(report("t", 5, 0.0, checkpoint=False))
