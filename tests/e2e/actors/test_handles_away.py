"""Actors end with their last handle, whichever host that is on; real processes.

Method: two workers of this machine that are as two hosts (--force-tcp), actors pinned to them, this
process as the driver: a third host. The kernel tells when an actor's process has ended (a pidfd).
That one goes on is seen by a call that it answers after all that was let go of here was looked at.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import handles
import pytest
import tcp_cuts
from conftest import eventually
from handles import Watched, all_looked_at
from tcp_cuts import cut_tcp, port_of

import troupe
from troupe import exceptions
from troupe._base.bridge import native
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

np = pytest.importorskip("numpy")
for module in (sys.modules[__name__], handles, tcp_cuts):
    cloudpickle.register_pickle_by_value(module)  # another host would not have these files

MIB = 1 << 20
KEPT_S = 30  # objects held by a process that cannot be reached are kept so long


class Holder:
    """Keeps what it is given, calls what it keeps, hands it on, makes others of its kind."""

    def __init__(self, *kept: Any) -> None:
        self.kept = dict(enumerate(kept))
        self.notes: list[Any] = []

    def pid(self) -> int:
        return os.getpid()

    def keep(self, name: Any, value: Any) -> None:
        self.kept[name] = value

    def drop(self, *names: Any) -> None:
        for name in names or list(self.kept):
            self.kept.pop(name, None)

    def give(self, name: Any) -> Any:
        return self.kept[name]

    def give_items(self, name: Any, count: int) -> Iterator:
        for _ in range(count):
            yield {"handle": self.kept[name]}

    def pid_of(self, name: Any) -> int:
        return troupe.get(found(self.kept[name]).pid.remote(), timeout=30)

    def pass_on(self, other: Any, name: Any) -> None:
        troupe.get(other.keep.remote("passed", self.kept[name]), timeout=30)

    def make(self, **options: Any) -> Any:
        return troupe.remote(num_cpus=0)(Holder).options(**options).remote()

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

    def calls_and_drops(self, name: Any, gate: str, after: str) -> None:
        """Calls whose answers nobody waits for, by a handle that is dropped behind them."""
        handle = self.kept.pop(name)
        handle.wait_for.remote(gate)
        for i in range(100):
            handle.note.remote(i)
        handle.wait_for.remote(gate, after)

    def pickled(self, name: Any) -> bytes:
        return pickle.dumps(self.kept[name])

    def call(self, function: Any) -> Any:
        return function()

    def lives(self) -> int:
        return native._object_figures()["lives"]


def found(value: Any) -> Any:
    """The handle in a value."""
    while not hasattr(value, "_link"):
        if isinstance(value, troupe.ObjectRef):
            value = troupe.get(value, timeout=30)
        value = value["handle"] if isinstance(value, dict) else value[0]
    return value


def on(node: str, cls: type = Holder, *args: Any, **options: Any) -> Any:
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    return (
        troupe.remote(num_cpus=0)(cls)
        .options(scheduling_strategy=strategy, **options)
        .remote(*args)
    )


def task(function: Any, node: str, **options: Any) -> Any:
    return troupe.remote(function).options(
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False), **options
    )


def done(ref: Any) -> Any:
    return troupe.get(ref, timeout=60)


def no_lives(*holders: Any) -> None:
    """Nothing is kept of lives here and there, but those of the holders themselves."""
    eventually(
        lambda: native._object_figures()["lives"] <= len(holders),
        what="the end of all other lives here",
    )
    for each in holders:
        eventually(
            lambda each=each: done(each.lives.remote()) == 0, what="the end of all lives there"
        )


def large(handle: Any) -> dict:
    return {"handle": handle, "bulk": np.zeros(2 * MIB, dtype=np.uint8)}


WAYS = {
    "plain": lambda handle: handle,
    "in a value": lambda handle: {"handle": handle},
    "in a large value": large,
    "in a value that was put": lambda handle: troupe.put([handle]),
    "in a large value that was put": lambda handle: troupe.put(large(handle)),
    "behind a ref": lambda handle: [troupe.put([handle])],
    "behind a ref of a large value": lambda handle: {"handle": [troupe.put(large(handle))]},
}


@pytest.mark.parametrize("way", WAYS)
def test_as_an_argument(hosts: dict[str, str], way: str) -> None:
    holder, actor = on(hosts["a"]), on(hosts["b"])
    watched = Watched(actor)
    done(holder.keep.remote("it", WAYS[way](actor)))
    del actor
    all_looked_at()
    assert done(holder.pid_of.remote("it")) == watched.pid
    all_looked_at()
    assert done(holder.pid_of.remote("it")) == watched.pid, (
        "once more, with all that came for the first"
    )
    done(holder.drop.remote())
    watched.ends()
    no_lives(holder)


@pytest.mark.parametrize("way", WAYS)
def test_as_a_result(hosts: dict[str, str], way: str) -> None:
    maker, holder = on(hosts["a"]), on(hosts["b"])
    done(maker.call.remote(lambda: None))
    make = WAYS[way]
    given = maker.__ray_call__.remote(lambda self: make(self.make()))
    actor = found(done(given))
    watched = Watched(actor)
    del given
    all_looked_at()
    assert done(actor.pid.remote()) == watched.pid
    done(
        holder.keep.remote(
            "it", maker.__ray_call__.remote(lambda self, handle: make(handle), actor)
        )
    )
    del actor
    all_looked_at()
    assert done(holder.pid_of.remote("it")) == watched.pid
    done(holder.drop.remote())
    watched.ends()
    no_lives(maker, holder)


def test_in_items_of_a_stream_and_among_several_results(hosts: dict[str, str]) -> None:
    holder, actor = on(hosts["a"]), on(hosts["b"])
    watched = Watched(actor)
    done(holder.keep.remote("it", actor))
    del actor
    items = holder.give_items.options(num_returns="streaming").remote("it", 10)
    first = done(next(items))["handle"]
    several = holder.give_items.options(num_returns=2).remote("it", 2)
    done(holder.drop.remote())
    all_looked_at()
    assert done(first.pid.remote()) == watched.pid
    del first, items
    all_looked_at()
    assert done(found(done(several[1])).pid.remote()) == watched.pid
    del several
    watched.ends()
    no_lives(holder)


def test_of_tasks(hosts: dict[str, str], tmp_path: Path) -> None:
    actor = on(hosts["b"])
    watched = Watched(actor)
    gate = tmp_path / "gate"

    def pid_of(value: Any, path: str = "") -> int:
        pause = threading.Event()
        while path and not os.path.exists(path):
            pause.wait(0.01)
        return troupe.get(found(value).pid.remote(), timeout=30)

    def gives(value: Any) -> Any:
        return [found(value)]

    remote = task(pid_of, hosts["a"])
    for way in WAYS.values():
        assert done(remote.remote(way(actor))) == watched.pid
    last = remote.remote([actor], str(gate))
    del actor
    all_looked_at()
    gate.touch()
    assert done(last) == watched.pid, "the task held it"
    watched.ends()
    again = on(hosts["b"])
    watched = Watched(again)
    given = task(gives, hosts["a"]).remote({"handle": again})
    done(given)
    del again
    all_looked_at()
    assert done(task(pid_of, hosts["b"]).remote(given)) == watched.pid
    del given
    watched.ends()


def test_what_a_function_captures(hosts: dict[str, str]) -> None:
    actor, holder = on(hosts["b"]), on(hosts["a"])
    watched = Watched(actor)

    def captures(handle: Any) -> Any:
        return lambda: troupe.get(handle.pid.remote(), timeout=30)

    assert done(holder.call.remote(captures(actor))) == watched.pid
    remote = task(captures(actor), hosts["a"], max_calls=1)  # the process keeps it until it ends
    del actor
    all_looked_at()
    assert done(remote.remote()) == watched.pid
    all_looked_at()
    assert done(remote.remote()) == watched.pid
    del remote
    watched.ends(KEPT_S + 30)


def test_handed_on_to_a_third_host_and_back_home(hosts: dict[str, str]) -> None:
    first, second, actor = on(hosts["a"]), on(hosts["b"]), on(hosts["b"])
    watched = Watched(actor)
    done(first.keep.remote("it", [actor]))
    del actor
    done(first.pass_on.remote(second, "it"))
    done(first.drop.remote())
    all_looked_at()
    assert done(second.pid_of.remote("passed")) == watched.pid
    home = done(second.give.remote("passed"))[0]
    done(second.drop.remote())
    all_looked_at()
    assert done(home.pid.remote()) == watched.pid
    done(second.keep.remote("again", home))
    del home
    all_looked_at()
    assert done(second.pid_of.remote("again")) == watched.pid
    done(second.drop.remote())
    watched.ends()
    no_lives(first, second)


def test_on_three_hosts_it_ends_with_the_last(hosts: dict[str, str]) -> None:
    for last in range(3):
        holders = [on(hosts["a"]), on(hosts["b"])]
        maker = on(hosts["a"])
        actor = done(maker.make.remote())
        watched = Watched(actor)
        for each in holders:
            done(each.keep.remote("it", {"handle": actor}))
        kept = [actor]
        del actor
        lets_go = [
            lambda: done(holders[0].drop.remote()),
            lambda: done(holders[1].drop.remote()),
            kept.clear,
        ]
        for each in lets_go[last + 1 :] + lets_go[:last]:
            each()
            all_looked_at()
            assert watched.lives()
        holder = holders[last] if last < 2 else None
        assert (
            done(holder.pid_of.remote("it")) if holder is not None else done(kept[0].pid.remote())
        ) == watched.pid
        lets_go[last]()
        watched.ends()
        no_lives(maker, *holders)


def test_handed_on_within_a_host(hosts: dict[str, str]) -> None:
    holder, neighbour, actor = on(hosts["a"]), on(hosts["a"]), on(hosts["b"])
    watched = Watched(actor)
    done(holder.keep.remote("it", {"handle": actor}))
    del actor
    done(holder.pass_on.remote(neighbour, "it"))
    done(holder.drop.remote())
    all_looked_at()
    assert done(neighbour.pid_of.remote("passed")) == watched.pid
    done(neighbour.drop.remote())
    watched.ends()
    no_lives(holder, neighbour)


def test_calls_made_before_are_run(hosts: dict[str, str], tmp_path: Path) -> None:
    holder, actor = on(hosts["a"]), on(hosts["b"])
    watched = Watched(actor)
    done(holder.keep.remote("it", actor))
    del actor
    gate, after = tmp_path / "gate", tmp_path / "after"
    done(holder.calls_and_drops.remote("it", str(gate), str(after)))
    all_looked_at()
    assert watched.lives()
    gate.touch()
    watched.ends()
    assert after.exists()


def test_it_is_not_started_again_and_its_calls_say_why(hosts: dict[str, str]) -> None:
    holder, actor = on(hosts["a"]), on(hosts["b"], max_restarts=-1, name="counted")
    watched = Watched(actor)
    weak = troupe.get_actor("counted")
    done(holder.keep.remote("it", actor))
    del actor
    all_looked_at()
    assert done(weak.pid.remote()) == watched.pid
    done(holder.drop.remote())
    watched.ends()
    with pytest.raises(exceptions.ActorDiedError, match="all references to the actor were removed"):
        done(weak.pid.remote())


def test_what_it_held_is_given_back(hosts: dict[str, str]) -> None:
    strategy = NodeAffinitySchedulingStrategy(hosts["b"], soft=False)
    holder = on(hosts["a"])
    before = troupe.available_resources()
    actor = troupe.remote(num_cpus=2)(Holder).options(scheduling_strategy=strategy).remote()
    watched = Watched(actor)
    done(holder.keep.remote("it", actor))
    del actor
    assert troupe.available_resources()["CPU"] == before["CPU"] - 2
    done(holder.drop.remote())
    watched.ends()
    eventually(lambda: troupe.available_resources() == before, what="its CPUs")


# ---- faults
# ----------------------------------------------------------------------------------------


def killed(actor: Any) -> None:
    os.kill(done(actor.pid.remote()), signal.SIGKILL)
    with pytest.raises(exceptions.ActorDiedError):
        done(actor.pid.remote())


def test_a_holder_that_is_killed_lets_go(hosts: dict[str, str]) -> None:
    holder, actor = on(hosts["a"]), on(hosts["b"])
    watched = Watched(actor)
    done(holder.keep.remote("it", {"handle": actor}))
    del actor
    all_looked_at()
    assert done(holder.pid_of.remote("it")) == watched.pid
    killed(holder)
    watched.ends()


def test_who_handed_it_on_and_is_killed_takes_nothing_along(hosts: dict[str, str]) -> None:
    """Nobody knows then who has a handle: the actor is wanted until its maker ends."""
    before = native._object_figures()["lives"]
    maker, middle, last = on(hosts["b"]), on(hosts["a"]), on(hosts["b"])
    actor = done(maker.make.remote())
    watched = Watched(actor)
    done(middle.keep.remote("it", [actor]))
    del actor
    done(middle.pass_on.remote(last, "it"))
    eventually(
        lambda: native._object_figures()["lives"] == before + 2,
        what="the lives of the actor and of the last one alone",
    )
    killed(middle)
    eventually(lambda: native._object_figures()["lent"] == 0, what="the end of what it held")
    all_looked_at()
    assert done(last.pid_of.remote("passed")) == watched.pid
    assert native._object_figures()["lives"] == before + 2, "it is kept here"
    troupe.kill(maker)
    watched.ends()


def test_who_handed_it_on_to_one_that_let_go_and_is_killed_lets_go(hosts: dict[str, str]) -> None:
    middle, last, actor = on(hosts["a"]), on(hosts["b"]), on(hosts["b"])
    watched = Watched(actor)
    done(middle.keep.remote("it", [actor]))
    done(middle.pass_on.remote(last, "it"))
    done(last.drop.remote())
    eventually(lambda: done(last.lives.remote()) == 0, what="its letting go")
    del actor
    all_looked_at()
    assert watched.lives()
    done(middle.lives.remote())
    killed(middle)
    watched.ends()


def test_a_neighbour_of_the_maker_that_handed_it_on_and_is_killed(hosts: dict[str, str]) -> None:
    maker, neighbour, last = on(hosts["a"]), on(hosts["a"]), on(hosts["b"])

    def make_and_pass(self: Any, other: Any) -> None:
        troupe.get(other.keep.remote("it", self.make()), timeout=30)

    done(maker.__ray_call__.remote(make_and_pass, neighbour))
    pid = done(neighbour.pid_of.remote("it"))
    done(neighbour.pass_on.remote(last, "it"))
    killed(neighbour)
    eventually(
        lambda: done(maker.__ray_call__.remote(lambda self: native._object_figures()["lent"])) == 0,
        what="the end of what it held",
    )
    assert done(last.pid_of.remote("passed")) == pid
    done(last.drop.remote())
    troupe.kill(maker)


def test_connections_that_are_cut(hosts: dict[str, str]) -> None:
    holder, actor = on(hosts["a"]), on(hosts["b"])
    watched = Watched(actor)
    port = port_of(hosts["a"])
    cuts = 0
    for i in range(8):
        kept = holder.keep.remote(i, {"handle": actor})
        cuts += cut_tcp({port})
        done(kept)
        back = holder.give.remote(i)
        troupe.wait([back], timeout=0.01 * i)
        cuts += cut_tcp({port})
        assert done(found(done(back)).pid.remote()) == watched.pid
        done(holder.drop.remote(i))
        cuts += cut_tcp({port})
    assert cuts != 0 and watched.lives()
    done(holder.keep.remote("last", actor))
    del actor, kept, back
    cut_tcp({port})
    assert done(holder.pid_of.remote("last")) == watched.pid
    done(holder.drop.remote())
    cut_tcp({port})
    watched.ends()
    no_lives(holder)


# ---- where counting ends
# ---------------------------------------------------------------------------


def test_a_handle_that_another_host_pickled_itself_is_not_counted(hosts: dict[str, str]) -> None:
    holder, actor = on(hosts["a"]), on(hosts["b"])
    watched = Watched(actor)
    done(holder.keep.remote("it", actor))
    del actor
    text = done(holder.pickled.remote("it"))
    before = native._object_figures()["lives"]
    done(holder.drop.remote())
    eventually(lambda: native._object_figures()["lives"] < before, what="the end of its life")
    all_looked_at()
    again = pickle.loads(text)
    assert done(again.pid.remote()) == watched.pid
    troupe.kill(again)
    watched.ends()
