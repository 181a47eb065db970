"""Actors that run several calls at once: on threads, as coroutines on an event loop, in groups."""

import asyncio
import os
import sys
import threading
import time

import pytest
from call_support import get, wait


class Threaded:
    def __init__(self):
        self.gate = threading.Event()
        self.inside = self.most = 0
        self.lock = threading.Lock()

    def hold(self):
        return self.gate.wait(20)

    def open(self):
        self.gate.set()
        return True

    def together(self):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.002)  # lint-ok: a method that takes this long
        with self.lock:
            self.inside -= 1
        return threading.current_thread().name

    def peak(self):
        return self.most

    def fail(self):
        raise KeyError("threaded")

    def leave(self):
        sys.exit(5)


def test_threads_answer_out_of_order(start):
    c = start(Threaded, max_concurrency=4).connect()
    held = [c.call("hold") for _ in range(3)]
    assert get(c.call("open"), 20) is True
    assert get(held, 20) == [True, True, True]
    with pytest.raises(KeyError):
        get(c.call("fail"), 20)
    with pytest.raises(AttributeError):
        get(c.call("nothing"), 20)


def test_no_more_threads_than_the_limit(start):
    c = start(Threaded, max_concurrency=3).connect()
    names = get([c.call("together") for _ in range(100)], 60)
    assert set(names) == {"actor"} and get(c.call("peak"), 20) == 3


def test_exit_on_a_thread_ends_the_actor(start):
    actor = start(Threaded, max_concurrency=2)
    with pytest.raises(SystemExit):
        get(actor.connect().call("leave"), 20)
    assert os.waitstatus_to_exitcode(actor.wait()) == 5


def test_groups_have_threads_of_their_own(start):
    made = Threaded()

    def find(name):
        return (getattr(made, name), "io" if name == "open" else None)

    c = start(lambda: made, 1, find=find, groups=[("io", 1)]).connect()
    held = c.call("hold")
    behind = c.call("together")
    assert get(c.method("open")(), 20) is True  # not behind the two others
    assert get([held, behind], 20) == [True, "actor"]
    assert get(c.method("together;group=io")(), 20) == "actor"
    with pytest.raises(ValueError, match="no concurrency group 'net'; there are: io"):
        get(c.method("together;group=net")(), 20)


class Async:
    def __init__(self):
        self.count = self.most = self.inside = 0
        self.order = []

    async def nap(self, seconds, value):
        await asyncio.sleep(seconds)
        return value

    async def at_once(self, value):
        self.order.append(value)
        return value

    def plain(self, value):
        self.order.append(value)
        return value

    async def seen(self):
        return self.order

    async def raises(self):
        await asyncio.sleep(0)
        raise KeyError("async")

    async def raises_at_once(self):
        raise KeyError("async")

    async def together(self):
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(0.001)
        self.inside -= 1
        return self.most

    async def task(self):
        async with asyncio.timeout(5):
            return asyncio.current_task().get_coro().__name__

    async def leave(self):
        sys.exit(4)

    async def block(self, seconds):
        time.sleep(seconds)  # lint-ok: a coroutine that blocks its loop
        return seconds


def test_coroutines_run_together(start):
    c = start(Async, 1000, loop=True).connect()
    began = time.monotonic()
    refs = [c.call("nap", 0.5, i) for i in range(50)]
    assert get(refs, 20) == list(range(50))
    assert time.monotonic() - began < 5
    slow, fast = c.call("nap", 5, "slow"), c.call("nap", 0, "fast")
    assert wait([slow, fast], 1, 20)[0] == [fast]
    for method in ("raises", "raises_at_once"):
        with pytest.raises(KeyError):
            get(c.call(method), 20)
    assert get(c.call("task"), 20) == "task"
    assert get([c.call("raises") for _ in range(3)] and c.call("plain", 1), 20) == 1


def test_calls_of_one_caller_begin_in_order(start):
    c = start(Async, 1000, loop=True).connect()
    refs = [c.call("at_once", i) for i in range(3000)]
    assert get(refs, 20) == list(range(3000))
    assert get(c.call("seen"), 20) == list(range(3000))


def test_no_more_coroutines_than_the_limit(start):
    c = start(Async, 4, loop=True).connect()
    assert max(get([c.call("together") for _ in range(50)], 20)) == 4


def test_an_answer_does_not_wait_for_a_coroutine_that_blocks(start):
    c = start(Async, 1000, loop=True).connect()
    get(c.call("at_once", 0), 20)
    first, second = c.call("at_once", 1), c.call("block", 3)
    began = time.monotonic()
    assert get(first, 20) == 1
    assert time.monotonic() - began < 2
    assert get(second, 20) == 3


def test_exit_in_a_coroutine_ends_the_actor(start):
    actor = start(Async, 1000, loop=True)
    with pytest.raises(SystemExit):
        get(actor.connect().call("leave"), 20)
    assert os.waitstatus_to_exitcode(actor.wait()) == 4


def test_many_callers_of_a_loop(start):
    actor = start(Async, 1000, loop=True)
    channels = [actor.connect() for _ in range(20)]
    refs = [c.call("nap" if i % 2 else "at_once", *((0.001, i) if i % 2 else (i,)))
            for i in range(100) for c in channels]
    assert get(refs, 60) == [i for i in range(100) for _ in channels]
    for c in channels[1:]:
        c.close()
    assert get(channels[0].call("at_once", 5), 20) == 5
