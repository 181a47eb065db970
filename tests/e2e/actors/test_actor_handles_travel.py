"""Handles that are given on: what has one keeps its actor, and what cannot be counted is wanted;
real processes.

Method: as in test_actor_handles.py.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
from conftest import Home, eventually
from handles import Watched, all_looked_at
from test_actor_handles import Holder, made

import troupe
from troupe._base.bridge import native

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def given(name: str = "it") -> tuple[Any, Any, Watched]:
    """An actor that has another's handle, that handle, and the other's process."""
    holder, actor = made(), made()
    troupe.get(holder.keep.remote(name, actor), timeout=30)
    return holder, actor, Watched(actor)


def still_there(watched: Watched, holder: Any, name: str = "it") -> None:
    all_looked_at()
    assert troupe.get(holder.pid_of.remote(name), timeout=30) == watched.pid


def test_who_was_given_one_keeps_it(idle: Home) -> None:
    holder, actor, watched = given()
    del actor
    still_there(watched, holder)
    troupe.get(holder.drop.remote("it"), timeout=20)
    watched.ends()


def test_a_holder_that_is_killed_has_none_any_more(idle: Home) -> None:
    holder, actor, watched = given()
    del actor
    still_there(watched, holder)
    os.kill(Watched(holder).pid, signal.SIGKILL)
    watched.ends()


def test_one_that_goes_through_several_hands(idle: Home) -> None:
    first, actor, watched = given()
    second = made()
    del actor
    troupe.get(
        second.keep.remote("it", [troupe.get(first.give.remote("it"), timeout=30)]), timeout=30
    )
    troupe.get(first.drop.remote("it"), timeout=20)
    all_looked_at()
    back = troupe.get(second.give.remote("it"), timeout=30)[0]
    troupe.get(second.drop.remote("it"), timeout=20)
    all_looked_at()
    assert troupe.get(back.pid.remote(), timeout=20) == watched.pid
    del back
    watched.ends()


def test_a_value_that_holds_one_keeps_it(idle: Home) -> None:
    actor = made()
    watched = Watched(actor)
    box = troupe.put({"handle": actor, "padding": bytes(1 << 20)})
    small = troupe.put([actor])
    del actor
    all_looked_at()
    assert troupe.get(troupe.get(box)["handle"].pid.remote(), timeout=20) == watched.pid
    del box
    all_looked_at()
    assert troupe.get(troupe.get(small)[0].pid.remote(), timeout=20) == watched.pid
    del small
    watched.ends()


def test_a_result_that_nobody_has_read_keeps_it(idle: Home) -> None:
    maker, actor, watched = given()
    del actor
    ref = maker.give.remote("it")
    troupe.get(maker.drop.remote("it"), timeout=20)
    all_looked_at()
    assert troupe.get(troupe.get(ref, timeout=20).pid.remote(), timeout=20) == watched.pid
    del ref
    watched.ends()


def test_the_call_that_brings_one_keeps_it(idle: Home, tmp_path: Path) -> None:
    holder, actor = made(), made()
    watched = Watched(actor)
    gate = tmp_path / "gate"
    holder.wait_for.remote(str(gate))
    holder.keep.remote("it", {"deep": [actor]})
    called = holder.__ray_call__.remote(
        lambda self: troupe.get(self.kept["it"]["deep"][0].pid.remote())
    )
    del actor
    all_looked_at()
    gate.touch()
    assert troupe.get(called, timeout=30) == watched.pid
    troupe.get(holder.drop.remote("it"), timeout=20)
    watched.ends()


def test_tasks_take_them_as_arguments_and_captured(idle: Home, tmp_path: Path) -> None:
    actor = made()
    watched = Watched(actor)
    gate = tmp_path / "gate"

    @troupe.remote(num_cpus=1)
    def ask(given: Any) -> int:
        pause = threading.Event()
        while not gate.exists():
            pause.wait(0.01)
        return troupe.get(given[0].pid.remote(), timeout=30)

    @troupe.remote(num_cpus=1)
    def ask_captured() -> int:
        return troupe.get(actor.pid.remote(), timeout=30)

    captured, taken = ask_captured.remote(), ask.remote([actor])
    assert troupe.get(captured, timeout=60) == watched.pid
    del actor, ask_captured
    all_looked_at()
    gate.touch()
    assert troupe.get(taken, timeout=60) == watched.pid


def test_a_task_that_makes_one_and_gives_it(idle: Home) -> None:
    @troupe.remote(num_cpus=1)
    def make() -> Any:
        return made()

    actor = troupe.get(make.remote(), timeout=60)
    watched = Watched(actor)
    assert troupe.get(actor.note.remote(1), timeout=20) == 1
    del actor
    watched.ends()


def test_one_that_an_actor_made_and_gave(idle: Home) -> None:
    maker = made()
    child = troupe.get(maker.make.remote(), timeout=30)
    watched = Watched(child)
    troupe.get(maker.note.remote(1), timeout=20)
    del child
    watched.ends()
    assert troupe.get(maker.note.remote(2), timeout=20) == 2


def test_a_constructor_that_is_given_one(idle: Home) -> None:
    actor = made()
    watched = Watched(actor)
    holder = made(Holder, actor, max_restarts=1, max_task_retries=-1)
    del actor
    still_there(watched, holder, 0)
    os.kill(Watched(holder).pid, signal.SIGKILL)
    still_there(
        watched, holder, 0
    )  # the maker's arguments are kept for as long as it may be restarted
    del holder
    watched.ends()


def test_one_that_was_pickled_by_hand_is_wanted(idle: Home) -> None:
    actor = made()
    watched = Watched(actor)
    text = pickle.dumps(actor)
    del actor
    all_looked_at()
    again = pickle.loads(text)
    assert troupe.get(again.pid.remote(), timeout=20) == watched.pid
    troupe.kill(again)
    watched.ends()


def test_one_that_a_borrower_pickled_by_hand_is_wanted(idle: Home) -> None:
    before = native._object_figures()[
        "lives"
    ]  # objects of tests before this one, whose cluster is gone
    holder, actor, watched = given()
    text = troupe.get(holder.pickled.remote("it"), timeout=20)
    del actor
    all_looked_at()
    troupe.get(holder.drop.remote("it"), timeout=20)
    eventually(
        lambda: native._object_figures()["lives"] <= before,
        what="the end of all handles that are counted",
    )
    all_looked_at()
    again = pickle.loads(text)
    assert troupe.get(again.pid.remote(), timeout=20) == watched.pid
    troupe.kill(again)
    watched.ends()
