"""The state of a queue's actor, and the turns of a process at it, against their rules; no
processes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from troupe.util._queue_line import Line
from troupe.util._queue_turns import Turns


def run(scene: Coroutine) -> Any:
    return asyncio.run(asyncio.wait_for(scene, 60))


async def waits(*calls: Coroutine) -> list[asyncio.Task]:
    tasks = [asyncio.ensure_future(call) for call in calls]
    for _ in range(3):
        await asyncio.sleep(0)  # lint-ok: they begin
    return tasks


def test_QL1_who_waits_longest_is_served_first() -> None:
    async def scene() -> None:
        line = Line(None)
        getters = await waits(*(line.get(None) for _ in range(3)))
        line.add(["a", "b", "c", "d"])
        assert await asyncio.gather(*getters) == ["a", "b", "c"] and line.take(1) == ["d"]

    run(scene())


@pytest.mark.parametrize("given", [False, True])
def test_QL2_a_cancelled_getter_has_nothing(given: bool) -> None:
    async def scene() -> None:
        line = Line(None)
        first, second = await waits(line.get(None), line.get(None))
        if given:
            line.add(["a"])  # the item is the first getter's, which has not run since
        first.cancel()
        await asyncio.wait([first])
        if not given:
            line.add(["a"])
        assert await second == "a" and first.cancelled() and len(line) == 0

    run(scene())


def test_QL2_a_late_getter_has_nothing() -> None:
    async def scene() -> None:
        line = Line(None)
        with pytest.raises(TimeoutError):
            await line.get(0)
        line.add(["a"])
        assert line.take(1) == ["a"]

    run(scene())


def test_QL2_what_is_given_back_is_the_first_again() -> None:
    async def scene() -> None:
        line = Line(2)
        line.add(["a", "b"])
        item = (line.take(1))[0]
        (putter,) = await waits(line.put("c", None))
        line.give_back(item)
        assert line.take(3) == ["a", "b", "c"] and await putter is None

    run(scene())


def test_QL3_putters_wait_for_room_in_order_and_leave_it() -> None:
    async def scene() -> None:
        line = Line(1)
        await line.put("a", None)
        with pytest.raises(TimeoutError):
            await line.put("late", 0)
        first, second, third = await waits(*(line.put(item, None) for item in "bcd"))
        second.cancel()
        await asyncio.wait([second])
        assert [line.free, await line.get(None), await line.get(None), await line.get(None)] == [
            0,
            "a",
            "b",
            "d",
        ]
        await asyncio.gather(first, third)
        assert line.free == 1

    run(scene())


def test_turns_are_given_on_in_order_and_not_lost() -> None:
    async def scene() -> None:
        turns = Turns(1)
        turns.take(0)
        first, second, third = await waits(*(turns.take_async(None) for _ in range(3)))
        turns.give()  # the first one's, which has not run since
        first.cancel()
        await asyncio.wait([first])
        await second
        with pytest.raises(TimeoutError):
            turns.take(0.01)
        turns.give()
        await third
        turns.give()
        turns.take(0)

    run(scene())


def test_threads_take_turns() -> None:
    turns, inside, most = Turns(2), [], []

    def work() -> None:
        turns.take(60)
        inside.append(1)
        most.append(len(inside))
        inside.pop()
        turns.give()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(most) == 16 and max(most) <= 2
