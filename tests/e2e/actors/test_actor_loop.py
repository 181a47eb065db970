"""The loop of an actor with coroutines asks for calls before it waits: nothing else of the loop may
suffer.

Method: one caller that calls without pause, so that the loop always finds the next call by asking;
meanwhile timers, threads, other sockets and other callers want their turn.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import cloudpickle
import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions
from troupe.actor import exit_actor

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@troupe.remote(num_cpus=0)
class Looped:
    """Coroutines beside a timer, a thread and a socket of its own."""

    def __init__(self) -> None:
        self.ticks = self.from_thread = self.from_socket = 0

    async def begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = asyncio.create_task(self._tick())
        here, there = socket.socketpair()
        here.setblocking(False)
        self._sockets = here, there
        loop.add_reader(here, self._read)
        threading.Thread(target=self._from_thread, args=(loop, there), daemon=True).start()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.002)
            self.ticks += 1

    def _read(self) -> None:
        self.from_socket += len(self._sockets[0].recv(100))

    def _from_thread(self, loop: asyncio.AbstractEventLoop, to: socket.socket) -> None:
        for _ in range(10):
            loop.call_soon_threadsafe(self._count)
            to.send(b"x")
            time.sleep(0.01)  # lint-ok: the thread's own pace

    def _count(self) -> None:
        self.from_thread += 1

    async def counts(self) -> tuple[int, int, int]:
        return self.ticks, self.from_thread, self.from_socket

    async def leave(self) -> None:
        exit_actor()


@troupe.remote(num_cpus=0)
class Other:
    """A second caller."""

    def call(self, actor: Any) -> tuple[int, int, int]:
        return troupe.get(actor.counts.remote())


def until(happened: Callable[[tuple[int, int, int]], bool], actor: Any, what: str) -> None:
    """Calls `actor` without pause until what is wanted has happened."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not happened(counts := troupe.get(actor.counts.remote())):
        assert time.monotonic() < deadline_s, (
            f"{what}: not in {TIMEOUT_S:g} s of calls of another; ticks, calls, reads: {counts}"
        )


def test_timers_threads_and_sockets_of_a_loop_go_on_beside_a_caller_without_pause(
    idle: Home,
) -> None:
    actor = Looped.remote()
    troupe.get(actor.begin.remote())
    until(
        lambda counts: counts[0] >= 10 and counts[1:] == (10, 10),
        actor,
        "timers, threads and sockets",
    )


def test_a_second_caller_is_heard_beside_one_without_pause(idle: Home) -> None:
    actor, other = Looped.remote(), Other.remote()
    troupe.get([actor.counts.remote(), other.__ray_ready__.remote()])
    heard = other.call.remote(actor)
    until(lambda _: troupe.wait([heard], timeout=0)[0] == [heard], actor, "a second caller")


def test_leaving_in_a_call_that_the_loop_found_by_asking(idle: Home) -> None:
    actor = Looped.remote()
    for _ in range(100):
        troupe.get(actor.counts.remote())
    with pytest.raises(exceptions.ActorDiedError, match="exit_actor"):
        troupe.get(actor.leave.remote(), timeout=30)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(actor.counts.remote(), timeout=30)


class OwnLoop(asyncio.SelectorEventLoop):
    """An event loop of the user's choice."""


class OwnPolicy(asyncio.DefaultEventLoopPolicy):
    """Makes it."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return OwnLoop()


def _set_policy() -> None:
    asyncio.set_event_loop_policy(OwnPolicy())


class WithPolicy:
    """A class whose pickle sets the policy, as a module that an actor's class needs would."""

    def __reduce__(self) -> tuple:
        return _set_policy, ()


@troupe.remote(num_cpus=0)
class Chosen:
    """An actor that tells its loop, and whether a call comes through."""

    def __init__(self, _: Any = None) -> None:
        pass

    async def loop_name(self) -> str:
        return type(asyncio.get_running_loop()).__name__


def test_a_loop_that_the_program_has_chosen_is_used(idle: Home) -> None:
    assert troupe.get(Chosen.remote(WithPolicy()).loop_name.remote()) == "OwnLoop"
    assert troupe.get(Chosen.remote().loop_name.remote()) == "_PollingLoop"


@troupe.remote(num_cpus=0)
class Waiting:
    """An actor whose calls wait for futures that nothing else refers to."""

    def __init__(self) -> None:
        self.futures: list[weakref.ref[asyncio.Future[str]]] = []
        self.task: weakref.ref[asyncio.Task[Any]] | None = None

    async def wait(self) -> str:
        return await self._future()

    async def items(self) -> AsyncIterator[str]:
        yield await self._future()

    def _future(self) -> asyncio.Future[str]:
        future = asyncio.get_running_loop().create_future()
        self.futures.append(weakref.ref(future))
        self.task = weakref.ref(asyncio.current_task())
        return future

    async def waiting(self) -> int:
        return len(self.futures)

    async def collect(self) -> list[bool]:
        """Return which futures still exist; those are given a value."""
        gc.collect()
        left = [each() for each in self.futures]
        self.futures.clear()
        for future in left:
            if future is not None:
                future.set_result("kept")
        return [future is not None for future in left]

    async def task_is_there(self) -> bool:
        gc.collect()
        return self.task() is not None


def _wait_for(actor: Any, count: int) -> None:
    eventually(
        lambda: troupe.get(actor.waiting.remote(), timeout=TIMEOUT_S) == count,
        what=f"{count} waiting calls",
    )


def test_a_call_that_waits_for_what_it_alone_knows_is_no_garbage(idle: Home) -> None:
    actor = Waiting.remote()
    called, items = actor.wait.remote(), actor.items.options(num_returns="streaming").remote()
    _wait_for(actor, 2)
    assert troupe.get(actor.collect.remote(), timeout=TIMEOUT_S) == [True, True]
    assert troupe.get([called, next(items)], timeout=TIMEOUT_S) == ["kept", "kept"]


def test_a_call_that_is_over_is_garbage(idle: Home) -> None:
    actor = Waiting.remote()
    called = actor.wait.remote()
    _wait_for(actor, 1)
    assert troupe.get(actor.task_is_there.remote(), timeout=TIMEOUT_S)
    troupe.cancel(called)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(called, timeout=TIMEOUT_S)
    assert not troupe.get(actor.task_is_there.remote(), timeout=TIMEOUT_S)
