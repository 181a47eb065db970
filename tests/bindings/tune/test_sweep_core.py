"""The core of sweeps: counted once, ended once, none lost, whatever the engine's end interrupts.

Method: `sweep_world`: random traces under a scheduler that stops, pauses and exploits, with the
engine's end at every step in turn, and several ends in one sweep. After each a new core has only
the journal. Checked after every row and effect: G1, G2, G5, G6; at the end: G3; and that a core
made from the journal is the one that wrote it, calls of the scheduler and all (G10).
"""

from __future__ import annotations

import copy
from dataclasses import asdict

import pytest
from sweep_world import Listed, Moody, World

from troupe.tune._core import events as ev
from troupe.tune._core.deciding import End, Proposal
from troupe.tune._core.ledger import Ledger
from troupe.tune._core.rules import Conditions, Rules
from troupe.tune._core.sweep import SweepCore
from troupe.tune._core.trial import Phase


def whole(world: World) -> None:
    """G3: as many trials as were asked for, each with one end."""
    ends = [row["trial"] for row in world.journal if row["kind"] == "end"]
    assert sorted(ends) == [f"t{number:03d}" for number in range(world.trials)]
    assert world.done is not None and not world.done.error and not world.processes
    assert sum(row["kind"] == "trial" for row in world.journal) == world.trials


@pytest.mark.property
@pytest.mark.parametrize("block", range(8))
def test_g1_to_g6_hold_in_random_sweeps(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        world = World(seed, trials=4 + seed % 9, slots=1 + seed % 4)
        world.run()
        whole(world)
        replayed = again(world)
        assert replayed.scheduler.calls == world.scheduler.calls, seed  # type: ignore[attr-defined]
        assert lives(replayed) == lives(world.core.ledger), seed


@pytest.mark.property
def test_trials_of_several_shapes_get_places_of_their_own() -> None:
    for seed in range(60):
        world = World(
            seed,
            trials=9,
            slots=1 + seed % 4,
            shapes=["a", "b", "c"],
            crashes=range(50, 500, 61) if seed % 2 else (),
        )
        world.run()
        whole(world)


def lives(ledger: Ledger) -> list[dict]:
    """All trials, but for when their engine would have tried again."""
    return [{**asdict(each), "retry_at": 0.0} for each in ledger.trials.values()]


def again(world: World) -> Ledger:
    """Rebuild a ledger from the journal."""
    ledger = Ledger(world.rules, Moody(world.seed), Conditions(), lambda call: None)
    for row in copy.deepcopy(world.journal):
        ledger.apply(row)
    return ledger


@pytest.mark.property
@pytest.mark.parametrize("seed", range(6))
def test_g3_the_engine_ends_at_every_step_in_turn(seed: int) -> None:
    """A sweep that goes on ends with the same number of trials, none lost, none twice."""
    uncut = World(seed, trials=4, slots=2)
    uncut.run()
    for step in range(1, uncut.count + 1):
        world = World(seed, trials=4, slots=2, crashes=[step])
        world.run()
        whole(world)
        assert world.engines == 2


@pytest.mark.property
@pytest.mark.parametrize("block", range(4))
def test_g3_the_engine_ends_again_and_again(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        world = World(seed, trials=6, slots=3, crashes=range(7 + seed % 5, 4000, 23 + seed % 17))
        world.run()
        whole(world)
        assert world.engines > 2


def core(**rules: object) -> tuple[SweepCore, Listed]:
    """Return a core that has begun and asked for its first places; trials are proposed as they are
    asked for."""
    made = SweepCore(Rules(**rules), Moody(1), name_of=lambda number: f"t{number}")  # type: ignore[arg-type]
    return made, Listed(4)


def feed(made: SweepCore, searcher: Listed, event: ev.Event, now: float = 0.0) -> list[ev.Effect]:
    """The effects of an event and of what follows from it at once."""
    effects = made.handle(event, now).effects
    for effect in list(effects):
        if isinstance(effect, ev.AskSearcher):
            effects += feed(
                made,
                searcher,
                ev.Proposed(effect.trial, searcher.propose(effect.trial), searcher.finished()),
                now,
            )
    return effects


def test_g1_a_report_that_is_sent_again_is_answered_and_not_counted() -> None:
    made, searcher = core(concurrent_max=1)
    feed(made, searcher, ev.Begun(1, "h", 1, 0.0))
    feed(made, searcher, ev.Granted(1))
    first = ev.Reported("t0", 1, 1, {"m": 1.0})
    assert ev.Answer("t0", 1, at_once=True) in feed(made, searcher, first)
    decided = made.handle(first, 1.0)
    assert (
        not decided.rows
        and decided.effects == [ev.Answer("t0", 1, at_once=True)]
        and made.ledger.trials["t0"].number == 1
    )


def test_g4_a_report_of_an_earlier_attempt_ends_who_made_it() -> None:
    made, searcher = core(concurrent_max=1, max_failures=1)
    feed(made, searcher, ev.Begun(1, "h", 1, 0.0))
    feed(made, searcher, ev.Granted(1))
    feed(made, searcher, ev.Exited("t0", 1, ev.Failure("ValueError", "bad")))
    feed(made, searcher, ev.Granted(2))
    assert made.ledger.trials["t0"].attempt == 2
    decided = made.handle(ev.Reported("t0", 1, 1, {"m": 1.0}), 1.0)
    (answer,) = decided.effects
    assert (
        isinstance(answer, ev.Answer) and answer.attempt == 1 and answer.stop and not decided.rows
    )


@pytest.mark.parametrize("counts", [True, False])
def test_a_lost_node_is_not_one_of_max_failures(counts: bool) -> None:
    made, searcher = core(concurrent_max=1, max_failures=0)
    feed(made, searcher, ev.Begun(1, "h", 1, 0.0))
    feed(made, searcher, ev.Granted(1))
    feed(made, searcher, ev.Exited("t0", 1, ev.Failure("NodeLost", "gone", counts=counts)))
    trial = made.ledger.trials["t0"]
    assert (trial.phase, trial.failures) == ((Phase.ENDED, 0) if counts else (Phase.WAITING, 0))
    assert trial.end is (End.FAILED if counts else None)


def test_trials_without_the_metric_end_the_sweep_once_all_are_alike() -> None:
    made, searcher = core(metric="accuracy", concurrent_max=1)
    feed(made, searcher, ev.Begun(1, "h", 1, 0.0))
    done: list[ev.Effect] = []
    for number in range(3):
        feed(made, searcher, ev.Granted(number + 1))
        feed(made, searcher, ev.Reported(f"t{number}", 1, 1, {"acuracy": 1.0, "loss": 2.0}))
        done = feed(made, searcher, ev.Exited(f"t{number}", 1))
    end = done[-1]
    assert isinstance(end, ev.Done) and end.resumable
    assert (
        "no 'accuracy'" in end.error
        and "it has 'acuracy', 'loss'; did you mean 'acuracy'?" in end.error
    )


def test_a_trial_that_does_not_answer_its_stop_is_given_up_after_the_grace() -> None:
    made, searcher = core(time_budget_s=10.0, concurrent_max=1)
    feed(made, searcher, ev.Begun(1, "h", 1, 0.0))
    feed(made, searcher, ev.Granted(1))
    assert made.deadline() == 10.0
    feed(made, searcher, ev.Tick(), 10.0)
    assert made.deadline() == 15.0 and made.ledger.trials["t0"].end is End.STOPPED
    effects = feed(made, searcher, ev.Tick(), 15.0)
    assert effects[0] == ev.GiveUpPlace(1) and isinstance(effects[-1], ev.Done)


def test_a_searcher_that_had_nothing_to_propose_before_a_trial_ended_is_asked_again() -> None:
    """The answer comes after the end of the only trial, which it did not know of: the sweep ended
    with an error."""
    made = SweepCore(Rules(concurrent_max=2), Moody(1), name_of=lambda number: f"t{number}")
    asked = [
        each.trial
        for each in made.handle(ev.Begun(1, "h", 1, 0.0), 0.0).effects
        if isinstance(each, ev.AskSearcher)
    ]
    assert asked == ["t0", "t1"]
    made.handle(ev.Proposed("t0", Proposal({}), False), 0.0)
    made.handle(ev.Granted(1), 0.0)
    made.handle(ev.Exited("t0", 1), 0.0)
    effects = made.handle(ev.Proposed("t1", None, False), 0.0).effects
    assert ev.AskSearcher("t1") in effects and not any(
        isinstance(each, ev.Done) for each in effects
    )
