"""The name of an actor whose end is decided is free: it is found no more, and the next one may have
it at once.

Method: actors are killed or given up while their processes still have something to do, and made
anew by the same name, also by several processes at once. AN-1 to AN-3: head/core/placed/actors.h.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest
from conftest import Home, eventually
from handles import Watched

import troupe
from troupe import exceptions
from troupe._cluster import session as session_of

WITHIN_S = 60.0


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def add(self) -> int:
        self.n += 1
        return self.n

    def pid(self) -> int:
        return os.getpid()


def made(**options: Any) -> Any:
    return troupe.remote(num_cpus=0)(Counter).options(**options).remote()


@pytest.mark.parametrize("lifetime", [None, "detached"])
def test_AN1_killed_and_made_anew_over_and_over(idle: Home, lifetime: str | None) -> None:
    for _ in range(8):
        actor = made(name="again", lifetime=lifetime)
        assert troupe.get(actor.add.remote(), timeout=WITHIN_S) == 1
        troupe.kill(troupe.get_actor("again"))
        with pytest.raises(ValueError, match="no actor called 'again'"):
            troupe.get_actor("again")
        assert troupe.util.list_named_actors() == []


def test_AN1_killed_before_its_process_was_there(idle: Home) -> None:
    for _ in range(20):
        troupe.kill(made(name="early", lifetime="detached"))
    last = made(name="early")
    assert troupe.get(last.add.remote(), timeout=WITHIN_S) == 1


def test_AN1_an_actor_that_may_start_again_keeps_its_name_until_it_may_not(idle: Home) -> None:
    actor = made(name="twice", max_restarts=1, max_task_retries=-1)
    first = troupe.get(actor.pid.remote(), timeout=WITHIN_S)
    troupe.kill(actor, no_restart=False)
    # Until the word to end it is there, the first life answers.
    eventually(
        lambda: troupe.get(troupe.get_actor("twice").pid.remote(), timeout=WITHIN_S) != first,
        what="its next life",
    )
    with pytest.raises(exceptions.ActorAlreadyExistsError):
        made(name="twice")
    troupe.kill(actor, no_restart=False)
    with pytest.raises(ValueError, match="no actor called 'twice'"):
        troupe.get_actor("twice")
    again = made(name="twice")
    assert troupe.get(again.add.remote(), timeout=WITHIN_S) == 1


def test_AN2_the_end_of_the_one_before_leaves_the_name_to_the_next(idle: Home) -> None:
    first = made(name="next")
    watched = Watched(first)
    troupe.kill(first)
    second = made(name="next")
    watched.ends()
    found = troupe.get_actor("next")
    assert (
        troupe.get(found.pid.remote(), timeout=WITHIN_S)
        == troupe.get(second.pid.remote(), timeout=WITHIN_S)
        != watched.pid
    )


class User:
    """Asks for the shared counter over and over, as the process that lets go of it, or keeps the
    latest."""

    def uses(self, name: str, rounds: int, drops: bool) -> list[str]:
        failures = []
        handle = None
        for _ in range(rounds):
            if drops:
                handle = None
            handle = (
                troupe.remote(num_cpus=0)(Counter).options(name=name, get_if_exists=True).remote()
            )
            try:
                troupe.get(handle.add.remote(), timeout=WITHIN_S)
            except exceptions.TroupeError as error:
                failures.append(str(error))
        return failures


@pytest.mark.parametrize("drops", [True, False])
def test_AN3_get_if_exists_of_several_processes_never_gives_one_that_ends(
    idle: Home, drops: bool
) -> None:
    users = [troupe.remote(num_cpus=0)(User).remote() for _ in range(3)]
    assert (
        troupe.get(
            [user.uses.remote(f"shared {drops}", 60, drops) for user in users], timeout=4 * WITHIN_S
        )
        == [[]] * 3
    )


def test_AN3_what_another_process_found_lives_on_while_its_maker_does(idle: Home) -> None:
    actor = made(name="found")
    pid = troupe.get(actor.pid.remote(), timeout=WITHIN_S)
    user = troupe.remote(num_cpus=0)(User).remote()
    assert troupe.get(user.uses.remote("found", 1, False), timeout=WITHIN_S) == []
    del actor
    found = made(name="found", get_if_exists=True)
    assert troupe.get([found.pid.remote(), found.add.remote()], timeout=WITHIN_S) == [pid, 2]
    troupe.kill(found)


class Keeper:
    """Has an actor of that name, which ends with it."""

    def __init__(self, name: str) -> None:
        self.kept = made(name=name)

    def pids(self) -> tuple[int, int]:
        return os.getpid(), troupe.get(self.kept.pid.remote())


def test_the_end_of_what_get_if_exists_found_is_heard_although_it_came_before_there_was_a_handle(
    idle: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = troupe.remote(num_cpus=0)(Keeper).remote("soon over")
    keeper_pid, _ = troupe.get(keeper.pids.remote(), timeout=WITHIN_S)
    session = session_of.current()
    told, request, post = threading.Event(), session.request, session.board.post
    found: list[str] = []

    def posted(noun: str, identity: str, info: dict, attachment: bytes = b"") -> None:
        post(noun, identity, info, attachment)
        if [identity] == found and info["state"] == "dead":
            told.set()

    def requested(kind: str, *args: Any) -> Any:
        answer = request(kind, *args)
        if kind == "CreateActor" and not found:
            found.append(answer[1]["info"]["actor"])
            os.kill(keeper_pid, signal.SIGKILL)
            assert told.wait(WITHIN_S), "the end of its maker is the end of it"
        return answer

    monkeypatch.setattr(session.board, "post", posted)
    monkeypatch.setattr(session, "request", requested)
    handle = made(name="soon over", get_if_exists=True)
    with pytest.raises(exceptions.ActorDiedError, match="ended"):
        troupe.get(handle.add.remote(), timeout=WITHIN_S)
    assert (
        troupe.get(made(name="soon over", get_if_exists=True).add.remote(), timeout=WITHIN_S) == 1
    )
