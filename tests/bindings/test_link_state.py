"""The rules of a link to an actor, by the numbers of `_actors/link_state.py`; and random lives of
an actor, reported in order and out of it."""

from __future__ import annotations

import random

import pytest

from troupe._actors.link_state import (
    AIM,
    BRING,
    END,
    FREE,
    LOSE_SIGHT,
    REFUSE,
    RENEW,
    RETIRE,
    LinkState,
)


def told(
    link: LinkState,
    state: str,
    incarnation: int = 0,
    restarts: int = 0,
    process: str = "",
    gives: bool = False,
    restartable: bool = True,
) -> tuple[str, ...]:
    """Word of an actor that may run again, unless said otherwise."""
    return link.told(
        state,
        incarnation=incarnation,
        restarts=restarts,
        process=process,
        gives=gives,
        restartable=restartable,
    )


def alive(incarnation: int = 1, restarts: int = 0) -> LinkState:
    link = LinkState()
    assert told(link, "alive", incarnation, restarts) == (AIM,)
    return link


def test_ls1_overtaken_word_changes_nothing() -> None:
    link = alive(3, 2)
    assert told(link, "alive", 3, 2) == told(link, "alive", 2, 1) == ()
    assert told(link, "starting", 3, 2) == told(link, "pending") == ()
    assert link.alive and (link.incarnation, link.restarts) == (3, 2)


def test_ls2_a_life_that_is_over_ends_and_the_next_gets_calls_when_it_is_alive() -> None:
    link = alive(1)
    assert told(link, "starting", 2, 1) == (REFUSE, RETIRE)
    assert not link.alive
    assert told(link, "starting", 2, 1) == (REFUSE,)
    assert told(link, "alive", 2, 1) == (AIM,)
    assert told(link, "alive", 3, 2) == (RETIRE, AIM)  # nothing was heard of its start


def test_ls2_what_is_suspected_gets_calls_again_once_the_head_says_that_it_is_alive() -> None:
    link = alive(1)
    link.suspect()
    assert told(link, "alive", 1) == (AIM,)
    link.suspect()
    assert told(link, "starting", 2, 1) == (REFUSE,)  # the calls have ended by themselves
    assert told(link, "alive", 2, 1) == (AIM,)


def test_ls3_the_dead_are_dead() -> None:
    link = alive(1)
    assert told(link, "dead", 1) == (FREE, END)
    assert link.failed and not link.alive
    for state in ("pending", "starting", "alive", "unavailable"):
        assert told(link, state, 2, 1, "p", gives=True) == ()
    killed = alive(1)
    killed.fail()  # here, before the head had heard of it
    assert told(killed, "starting", 2, 1) == told(killed, "unavailable") == ()
    assert told(killed, "dead", 1) == (FREE, END)


def test_ls4_out_of_reach_passes() -> None:
    link = alive(1)
    assert told(link, "unavailable") == (LOSE_SIGHT,)
    assert link.failed and link.out_of_reach and told(link, "unavailable") == ()
    assert told(link, "alive", 1) == (RENEW, AIM)
    assert link.alive and not link.failed and not link.out_of_reach
    told(link, "unavailable")
    assert told(link, "starting", 2, 1) == (RENEW, REFUSE)
    assert told(link, "alive", 2, 1) == (AIM,)
    told(link, "unavailable")
    assert told(link, "dead", 2) == (FREE, END)
    assert link.failed and not link.out_of_reach


def test_ls5_calls_are_refused_while_it_is_started_again_and_not_at_its_first_start() -> None:
    link = LinkState()
    assert told(link, "pending") == told(link, "starting", 1) == ()
    assert told(link, "alive", 1) == (AIM,)
    assert told(link, "pending", 2, 1) == (REFUSE, RETIRE)
    fresh = LinkState()
    assert told(fresh, "starting", 4, 3) == (REFUSE,)  # somebody else's handle came here in between


def test_ls6_a_process_is_given_what_it_waits_for_once() -> None:
    link = LinkState()
    assert told(link, "starting", 1, 0, "", gives=True) == ()
    assert told(link, "starting", 1, 0, "p1", gives=True) == (BRING,)
    assert told(link, "starting", 1, 0, "p1", gives=True) == ()
    assert told(link, "starting", 1, 0, "p2", gives=True) == (BRING,)  # the worker was started anew
    assert told(link, "starting", 2, 1, "p3", gives=True) == (BRING, REFUSE)
    assert told(link, "starting", 1, 0, "p1", gives=True) == ()
    assert told(link, "starting", 3, 2, "p4") == (REFUSE,)  # nothing is to be given


@pytest.mark.parametrize("restartable", [True, False])
def test_ls6_what_it_is_given_is_kept_while_it_may_be_made_again(restartable: bool) -> None:
    link = LinkState()
    assert FREE not in told(link, "starting", 1, restartable=restartable)
    assert (FREE in told(link, "alive", 1, restartable=restartable)) == (not restartable)
    assert FREE in told(link, "dead", 1, restartable=restartable)


def test_any_life_told_in_any_order_ends_as_it_did() -> None:
    for seed in range(2000):
        rng = random.Random(seed)
        words = [("pending", 0, 0)]
        lives = rng.randrange(1, 5)
        for life in range(1, lives + 1):
            words += [("starting", life, life - 1), ("alive", life, life - 1)]
            if rng.random() < 0.3:
                words += [("unavailable", life, life - 1), ("alive", life, life - 1)]
        if ends := rng.random() < 0.5:
            words.append(("dead", lives, lives - 1))
        heard = [word for word in words[:-1] if rng.random() < 0.8]
        for _ in range(rng.randrange(4)):  # a word that others overtake, once more
            if heard:
                at = rng.randrange(len(heard))
                heard.insert(rng.randrange(at, len(heard)) + 1, heard[at])
        link, aimed = LinkState(), False
        for state, incarnation, restarts in [*heard, words[-1]]:
            before = link.incarnation
            for order in told(link, state, incarnation, restarts):
                assert order != RETIRE or aimed, (seed, "LS-2: what is retired was aimed at")
                assert order != AIM or not aimed, (seed, "LS-2: once")
                aimed = order == AIM if order in (AIM, RETIRE, LOSE_SIGHT, END) else aimed
            assert aimed == link.alive and not (link.alive and link.failed), seed
            assert link.incarnation >= before or link.alive, seed
        assert link.failed == ends if words[-1][0] in ("dead", "alive") else True, seed
        if not ends:
            assert link.alive and link.incarnation == lives, (seed, heard)
