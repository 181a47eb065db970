"""Actors that run several calls at once: on threads, as coroutines on an event loop, in groups."""

import asyncio
import os
import signal
import sys
import threading
import time

import pytest
from call_support import MAYBE_EXECUTED, code_of, get, wait


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

    def meet(self, others):
        """Ends when that many calls are in here at once."""
        with self.lock:
            self.meeting = getattr(self, "meeting", None) or threading.Barrier(others)
        self.meeting.wait(20)
        return threading.get_ident()

    def thread(self):
        return threading.get_ident()

    def awaited(self, value):
        return value.opened

    def fail(self):
        raise KeyError("threaded")

    def leave(self, code=5):
        sys.exit(code)


def test_threads_answer_out_of_order(start):
    c = start(Threaded, max_concurrency=4).connect()
    held = [c.call("hold") for _ in range(3)]
    assert get(c.call("open"), 20) is True
    assert get(held, 20) == [True, True, True]
    with pytest.raises(KeyError):
        get(c.call("fail"), 20)
    with pytest.raises(AttributeError):
        get(c.call("nothing"), 20)


@pytest.mark.parametrize("calls", [2, 40])
def test_each_call_that_runs_has_a_thread_pt_1_pt_2(start, calls):
    c = start(Threaded, max_concurrency=calls).connect()
    for _ in range(3):  # with threads that are started, then with those that sleep
        assert len(set(get([c.call("meet", calls) for _ in range(calls)], 60))) == calls


def test_the_thread_that_ran_last_runs_the_next_pt_3(start):
    c = start(Threaded, max_concurrency=8).connect()
    get([c.call("meet", 8) for _ in range(8)], 20)
    # The one that was still falling asleep when a call came may be passed over.
    assert len({get(c.call("thread"), 20) for _ in range(200)}) < 8


class Awaits:
    """Unpickled where the gate is, it waits until that opens."""

    def __init__(self, opened=False):
        self.opened = opened

    def __reduce__(self):
        return (await_gate, ())


def await_gate():
    return Awaits(made_here.gate.wait(20))


def make_here():
    global made_here
    made_here = Threaded()
    return made_here


def test_a_call_begins_though_the_next_ones_arguments_wait_for_it_pt_2(start):
    actor = start(make_here, max_concurrency=4)
    c = actor.connect()
    get([c.call("meet", 2) for _ in range(2)], 20)  # two threads, which sleep now
    os.kill(actor.pid, signal.SIGSTOP)  # so that it reads both at once
    opened, waits = c.call("open"), c.call("awaited", Awaits())
    os.kill(actor.pid, signal.SIGCONT)
    assert get([opened, waits], 30) == [True, True]


def test_no_more_threads_than_the_limit(start):
    c = start(Threaded, max_concurrency=3).connect()
    names = get([c.call("together") for _ in range(100)], 60)
    assert set(names) == {"actor"} and get(c.call("peak"), 20) == 3


def test_exit_on_a_thread_ends_the_actor(start):
    actor = start(Threaded, max_concurrency=2)
    assert code_of(actor.connect(grace_s=0.2).call("leave"))[0] == MAYBE_EXECUTED
    assert os.waitstatus_to_exitcode(actor.wait()) == 5
    actor = start(Threaded, max_concurrency=2)
    with pytest.raises(SystemExit):
        get(actor.connect().call("leave", 0), 20)
    assert os.waitstatus_to_exitcode(actor.wait()) == 0


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
        self.order, self.meeting = [], []
        self.all_here = asyncio.Event()

    async def nap(self, seconds, value):
        await asyncio.sleep(seconds)
        return value

    async def meet(self, count, value):
        """Takes until `count` calls of it are inside."""
        self.meeting.append(value)
        if len(self.meeting) == count:
            self.all_here.set()
        await self.all_here.wait()
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

    async def leave(self, code=4):
        sys.exit(code)

    async def block(self, fifo):
        """Blocks its loop until somebody writes into it."""
        with open(fifo, encoding="ascii") as file:
            return file.read()


def test_coroutines_run_together(start):
    c = start(Async, 1000, loop=True).connect()
    refs = [c.call("meet", 50, i) for i in range(50)]
    assert get(refs, 60) == list(range(50))
    slow, fast = c.call("nap", 3600, "slow"), c.call("nap", 0, "fast")
    assert wait([slow, fast], 1, 60)[0] == [fast]
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


def test_an_answer_does_not_wait_for_a_coroutine_that_blocks(start, fifo):
    c = start(Async, 1000, loop=True).connect()
    get(c.call("at_once", 0), 20)
    first, second = c.call("at_once", 1), c.call("block", str(fifo))
    assert get(first, 60) == 1
    fifo.write_text("over")
    assert get(second, 60) == "over"


def test_exit_in_a_coroutine_ends_the_actor(start):
    actor = start(Async, 1000, loop=True)
    assert code_of(actor.connect(grace_s=0.2).call("leave"))[0] == MAYBE_EXECUTED
    assert os.waitstatus_to_exitcode(actor.wait()) == 4
    actor = start(Async, 1000, loop=True)
    with pytest.raises(SystemExit):
        get(actor.connect().call("leave", 0), 20)
    assert os.waitstatus_to_exitcode(actor.wait()) == 0


def test_many_callers_of_a_loop(start):
    actor = start(Async, 1000, loop=True)
    channels = [actor.connect() for _ in range(20)]
    refs = [
        c.call("nap" if i % 2 else "at_once", *((0.001, i) if i % 2 else (i,)))
        for i in range(100)
        for c in channels
    ]
    assert get(refs, 60) == [i for i in range(100) for _ in channels]
    for c in channels[1:]:
        c.close()
    assert get(channels[0].call("at_once", 5), 20) == 5
