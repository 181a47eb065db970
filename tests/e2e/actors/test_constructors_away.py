"""Constructors of actors on another host than who makes them, whose arguments hold refs and
handles; real processes.

Method: two workers of this machine that are as two hosts (--force-tcp), actors pinned to them, this
process as the driver: a third host. Counters of each process's object store say what is held.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import handles
import objects
import pytest
import tcp_cuts
from handles import Watched, all_looked_at
from objects import all_released
from tcp_cuts import cut_tcp, port_of

import troupe
from troupe import exceptions
from troupe._base.bridge import native
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy

np = pytest.importorskip("numpy")
for module in (sys.modules[__name__], handles, objects, tcp_cuts):
    cloudpickle.register_pickle_by_value(module)  # another host would not have these files

MIB = 1 << 20


class Keeper:
    """Keeps what it is constructed with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        if kwargs.get("wrong"):
            raise KeyError(f"wrong: {troupe.get(kwargs['wrong'][0], timeout=30)}")

    def plain(self) -> tuple:
        return self.args, self.kwargs

    def values(self) -> list:
        return [
            troupe.get(each, timeout=30) if isinstance(each, troupe.ObjectRef) else each
            for each in self.args[0]
        ]

    def drop(self) -> None:
        self.args = self.kwargs = ()

    def pid(self) -> int:
        return os.getpid()

    def pid_of(self) -> int:
        return troupe.get(self.args[0][0].pid.remote(), timeout=30)

    def make(self, node: str, **options: Any) -> Any:
        return on(
            node,
            Keeper,
            [troupe.put("of an actor"), troupe.put(np.full(MIB, 3, dtype=np.uint8))],
            **options,
        )

    def figures(self) -> dict:
        return native._object_figures()


class AsyncKeeper(Keeper):
    async def wait(self) -> str:
        return "async"


def on(node: str, cls: type, *args: Any, options: dict | None = None, **kwargs: Any) -> Any:
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    return (
        troupe.remote(num_cpus=0)(cls)
        .options(scheduling_strategy=strategy, **(options or {}))
        .remote(*args, **kwargs)
    )


def done(ref: Any) -> Any:
    return troupe.get(ref, timeout=60)


def when(path: str, value: Any) -> Any:
    pause = threading.Event()
    while not os.path.exists(path):
        pause.wait(0.01)
    if isinstance(value, Exception):
        raise value
    return value


@pytest.mark.parametrize("cls", [Keeper, AsyncKeeper])
def test_refs_inside_values(hosts: dict[str, str], cls: type) -> None:
    array = np.arange(5 * MIB, dtype=np.uint8)
    refs = [troupe.put("small"), troupe.put(array), troupe.put([troupe.put("inner")]), "plain"]
    keeper = on(hosts["a"], cls, refs, more={"ref": refs[0]})
    names = [ref.hex() for ref in refs[:3]]
    del refs
    small, large, nested, plain = done(keeper.values.remote())
    assert (
        (small, plain) == ("small", "plain")
        and (large == array).all()
        and done(nested[0]) == "inner"
    )
    assert [ref.hex() for ref in done(keeper.plain.remote())[0][0][:3]] == names
    done(keeper.drop.remote())
    del large, nested
    all_released(keeper)
    troupe.kill(keeper)


def test_large_values_and_refs_of_them(hosts: dict[str, str]) -> None:
    array = np.arange(20 * MIB, dtype=np.uint8)
    keeper = on(
        hosts["a"],
        Keeper,
        array,
        troupe.put(array),
        again=[troupe.put(array)],
        text="x" * (2 * MIB),
    )
    args, kwargs = done(keeper.plain.remote())
    assert (args[0] == array).all() and (args[1] == array).all() and len(kwargs["text"]) == 2 * MIB
    assert (done(kwargs["again"][0]) == array).all()
    done(keeper.drop.remote())
    del args, kwargs
    all_released(keeper)
    troupe.kill(keeper)


def test_many_at_once(hosts: dict[str, str]) -> None:
    shared = troupe.put(np.full(MIB, 2, dtype=np.uint8))
    made = [on(hosts["ab"[i % 2]], Keeper, [shared, troupe.put(i)]) for i in range(12)]
    asked = [each.values.remote() for each in made]
    assert [done(each)[1] for each in asked] == list(range(12))
    del shared, asked
    for each in made:
        troupe.kill(each)
    all_released()


def test_a_class_that_captures_refs(hosts: dict[str, str]) -> None:
    captured = troupe.put("captured")
    keeper = on(
        hosts["b"], type("Captures", (), {"read": lambda self: troupe.get(captured, timeout=30)})
    )
    assert done(keeper.read.remote()) == "captured"
    troupe.kill(keeper)
    del captured
    all_released()


def test_arguments_to_come(hosts: dict[str, str], tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    late = troupe.remote(when)
    first, failing = late.remote(go, [troupe.put("first")]), late.remote(go, KeyError("why"))
    keeper = on(hosts["a"], Keeper, first, [troupe.put(3)])
    wrong = on(hosts["a"], Keeper, failing, [troupe.put(4)])
    asked = keeper.plain.remote()
    assert troupe.wait([asked], timeout=0.2)[0] == []
    (tmp_path / "go").touch()
    args = done(asked)[0]
    assert done(args[0][0]) == "first" and done(args[1][0]) == 3
    with pytest.raises(KeyError, match="why"):
        done(wrong.pid.remote())
    del args, asked, first, failing, wrong
    troupe.kill(keeper)
    all_released()


def test_each_process_of_one_that_is_started_again_gets_them(hosts: dict[str, str]) -> None:
    keeper = on(
        hosts["a"],
        Keeper,
        [troupe.put("small"), troupe.put(np.full(MIB, 2, dtype=np.uint8))],
        options={"max_restarts": 2, "max_task_retries": -1},
    )
    for _ in range(3):
        assert (
            done(keeper.values.remote())[0] == "small"
            and int(done(keeper.values.remote())[1][5]) == 2
        )
        done(keeper.drop.remote())  # the maker holds them still
        os.kill(done(keeper.pid.remote()), signal.SIGKILL)
    with pytest.raises(exceptions.ActorDiedError):
        done(keeper.pid.remote())
    all_released()


def test_of_actors_that_make_others(hosts: dict[str, str]) -> None:
    maker = on(hosts["a"], Keeper)
    made = done(maker.make.remote(hosts["b"], options={"max_restarts": 1, "max_task_retries": 1}))
    assert done(made.values.remote())[0] == "of an actor"
    os.kill(done(made.pid.remote()), signal.SIGKILL)
    assert int(done(made.values.remote())[1][0]) == 3
    beside = done(maker.make.remote(hosts["a"]))
    assert done(beside.values.remote())[0] == "of an actor", "on its maker's host"
    del made, beside
    all_released(maker)
    troupe.kill(maker)


def test_a_constructor_that_raises(hosts: dict[str, str]) -> None:
    keeper = on(hosts["a"], Keeper, wrong=[troupe.put("this")])
    with pytest.raises(KeyError, match="wrong: this") as caught:
        done(keeper.pid.remote())
    assert isinstance(caught.value, exceptions.ActorDiedError)
    all_released()


def test_calls_of_others_wait_for_the_constructor(hosts: dict[str, str], tmp_path: Path) -> None:
    class Slow(Keeper):
        def __init__(self, path: str, refs: list) -> None:
            super().__init__(refs)
            pause = threading.Event()
            while not os.path.exists(path):
                pause.wait(0.01)

    caller = on(hosts["b"], Keeper)
    slow = on(hosts["a"], Slow, str(tmp_path / "go"), [troupe.put(1)])
    others = caller.__ray_call__.remote(
        lambda self, handles: troupe.get(handles[0].values.remote(), timeout=30), [slow]
    )
    own = slow.values.remote()
    assert troupe.wait([others, own], timeout=0.3)[0] == []
    (tmp_path / "go").touch()
    assert done(others) == [1] and done(own) == [1]
    troupe.kill(slow)
    troupe.kill(caller)
    all_released()


def test_handles_are_counted(hosts: dict[str, str]) -> None:
    actor = on(hosts["b"], Keeper)
    watched = Watched(actor)
    keeper = on(hosts["a"], Keeper, [actor])
    del actor
    assert done(keeper.pid_of.remote()) == watched.pid
    all_looked_at()
    assert done(keeper.pid_of.remote()) == watched.pid
    done(keeper.drop.remote())
    watched.ends()
    again = on(hosts["b"], Keeper)
    watched = Watched(again)
    keeper = on(hosts["a"], Keeper, [again], options={"max_restarts": 1, "max_task_retries": 1})
    del again
    done(keeper.drop.remote())
    os.kill(done(keeper.pid.remote()), signal.SIGKILL)
    assert done(keeper.pid_of.remote()) == watched.pid, (
        "held by its maker, as it may be started again"
    )
    troupe.kill(keeper)
    watched.ends()
    all_released()


def test_connections_that_are_cut(hosts: dict[str, str]) -> None:
    port = port_of(hosts["a"])
    array = np.arange(8 * MIB, dtype=np.uint8)
    cuts = 0
    for i in range(6):
        keeper = on(hosts["a"], Keeper, [troupe.put(array), troupe.put(i)])
        asked = keeper.values.remote()
        for _ in range(6):
            cuts += cut_tcp({port})
            if troupe.wait([asked], timeout=0.04 * i)[0]:
                break
        got = done(asked)
        assert got[1] == i and (got[0] == array).all()
        del asked, got
        troupe.kill(keeper)
    assert cuts != 0
    all_released()
