"""Tensors that stay in an actor, when their owner or who takes them ends.

Method: processes are killed; what others get, and what is still held, is asked of those that live.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from conftest import Home, eventually, stand_still

import troupe
from troupe import exceptions
from troupe._actors.tensors import fetch

torch = pytest.importorskip("torch")
from makers import LIMIT_S, Maker, let_go

LARGE = 1_000_000


def test_the_tensors_of_an_actor_that_was_killed_are_lost(two: Any) -> None:
    one, other = two
    ref, unread = one.make.remote(LARGE), one.make.remote(3)
    assert troupe.get(other.total.remote(ref), timeout=LIMIT_S) == LARGE
    got = troupe.get(ref, timeout=LIMIT_S)
    troupe.wait([unread], timeout=LIMIT_S)
    pid = troupe.get(one.pid.remote(), timeout=LIMIT_S)
    os.kill(pid, signal.SIGKILL)
    text = rf"make\(\) of actor Maker\(.*\) on .*, pid {pid} returned \(float32 of shape .*\) are lost: .*SIGKILL"
    for lost in (ref, unread):
        with pytest.raises(exceptions.OwnerDiedError, match=text):
            troupe.get(lost, timeout=LIMIT_S)
        with pytest.raises(exceptions.OwnerDiedError, match=text):
            troupe.get(other.total.remote(lost), timeout=LIMIT_S)
    assert float(got.sum()) == LARGE  # tensors taken before stay good
    assert troupe.get(other.pid.remote(), timeout=LIMIT_S) != pid


def test_an_actor_that_was_started_again_has_lost_them(two: Any) -> None:
    one = troupe.remote(max_restarts=1)(Maker).remote()
    ref = one.make.remote(5)
    troupe.wait([ref], timeout=LIMIT_S)
    os.kill(troupe.get(one.pid.remote(), timeout=LIMIT_S), signal.SIGKILL)

    def answers() -> bool:
        try:
            return troupe.get(one.total.remote(one.make.remote(4)), timeout=LIMIT_S) == 4
        except exceptions.ActorUnavailableError:
            return False

    eventually(answers, what="the actor's return")
    with pytest.raises(exceptions.OwnerDiedError, match="started again"):
        troupe.get(ref, timeout=LIMIT_S)
    with pytest.raises(exceptions.OwnerDiedError, match="started again"):
        troupe.get(one.total.remote(ref), timeout=LIMIT_S)


def test_who_takes_them_ends_in_the_middle(two: Any) -> None:
    one, other = two
    ref = one.make.remote(LARGE)
    troupe.wait([ref], timeout=LIMIT_S)
    owner = troupe.get(one.pid.remote(), timeout=LIMIT_S)
    taker = troupe.get(other.pid.remote(), timeout=LIMIT_S)
    stand_still(owner)
    taking = other.total.remote(ref)  # waits for the owner, which does not answer
    os.kill(taker, signal.SIGKILL)
    with pytest.raises(exceptions.ActorError):
        troupe.get(taking, timeout=LIMIT_S)
    os.kill(owner, signal.SIGCONT)
    assert float(troupe.get(ref, timeout=LIMIT_S).sum()) == LARGE
    del ref, taking
    let_go(one)
    eventually(
        lambda: troupe.get(one.figures.remote(), timeout=LIMIT_S)["pool_in_use"] == 0,
        what="the end of copies",
    )


def test_an_actor_that_nobody_has_a_handle_of_ends_when_its_tensors_are_not_wanted_any_more(
    idle: Home,
) -> None:
    maker = troupe.remote(Maker).remote()
    pid = troupe.get(maker.pid.remote(), timeout=LIMIT_S)
    ref = maker.make.remote(LARGE)
    del maker
    other = troupe.remote(Maker).remote()
    assert troupe.get(other.total.remote(ref), timeout=LIMIT_S) == LARGE
    assert float(troupe.get(ref, timeout=LIMIT_S).sum()) == LARGE and pid in idle.processes()
    del ref
    eventually(lambda: pid not in idle.processes(), what="the actor's end")


def test_an_owner_that_does_not_answer_is_named(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = two
    ref = one.make.remote(5)
    troupe.wait([ref], timeout=LIMIT_S)
    pid = troupe.get(one.pid.remote(), timeout=LIMIT_S)
    monkeypatch.setattr(fetch, "LEAST_S", 0.2)
    stand_still(pid)
    try:
        with pytest.raises(
            exceptions.ObjectFetchTimedOutError,
            match=rf"pid {pid} returned .* did not come within 0 s, counted from",
        ):
            troupe.get(ref, timeout=LIMIT_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    monkeypatch.undo()
    assert float(troupe.get(ref, timeout=LIMIT_S).sum()) == 5


def test_no_more_is_kept_than_may_be(idle: Home) -> None:
    maker = troupe.remote(runtime_env={"env_vars": {"TROUPE_OBJECT_STORE_MEMORY": "10000000"}})(
        Maker
    ).remote()
    ref = maker.make.remote(2_000_000)
    troupe.wait([ref], timeout=LIMIT_S)
    text = r"make\(\) returned tensors of 4,000,000 bytes .* which keeps 1 values with 8,000,000 bytes already; at most 65,536 and 10,000,000"
    with pytest.raises(exceptions.TooLargeError, match=text):
        troupe.get(maker.make.remote(1_000_000), timeout=LIMIT_S)
    del ref
    let_go(maker)
    ref = maker.make.remote(1_000_000)
    troupe.wait([ref], timeout=LIMIT_S)
    assert troupe.get(maker.kept.remote(), timeout=LIMIT_S) == (1, 4_000_000)
