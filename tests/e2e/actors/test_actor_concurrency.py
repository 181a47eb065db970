"""Actors that run several calls at once, through real processes: threads, coroutines, concurrency
groups."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions


class Gate:
    """A method that waits until another is called."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def hold(self) -> bool:
        return self.gate.wait(30)

    def open(self) -> str:
        self.gate.set()
        return threading.current_thread().name


class AsyncGate:
    """A gate whose methods are coroutines."""

    def __init__(self, note: str = "") -> None:
        self.gate = asyncio.Event()
        self.note = note
        self.loop = asyncio.get_event_loop()

    async def hold(self) -> bool:
        await asyncio.wait_for(self.gate.wait(), 30)
        return True

    def open(self) -> bool:
        self.gate.set()
        return asyncio.get_running_loop() is self.loop

    async def add(self, one: int, other: int) -> int:
        return one + other

    async def leave(self) -> None:
        troupe.exit_actor()

    async def fail(self) -> None:
        await asyncio.sleep(0)
        raise LookupError("async")

    async def __ray_shutdown__(self) -> None:
        await asyncio.sleep(0)
        if self.note:
            Path(self.note).write_text("bye")


def test_a_threaded_actor(idle: Home) -> None:
    made = troupe.remote(max_concurrency=3)(Gate).remote()
    held = [made.hold.remote(), made.hold.remote()]
    assert troupe.get(made.open.remote(), timeout=20) == "actor"
    assert troupe.get(held, timeout=20) == [True, True]
    troupe.kill(made)


def test_a_sync_actor_runs_one_call_at_a_time(idle: Home) -> None:
    made = troupe.remote(Gate).remote()
    troupe.get(made.__ray_ready__.remote(), timeout=20)
    held, opened = made.hold.remote(), made.open.remote()
    assert troupe.wait([opened], timeout=0.3) == ([], [opened])
    troupe.kill(made)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(held, timeout=20)


def test_an_async_actor(idle: Home) -> None:
    made = troupe.remote(AsyncGate).remote()
    held = [made.hold.remote() for _ in range(200)]  # more than threads would do
    assert troupe.get(made.open.remote(), timeout=20) is True
    assert troupe.get(held, timeout=20) == [True] * 200
    assert troupe.get([made.add.remote(i, 1) for i in range(500)], timeout=20) == list(
        range(1, 501)
    )
    assert troupe.get(made.__ray_ready__.remote(), timeout=20) is True
    with pytest.raises(LookupError, match="async"):
        troupe.get(made.fail.remote(), timeout=20)
    troupe.kill(made)


def test_an_async_actor_with_a_limit(idle: Home) -> None:
    made = troupe.remote(max_concurrency=2)(AsyncGate).remote()
    held = [made.hold.remote(), made.hold.remote()]
    opened = made.open.remote()  # waits for one of them
    assert troupe.wait([opened], timeout=0.3) == ([], [opened])
    troupe.kill(made)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(held[0], timeout=20)


def test_an_async_actor_ends_itself(idle: Home, tmp_path: Path) -> None:
    made = troupe.remote(AsyncGate).remote(str(tmp_path / "note"))
    assert troupe.get(made.add.remote(1, 2), timeout=20) == 3
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(made.leave.remote(), timeout=20)
    eventually((tmp_path / "note").exists, what="__ray_shutdown__")


def test_concurrency_groups(idle: Home) -> None:
    @troupe.remote(concurrency_groups={"io": 2, "compute": 1})
    class Grouped(Gate):
        @troupe.method(concurrency_group="io")
        def open(self) -> str:
            return super().open()

        @troupe.method(concurrency_group="compute")
        def wait_here(self) -> bool:
            return self.gate.wait(30)

    made = Grouped.remote()
    held = [made.hold.remote(), made.wait_here.remote(), made.hold.remote()]
    assert troupe.get(made.open.remote(), timeout=20)
    assert troupe.get(held, timeout=20) == [True] * 3
    assert troupe.get(made.hold.options(concurrency_group="io").remote(), timeout=20) is True
    with pytest.raises(ValueError, match="no concurrency group 'net'"):
        troupe.get(made.hold.options(concurrency_group="net").remote(), timeout=20)
    troupe.kill(made)


def test_concurrency_groups_of_an_async_actor(idle: Home) -> None:
    @troupe.remote(concurrency_groups={"control": 1}, max_concurrency=1)
    class Grouped(AsyncGate):
        @troupe.method(concurrency_group="control")
        async def let_go(self) -> bool:
            self.loop.call_soon_threadsafe(self.gate.set)
            return asyncio.get_running_loop() is not self.loop

        @troupe.method(
            concurrency_group="control",
            num_returns="streaming",
            _generator_backpressure_num_objects=1,
        )
        async def items(self) -> Any:
            for number in range(4):
                await asyncio.sleep(0)
                yield number

        @troupe.method(concurrency_group="control")
        async def hold_there(self) -> None:
            await asyncio.Event().wait()

    made = Grouped.remote()
    held = [made.hold.remote(), made.hold.remote()]
    assert troupe.get(made.let_go.remote(), timeout=20)
    assert troupe.get(held, timeout=20) == [True, True]
    assert [troupe.get(each, timeout=20) for each in made.items.remote()] == [0, 1, 2, 3]
    running, waiting = made.hold_there.remote(), made.hold_there.remote()
    for each in (waiting, running):
        troupe.cancel(each)
        with pytest.raises(exceptions.CancelledError):
            troupe.get(each, timeout=20)
    assert troupe.get(made.let_go.remote(), timeout=20)
    troupe.kill(made)


def test_a_coroutine_that_blocks_its_group_blocks_no_other(idle: Home) -> None:
    @troupe.remote(concurrency_groups={"io": 2, "compute": 1})
    class Grouped:
        def __init__(self) -> None:
            self.gate = threading.Event()

        @troupe.method(concurrency_group="io")
        async def block(self) -> bool:
            return self.gate.wait(60)

        @troupe.method(concurrency_group="compute")
        async def where(self) -> int:
            return threading.get_ident()

        @troupe.method(concurrency_group="compute")
        def plain(self) -> int:
            return threading.get_ident()

        async def free(self) -> int:
            self.gate.set()
            return threading.get_ident()

        async def __ray_shutdown__(self) -> None:
            self.gate.set()

    made = Grouped.remote()
    blocks = made.block.remote()
    there = troupe.get([made.where.remote(), made.where.remote(), made.plain.remote()], timeout=20)
    assert len(set(there)) == 1, (
        "a group has one loop, on one thread; its plain methods run there too"
    )
    assert troupe.get(made.free.remote(), timeout=20) != there[0]
    assert troupe.get(blocks, timeout=20) is True
    ends = Grouped.remote()
    blocks = ends.block.remote()
    troupe.get(ends.where.remote(), timeout=20)
    ends.__ray_terminate__.remote()
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(ends.block.remote(), timeout=60)
    del blocks
    troupe.kill(made)


def test_a_group_of_threads_keeps_its_own(idle: Home) -> None:
    @troupe.remote(concurrency_groups={"one": 1, "other": 1})
    class Grouped:
        def __init__(self) -> None:
            self.kept = threading.local()

        def count(self) -> int:
            self.kept.calls = getattr(self.kept, "calls", 0) + 1
            return self.kept.calls

        @troupe.method(concurrency_group="one")
        def count_one(self) -> int:
            return self.count()

        @troupe.method(concurrency_group="other")
        def count_other(self) -> int:
            return self.count()

    made = Grouped.remote()
    for number in range(1, 6):
        refs = [made.count.remote(), made.count_one.remote(), made.count_other.remote()]
        assert troupe.get(refs, timeout=20) == [number] * 3
    troupe.kill(made)


def test_misuse_of_concurrency(idle: Home) -> None:
    for wrong in ({"io": 0}, {"": 1}, ["io"], {"io": "two"}):
        with pytest.raises(ValueError, match="concurrency_groups"):
            troupe.remote(concurrency_groups=wrong)(Gate)
    with pytest.raises(ValueError, match="max_concurrency"):
        troupe.remote(max_concurrency=0)(Gate)

    class Lost:
        @troupe.method(concurrency_group="nowhere")
        def use(self) -> None: ...

    with pytest.raises(ValueError, match="'nowhere'"):
        troupe.remote(Lost).remote()


def test_several_returns_of_concurrent_actors(idle: Home) -> None:
    class Pair:
        def both(self) -> tuple:
            return 1, 2

    class AsyncPair:
        async def both(self) -> tuple:
            return 1, 2

    for made in (
        troupe.remote(max_concurrency=2)(Pair).remote(),
        troupe.remote(AsyncPair).remote(),
    ):
        assert troupe.get(made.both.options(num_returns=2).remote(), timeout=20) == [1, 2]
        troupe.kill(made)


def test_an_async_actor_awaits_another(idle: Home) -> None:
    class Asking:
        def __init__(self, other: object) -> None:
            self.other = other

        async def ask(self, count: int) -> list:
            return list(await asyncio.gather(*(self.other.add.remote(i, 1) for i in range(count))))

    asked = troupe.remote(AsyncGate).remote()
    asking = troupe.remote(Asking).remote(asked)
    assert (
        troupe.get([asking.ask.remote(20) for _ in range(10)], timeout=60)
        == [list(range(1, 21))] * 10
    )
    for each in (asking, asked):
        troupe.kill(each)
