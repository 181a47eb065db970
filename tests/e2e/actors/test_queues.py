"""Queues whose getters are killed, cancelled or late: nobody who does not take an item has one.

Method: getters in other processes are known to wait (the queue's actor says how many do) before
they are killed or cancelled; what is put then is got by somebody else, each item once and in order.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import threading
from typing import Any

import pytest
from conftest import Home, eventually
from handles import Watched

import troupe
from troupe import exceptions
from troupe.util.queue import Empty, Queue

WITHIN_S = 60.0
MANY = 5000


class Getter:
    def gets(self, line: Queue, timeout: float | None = None) -> Any:
        return line.get(timeout=timeout)


class AsyncGetter:
    async def gets(self, line: Queue) -> Any:
        return await line.get_async()

    async def gets_many(self, line: Queue, count: int) -> list:
        return sorted(await asyncio.gather(*(line.get_async() for _ in range(count))))


def waiting(line: Queue) -> int:
    return troupe.get(
        line.actor.__ray_call__.remote(lambda self: len(self._line._getters)), timeout=WITHIN_S
    )


def waits(line: Queue, count: int) -> None:
    eventually(lambda: waiting(line) == count, what=f"the wait of {count} getters")


def actor_of(cls: type) -> Any:
    return troupe.remote(num_cpus=0)(cls).remote()


@pytest.mark.parametrize("how", ["kill", "signal"])
def test_a_getter_that_is_killed_takes_nothing(idle: Home, how: str) -> None:
    line, getters = Queue(), [actor_of(Getter) for _ in range(3)]
    watched = [Watched(getter) for getter in getters]
    asked = [getter.gets.remote(line) for getter in getters]
    waits(line, 3)
    for getter, ends in zip(getters, watched, strict=True):
        if how == "kill":
            troupe.kill(getter)
            ends.ends()  # until then it may still take what is put
        else:
            os.kill(ends.pid, signal.SIGKILL)
    line.put_nowait_batch([1, 2, 3])  # perhaps before their ends are known to the queue
    assert sorted(line.get(timeout=WITHIN_S) for _ in range(3)) == [1, 2, 3]
    assert line.empty()
    for ref in asked:
        with pytest.raises(exceptions.ActorDiedError):
            troupe.get(ref, timeout=WITHIN_S)
    waits(line, 0)
    line.shutdown(force=True)


def test_a_coroutine_that_is_cancelled_takes_nothing(idle: Home) -> None:
    line, getter = Queue(), actor_of(AsyncGetter)
    asked = [getter.gets.remote(line) for _ in range(3)]
    waits(line, 3)
    troupe.cancel(asked[1])
    line.put_nowait_batch(["a", "b", "c"])
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(asked[1], timeout=WITHIN_S)
    got = [*troupe.get([asked[0], asked[2]], timeout=WITHIN_S), line.get(timeout=WITHIN_S)]
    assert sorted(got) == ["a", "b", "c"] and line.empty()
    line.shutdown(force=True)


def test_a_task_that_is_cancelled_takes_nothing(idle: Home) -> None:
    @troupe.remote(num_cpus=0)
    def gets(line: Queue) -> Any:
        return line.get()

    line = Queue()
    asked = gets.remote(line)
    waits(line, 1)
    troupe.cancel(asked)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(asked, timeout=WITHIN_S)
    line.put("kept")
    assert line.get(timeout=WITHIN_S) == "kept" and line.empty()
    line.shutdown(force=True)


def test_an_await_that_is_given_up_takes_nothing(idle: Home) -> None:
    line = Queue()

    async def rounds() -> list:
        got = []
        for number in range(50):
            asked = asyncio.ensure_future(line.get_async())
            await asyncio.sleep(0.001 * (number % 5))  # lint-ok: at several stages of the wait
            put = line.put_async(number)
            if number % 2:
                asked.cancel()
                await put
            else:
                await put
                asked.cancel()
            try:
                got.append(await asked)
            except asyncio.CancelledError:
                got.append(await line.get_async(timeout=WITHIN_S))
        return got

    assert asyncio.run(rounds()) == list(range(50))
    assert line.empty()
    line.shutdown(force=True)


def test_a_getter_that_ends_with_what_it_took_has_taken_it(idle: Home) -> None:
    @troupe.remote(num_cpus=0, max_retries=0)
    def gets(line: Queue) -> None:
        line.get()
        os._exit(1)

    line = Queue()
    for number in range(5):
        asked = gets.remote(line)
        waits(line, 1)
        line.put(number)
        with pytest.raises(exceptions.WorkerCrashedError):
            troupe.get(asked, timeout=WITHIN_S)
        with pytest.raises(Empty):
            line.get(timeout=0.2)
    line.shutdown(force=True)


def test_many_getters_of_one_process_leave_room_for_its_puts(idle: Home) -> None:
    line = Queue()

    async def both() -> list:
        asked = [asyncio.ensure_future(line.get_async()) for _ in range(MANY)]
        await asyncio.sleep(0)  # lint-ok: they begin
        await asyncio.wait_for(
            asyncio.gather(*(line.put_async(number) for number in range(MANY))), 2 * WITHIN_S
        )
        return sorted(await asyncio.wait_for(asyncio.gather(*asked), 2 * WITHIN_S))

    assert asyncio.run(both()) == list(range(MANY))
    line.shutdown(force=True)


def test_many_getters_of_other_processes_leave_room_for_puts(idle: Home) -> None:
    line, getters = Queue(), [actor_of(AsyncGetter) for _ in range(3)]
    asked = [getter.gets_many.remote(line, 900) for getter in getters]
    waits(line, 2700)
    line.put_nowait_batch(list(range(2700)))
    assert sorted(sum(troupe.get(asked, timeout=2 * WITHIN_S), [])) == list(range(2700))
    line.shutdown(force=True)


def test_waiting_putters_leave_room_for_gets(idle: Home) -> None:
    line = Queue(maxsize=1)
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        put = [pool.submit(line.put, number, timeout=WITHIN_S) for number in range(40)]
        got = sorted(line.get(timeout=WITHIN_S) for _ in range(40))
        for each in put:
            each.result(WITHIN_S)
    assert got == list(range(40)) and line.empty()
    line.shutdown(force=True)


def test_who_waits_longest_is_served_first(idle: Home) -> None:
    line = Queue()
    got: list[tuple[int, Any]] = []
    threads = []
    for number in range(3):
        threads.append(
            threading.Thread(
                target=lambda number=number: got.append((number, line.get(timeout=WITHIN_S)))
            )
        )
        threads[-1].start()
        waits(line, number + 1)
    line.put_nowait_batch([0, 1, 2])
    for thread in threads:
        thread.join(WITHIN_S)
    assert sorted(got) == [(0, 0), (1, 1), (2, 2)]
    with pytest.raises(Empty, match=r"^no item within 0\.05 s$"):
        line.get(timeout=0.05)
    line.shutdown(force=True)
