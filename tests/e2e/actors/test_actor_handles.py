"""Actors end with their last handle, wherever that is; real processes.

Method: the kernel tells when an actor's process has ended (a pidfd). That one goes on is seen by a
call that it answers after all that was let go of here was looked at.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, eventually
from handles import Watched, all_looked_at

import troupe
from troupe import exceptions
from troupe._actors.link import LINKS
from troupe._base.bridge import native
from troupe._cluster import session
from troupe.util.queue import Queue


class Holder:
    """Keeps what it is given, calls what it keeps, makes others of its kind."""

    def __init__(self, *kept: Any) -> None:
        self.kept = dict(enumerate(kept))
        self.notes: list[Any] = []

    def pid(self) -> int:
        return os.getpid()

    def keep(self, name: Any, value: Any) -> None:
        self.kept[name] = value

    def drop(self, name: Any) -> None:
        del self.kept[name]

    def give(self, name: Any) -> Any:
        return self.kept[name]

    def pid_of(self, name: Any) -> int:
        return troupe.get(self.kept[name].pid.remote(), timeout=30)

    def make(self) -> Any:
        return troupe.remote(num_cpus=0)(Holder).remote()

    def myself(self) -> Any:
        return troupe.get_runtime_context().current_actor

    def note(self, value: Any) -> int:
        self.notes.append(value)
        return len(self.notes)

    def wait_for(self, path: str, then: str = "") -> str:
        pause = threading.Event()
        while not os.path.exists(path):
            pause.wait(0.01)
        if then:
            Path(then).touch()
        return "there"

    def items(self, count: int) -> Any:
        yield from range(count)

    def pickled(self, name: Any) -> bytes:
        return pickle.dumps(self.kept[name])

    def die_once(self, path: str) -> str:
        if not os.path.exists(path):
            Path(path).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "again"


class AsyncHolder:
    async def pid(self) -> int:
        return os.getpid()

    async def wait_for(self, path: str) -> str:
        while not os.path.exists(path):
            await asyncio.sleep(0.01)  # lint-ok: the method under test waits
        return "there"


def made(cls: type = Holder, *args: Any, **options: Any) -> Any:
    return troupe.remote(num_cpus=0)(cls).options(**options).remote(*args)


def test_it_ends_with_its_handle(idle: Home) -> None:
    actor = troupe.remote(num_cpus=1)(Holder).remote()
    watched = Watched(actor)
    same = copy.copy(actor), copy.deepcopy({"deep": actor})
    del actor
    all_looked_at()
    assert troupe.get(same[0].pid.remote(), timeout=20) == watched.pid
    link = same[0]._link
    del same
    watched.ends()
    eventually(
        lambda: link.dead and link.actor not in (LINKS.known(session.current()) or {}),
        what="the news of it",
    )


def test_a_handle_in_a_circle_is_let_go_of_by_the_collector(idle: Home) -> None:
    actor = made()
    watched = Watched(actor)
    circle: list[Any] = [actor]
    circle.append(circle)
    del actor, circle
    gc.collect()
    watched.ends()


def test_actors_that_hold_each_other_end_when_one_of_them_is_killed(idle: Home) -> None:
    first, second = made(name="one of two"), made()
    troupe.get([first.keep.remote("other", second), second.keep.remote("other", first)], timeout=20)
    both = Watched(first), Watched(second)
    del first, second
    all_looked_at()
    found = troupe.get_actor("one of two")  # not counted
    assert troupe.get(found.pid_of.remote("other"), timeout=20) == both[1].pid
    assert both[0].lives() and both[1].lives()
    troupe.kill(found)
    for each in both:
        each.ends()


@pytest.mark.parametrize("options", [{}, {"max_concurrency": 3}])
def test_calls_made_before_are_run(idle: Home, tmp_path: Path, options: dict) -> None:
    actor = made(**options)
    watched = Watched(actor)
    gate, after = tmp_path / "gate", tmp_path / "after"
    refs = [actor.wait_for.remote(str(gate)), *(actor.note.remote(i) for i in range(100))]
    actor.wait_for.remote(str(gate), str(after))  # the ref is not kept
    del actor
    all_looked_at()
    assert watched.lives()
    gate.touch()
    assert troupe.get(refs[0], timeout=20) == "there"
    assert sorted(troupe.get(refs[1:], timeout=20)) == list(range(1, 101))
    watched.ends()
    assert after.exists()


def test_coroutines_are_run_to_their_ends(idle: Home, tmp_path: Path) -> None:
    actor = made(AsyncHolder)
    watched = Watched(actor)
    ref = actor.wait_for.remote(str(tmp_path / "gate"))
    del actor
    all_looked_at()
    assert watched.lives()
    (tmp_path / "gate").touch()
    assert troupe.get(ref, timeout=20) == "there"
    watched.ends()


def test_a_call_of_a_handle_that_nobody_keeps(idle: Home) -> None:
    assert [troupe.get(made().note.remote(i), timeout=30) for i in range(3)] == [1, 1, 1]
    pid = troupe.get(made().pid.remote(), timeout=30)
    eventually(lambda: pid not in idle.processes(), what="its end")


def test_a_large_result_outlives_it(idle: Home) -> None:
    for _ in range(5):
        value = troupe.get(made().__ray_call__.remote(lambda self: bytes(3 << 20)), timeout=30)
        assert len(value) == 3 << 20


def test_a_stream_is_read_to_its_end(idle: Home) -> None:
    actor = made()
    watched = Watched(actor)
    stream = actor.items.remote(1000)
    del actor
    assert [troupe.get(ref, timeout=20) for ref in stream] == list(range(1000))
    watched.ends()


def test_calls_whose_arguments_are_to_come_hold_it(idle: Home, tmp_path: Path) -> None:
    other, actor = made(), made()
    watched = Watched(actor)
    coming = other.wait_for.remote(str(tmp_path / "gate"))
    failing = other.__ray_call__.remote(lambda self: 1 / 0)
    refs = actor.note.remote(coming), actor.note.remote(failing)
    del actor
    all_looked_at()
    assert watched.lives()
    (tmp_path / "gate").touch()
    assert troupe.get(refs[0], timeout=20) == 1
    with pytest.raises(ZeroDivisionError):
        troupe.get(refs[1], timeout=20)
    watched.ends()


def test_a_method_that_is_kept_is_a_handle(idle: Home) -> None:
    actor = made()
    watched = Watched(actor)
    note, bound = actor.note, actor.pid.options(num_returns=1).remote
    assert troupe.get(note.remote(1), timeout=20) == 1
    later = note.remote  # the call path itself
    del actor, note
    all_looked_at()
    assert troupe.get(bound(), timeout=20) == watched.pid
    del bound
    all_looked_at()
    assert troupe.get(later(2), timeout=20) == 2
    del later
    watched.ends()


def test_one_that_is_not_started_yet_is_started_and_ends(idle: Home, tmp_path: Path) -> None:
    class Late:
        def __init__(self, gate: str, path: str) -> None:
            pause = threading.Event()
            while not os.path.exists(gate):
                pause.wait(0.01)
            Path(path).write_text(str(os.getpid()))

    gate, path = tmp_path / "gate", tmp_path / "pid"
    made(Late, str(gate), str(path))
    all_looked_at()
    gate.touch()
    eventually(path.exists, what="its constructor")
    eventually(lambda: int(path.read_text() or -1) not in idle.processes(), what="its end")


def test_one_whose_arguments_are_to_come_is_started_and_ends(idle: Home, tmp_path: Path) -> None:
    other = made()
    gate, after = tmp_path / "gate", tmp_path / "after"

    class Late:
        def __init__(self, given: str) -> None:
            after.write_text(given)

    made(Late, other.wait_for.remote(str(gate)))
    all_looked_at()
    assert not after.exists()
    gate.touch()
    eventually(lambda: after.exists() and after.read_text() == "there", what="its constructor")


def test_a_constructor_that_raises_is_still_the_cause(idle: Home) -> None:
    class Broken:
        def __init__(self) -> None:
            raise KeyError("nothing here")

        def f(self) -> None: ...

    with pytest.raises(KeyError, match="nothing here"):
        troupe.get(made(Broken).f.remote(), timeout=30)


def test_it_leaves_as_one_that_ends_itself(idle: Home, tmp_path: Path) -> None:
    class Tidy:
        def __init__(self, folder: Path) -> None:
            import atexit

            self.folder = folder
            atexit.register((folder / "atexit").touch)

        def __ray_shutdown__(self) -> None:
            (self.folder / "hook").touch()

    actor = made(Tidy, tmp_path)
    watched = Watched(actor)
    del actor
    watched.ends()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["atexit", "hook"]


def test_it_is_not_started_again(idle: Home) -> None:
    actor = made(max_restarts=-1, max_task_retries=-1)
    first = Watched(actor)
    os.kill(first.pid, signal.SIGKILL)
    first.ends()
    second = Watched(actor)
    assert second.pid != first.pid
    link = actor._link
    del actor
    second.ends()
    eventually(lambda: link.dead, what="the news of its death")


def test_calls_that_are_made_again_hold_it(idle: Home, tmp_path: Path) -> None:
    actor = made(max_restarts=-1, max_task_retries=-1)
    watched = Watched(actor)
    ref, link = actor.die_once.remote(str(tmp_path / "died")), actor._link
    del actor
    assert troupe.get(ref, timeout=60) == "again"
    watched.ends()
    eventually(lambda: link.dead, what="the end of the process after it")


def test_a_named_one_ends_too_and_its_name_is_free(idle: Home) -> None:
    actor = made(name="counter")
    watched = Watched(actor)
    weak = troupe.get_actor("counter")
    assert troupe.get(weak.note.remote(1), timeout=20) == 1
    del actor
    watched.ends()
    with pytest.raises(exceptions.ActorDiedError, match="all references to the actor were removed"):
        troupe.get(weak.note.remote(2), timeout=20)
    with pytest.raises(ValueError, match="no actor called 'counter'"):
        troupe.get_actor("counter")
    again = made(name="counter")
    assert troupe.get(again.note.remote(1), timeout=20) == 1


def test_what_get_if_exists_finds_in_its_maker_s_process_keeps_it(idle: Home) -> None:
    first = made(name="one", get_if_exists=True)
    watched = Watched(first)
    second = made(name="one", get_if_exists=True)
    del first
    all_looked_at()
    assert troupe.get(second.pid.remote(), timeout=20) == watched.pid
    del second
    watched.ends()


@pytest.mark.parametrize("drops", [False, True])
def test_get_if_exists_over_and_over_never_gives_one_that_ends(idle: Home, drops: bool) -> None:
    """The handle before is let go of when the next one is there, or before it is asked for."""
    actor = None
    for number in range(60):
        if drops:
            del actor
        actor = made(name="again", get_if_exists=True)
        assert troupe.get(actor.note.remote(number), timeout=60)
    watched = Watched(actor)
    del actor
    watched.ends()


def test_a_detached_one_lives_on(idle: Home) -> None:
    actor = made(name="detached", lifetime="detached")
    watched = Watched(actor)
    del actor
    all_looked_at()
    again = troupe.get_actor("detached")
    assert troupe.get(again.pid.remote(), timeout=20) == watched.pid
    troupe.kill(again)
    watched.ends()


def test_the_handle_that_an_actor_has_of_itself_does_not_keep_it(idle: Home) -> None:
    actor = made()
    watched = Watched(actor)
    weak = troupe.get(actor.myself.remote(), timeout=20)
    assert weak == actor
    troupe.get(actor.keep.remote("self", weak), timeout=20)
    del actor
    watched.ends()
    with pytest.raises(exceptions.ActorDiedError, match="all references"):
        troupe.get(weak.pid.remote(), timeout=20)


def test_a_forked_child_lets_go_of_nothing(idle: Home) -> None:
    actor = made()
    watched = Watched(actor)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            text = pickle.dumps(actor)
            del actor
            gc.collect()
            code = 0 if text else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    all_looked_at()
    assert troupe.get(actor.pid.remote(), timeout=20) == watched.pid
    del actor
    watched.ends()


def test_a_queue_ends_with_its_last_user(idle: Home) -> None:
    queue = Queue(actor_options={"num_cpus": 0})
    watched, holder = Watched(queue.actor), made()
    troupe.get(holder.keep.remote("queue", queue), timeout=20)
    del queue
    all_looked_at()
    troupe.get(holder.__ray_call__.remote(lambda self: self.kept["queue"].put(1)), timeout=20)
    troupe.get(holder.drop.remote("queue"), timeout=20)
    watched.ends()


def test_nothing_is_kept_of_lives_that_are_over(idle: Home) -> None:
    before = native._object_figures()["lives"]  # lives of tests before this one
    holder = made()
    for number in range(20):
        troupe.get(holder.keep.remote("it", made()), timeout=30)
        assert troupe.get(holder.pid_of.remote("it"), timeout=30) > number
    troupe.get(holder.drop.remote("it"), timeout=20)
    eventually(
        lambda: native._object_figures()["lives"] <= before, what="the end of all lives here"
    )
    figures = holder.__ray_call__
    eventually(
        lambda: (
            troupe.get(figures.remote(lambda self: native._object_figures()["lives"]), timeout=20)
            == 0
        ),
        what="the end of all lives there",
    )
