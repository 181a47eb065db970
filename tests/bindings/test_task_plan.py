"""When processes for tasks are asked for and given back: the rules, without processes."""

from __future__ import annotations

import dataclasses
import random

from troupe._tasks.lease_policy import (
    ASKED_MAX,
    COMES_S,
    IDLE_S,
    LOOK_S,
    TURN_S,
    Lane,
    View,
    decide,
)


def view(
    waiting: int = 0,
    work: float | None = None,
    lanes: tuple[Lane, ...] = (),
    asked: int = 0,
    others_wait: bool = False,
) -> View:
    """A view; of tasks about which nothing is known unless `work` is given."""
    return View(waiting, float(waiting) if work is None else work, lanes, asked, others_wait)


def test_one_process_for_each_task_that_waits_and_eight_at_a_time() -> None:
    assert decide(view(1)).ask == 1
    assert decide(view(5)).ask == 5
    assert decide(view(5, asked=3)).ask == 2
    assert decide(view(1000)).ask == ASKED_MAX
    assert decide(view(1000, asked=ASKED_MAX)).ask == 0


def test_no_more_for_quick_tasks_than_would_find_work() -> None:
    busy = Lane(1, 30, True, 0.0001)
    assert decide(view(1000, work=0.005)).ask == 1
    assert decide(view(1000, work=0.005, lanes=(busy,))).ask == 0
    assert decide(view(1000, work=0.05, lanes=(busy,))).ask == 2
    stuck = Lane(1, 1, True, 3.0)
    assert decide(view(1000, work=0.005, lanes=(stuck,))).ask == 1


def test_the_idle_go_back_after_a_second_at_once_where_others_wait() -> None:
    idle, fresh, busy = Lane(1, 0, True, IDLE_S), Lane(2, 0, True, 0.1), Lane(3, 1, True, 9.0)
    orders = decide(view(lanes=(idle, fresh, busy)))
    assert (
        orders.give_back == (1,)
        and orders.look_again is not None
        and orders.look_again <= IDLE_S - 0.1
    )
    assert decide(view(lanes=(idle, fresh, busy), others_wait=True)).give_back == (1, 2)
    assert decide(view(3, lanes=(idle, fresh), others_wait=True)).give_back == ()


def test_the_idle_go_back_soon_where_others_of_the_cluster_wait_for_their_room() -> None:
    idle, fresh = Lane(1, 0, True, COMES_S, wanted=True), Lane(2, 0, True, COMES_S / 2, wanted=True)
    busy, other = Lane(3, 1, True, 9.0, wanted=True), Lane(4, 0, True, COMES_S)
    orders = decide(view(lanes=(idle, fresh, busy, other)))
    assert orders.give_back == (1,) and orders.look_again == COMES_S / 2 and orders.when_idle
    assert decide(view(lanes=(idle,))).give_back == (), "one of them is kept as ever"
    assert decide(
        view(lanes=(idle, dataclasses.replace(idle, lane=5, since=IDLE_S)))
    ).give_back == (5,)
    assert decide(view(lanes=(busy,))).when_idle
    assert not decide(view(lanes=(Lane(3, 1, True, 9.0),))).when_idle
    assert decide(view(2, lanes=(idle,))).give_back == ()


def test_the_closed_go_once_they_are_empty() -> None:
    lanes = (Lane(1, 0, False, 0.0), Lane(2, 4, False, 0.0))
    assert decide(view(lanes=lanes)).give_back == (1,)
    assert decide(view(7, lanes=lanes)).give_back == (1,)


def test_a_task_that_waits_lends_its_cpu_before_others_are_asked_for() -> None:
    orders = decide(View(3, 3.0, (), 0, False, may_borrow=2))
    assert orders.borrow == 2 and orders.ask == 0 and orders.look_again == COMES_S
    assert decide(View(1, 1.0, (), 0, False, may_borrow=2)).borrow == 1
    assert decide(View(0, 0.0, (), 0, False, may_borrow=2)).borrow == 0


def test_who_waits_elsewhere_gets_a_turn_after_five_seconds() -> None:
    lanes = (
        Lane(1, 1, True, 0.01, held=TURN_S),
        Lane(2, 1, True, 0.01, held=TURN_S + 1),
        Lane(3, 1, False, 9, held=99),
    )
    orders = decide(View(5, 5.0, lanes, 4, False, strangers_wait=True))
    assert orders.end == 2 and orders.withdraw and orders.ask == 0
    assert decide(View(5, 5.0, lanes, 0, False)).end is None
    assert decide(View(0, 0.0, lanes, 0, False, strangers_wait=True)).end is None
    assert (
        decide(View(5, 5.0, (Lane(1, 1, True, 0.0, held=1.0),), 0, False, strangers_wait=True)).end
        is None
    )


def test_what_was_asked_for_in_vain_is_withdrawn() -> None:
    assert decide(view(asked=4)).withdraw
    assert not decide(view(1, asked=4)).withdraw


def test_what_starts_comes_although_nothing_waits_any_more_and_counts_among_what_is_asked_for() -> (
    None
):
    assert not decide(View(0, 0.0, (), 3, False, starting=3)).withdraw
    assert decide(View(0, 0.0, (), 4, False, starting=3)).withdraw
    assert decide(View(100, 100.0, (), 4, False, starting=4)).ask == ASKED_MAX - 4


def test_when_it_is_looked_again() -> None:
    assert decide(view()).look_again is None
    assert decide(view(2)).look_again == COMES_S
    assert decide(view(100)).look_again == LOOK_S  # all that may be asked for is
    assert decide(view(lanes=(Lane(1, 2, True, 0.0),))).look_again == LOOK_S
    assert decide(view(100)).when_idle  # the requests are in vain then


def test_nothing_that_waits_is_ever_without_a_process_to_come() -> None:
    for seed in range(2000):
        chance = random.Random(seed)
        lanes = tuple(
            Lane(number, chance.randrange(3), chance.random() < 0.8, chance.random() * 3)
            for number in range(chance.randrange(4))
        )
        seen = view(
            chance.randrange(4), chance.random(), lanes, chance.randrange(3), chance.random() < 0.5
        )
        orders = decide(seen)
        assert seen.asked + orders.ask <= ASKED_MAX
        moving = any(lane.open and lane.since < COMES_S for lane in lanes)
        if seen.waiting:
            assert seen.asked * (not orders.withdraw) + orders.ask > 0 or moving
            assert orders.look_again is not None
        for lane in lanes:
            assert lane.tasks == 0 or lane.lane not in orders.give_back
