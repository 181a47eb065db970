"""Exceptions that mean something to Python itself, raised by users' code: they arrive as errors,
whatever they pass through.

Method: a task, a plain, a threaded and an asynchronous actor raise each of them; it is got,
awaited, gathered, streamed, passed on as an argument, and met by a future, in real processes. None
becomes a value, ends a loop, or a wait for ever.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Home

import troupe
from troupe import exceptions

WITHIN_S = 60.0

KINDS: dict[str, BaseException] = {
    "StopIteration": StopIteration(7),
    "StopAsyncIteration": StopAsyncIteration("s"),
    "GeneratorExit": GeneratorExit("g"),
    "CancelledError": asyncio.CancelledError("c"),
    "TimeoutError": TimeoutError("t"),
    "GetTimeoutError": exceptions.GetTimeoutError("g"),
    "KeyboardInterrupt": KeyboardInterrupt("k"),
    "of futures": concurrent.futures.CancelledError("f"),
    "InvalidStateError": concurrent.futures.InvalidStateError("i"),
}


@troupe.remote(num_cpus=0)
def fails(error: BaseException) -> None:
    raise error


@troupe.remote(num_cpus=0)
def yields(error: BaseException) -> Any:
    yield 1
    raise error


class Plain:
    def fails(self, error: BaseException) -> None:
        raise error

    def gets(self, refs: list) -> Any:
        return troupe.get(refs[0])


class Async:
    async def fails(self, error: BaseException) -> None:
        raise error

    def plain(self, error: BaseException) -> None:
        raise error

    async def awaits(self, refs: list) -> Any:
        return await refs[0]

    async def yields(self, error: BaseException) -> Any:
        yield 1
        raise error

    async def fine(self) -> str:
        return "fine"


async def awaited(ref: Any) -> Any:
    async def one() -> Any:
        return await ref

    return await asyncio.wait_for(one(), WITHIN_S)


async def gathered(refs: list) -> list:
    return await asyncio.wait_for(asyncio.gather(*refs), WITHIN_S)


async def last_of(stream: Any) -> Any:
    refs = [ref async for ref in stream]
    return await refs[-1]


def names(error: BaseException, kind: BaseException) -> bool:
    """Return True if `error` names the raised exception: by its type, its causes or its text."""
    seen: list[Any] = [error]
    for each in seen:
        seen += [
            cause
            for cause in (each.__cause__, getattr(each, "cause", None))
            if isinstance(cause, BaseException) and cause not in seen
        ]
    return any(isinstance(each, type(kind)) for each in seen) or type(kind).__name__ in str(error)


def raised_by(call: Callable[[], Any], kind: BaseException) -> BaseException:
    with pytest.raises(exceptions.TroupeError) as caught:
        call()
    assert names(caught.value, kind), caught.value
    assert not isinstance(caught.value, exceptions.GetTimeoutError), (
        "nothing was waited for in vain"
    )
    return caught.value


@pytest.mark.parametrize("name", KINDS)
def test_of_a_task(idle: Home, name: str) -> None:
    kind = KINDS[name]
    raised_by(lambda: troupe.get(fails.remote(kind), timeout=WITHIN_S), kind)
    raised_by(lambda: fails.remote(kind).future().result(WITHIN_S), kind)
    raised_by(lambda: asyncio.run(awaited(fails.remote(kind))), kind)
    raised_by(lambda: asyncio.run(gathered([fails.remote(kind)])), kind)
    raised_by(lambda: troupe.get(fails.remote(fails.remote(kind)), timeout=WITHIN_S), kind)
    raised_by(lambda: asyncio.run(awaited(fails.remote(fails.remote(kind)))), kind)


@pytest.mark.parametrize("name", KINDS)
def test_of_streams(idle: Home, name: str) -> None:
    kind = KINDS[name]
    for function in (fails, yields):
        raised_by(
            lambda: [
                troupe.get(ref, timeout=WITHIN_S)
                for ref in function.options(num_returns="streaming").remote(kind)
            ],
            kind,
        )
        raised_by(
            lambda: asyncio.run(last_of(function.options(num_returns="streaming").remote(kind))),
            kind,
        )
    actor = troupe.remote(num_cpus=0)(Async).remote()
    raised_by(
        lambda: asyncio.run(last_of(actor.yields.options(num_returns="streaming").remote(kind))),
        kind,
    )
    assert troupe.get(actor.fine.remote(), timeout=WITHIN_S) == "fine"


@pytest.mark.parametrize("name", KINDS)
def test_of_an_asynchronous_actor(idle: Home, name: str) -> None:
    kind = KINDS[name]
    actor = troupe.remote(num_cpus=0)(Async).remote()
    for call in (actor.fails, actor.plain):
        raised_by(lambda: troupe.get(call.remote(kind), timeout=WITHIN_S), kind)
        raised_by(lambda: asyncio.run(awaited(call.remote(kind))), kind)
    raised_by(lambda: troupe.get(actor.awaits.remote([fails.remote(kind)]), timeout=WITHIN_S), kind)
    assert troupe.get(actor.fine.remote(), timeout=WITHIN_S) == "fine"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", [name for name in KINDS if name != "KeyboardInterrupt"])
def test_of_a_plain_actor(idle: Home, name: str, threads: int) -> None:
    kind = KINDS[name]
    actor = troupe.remote(num_cpus=0)(Plain).options(max_concurrency=threads).remote()
    raised_by(lambda: troupe.get(actor.fails.remote(kind), timeout=WITHIN_S), kind)
    raised_by(lambda: asyncio.run(awaited(actor.fails.remote(kind))), kind)
    raised_by(lambda: troupe.get(actor.gets.remote([fails.remote(kind)]), timeout=WITHIN_S), kind)


def test_get_gives_a_stop_iteration_and_await_an_error_that_it_causes(idle: Home) -> None:
    """A coroutine that raised one would be ended by it with a value, which is why Python has a
    RuntimeError in its place."""
    with pytest.raises(StopIteration) as got:
        troupe.get(fails.remote(StopIteration(7)), timeout=WITHIN_S)
    assert isinstance(got.value, exceptions.TaskError) and got.value.value == 7
    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        asyncio.run(awaited(fails.remote(StopIteration(7))))
    error = caught.value
    assert isinstance(error, exceptions.TaskError) and not isinstance(error, StopIteration)
    assert isinstance(error.__cause__, StopIteration) and isinstance(
        error.cause.__cause__, StopIteration
    )
    assert (
        "def fails" not in str(type(error)) and error.remote_traceback == got.value.remote_traceback
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


def test_a_loop_of_awaits_meets_the_error(idle: Home) -> None:
    class Reads:
        def __init__(self, refs: list) -> None:
            self.refs = refs

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            if not self.refs:
                raise StopAsyncIteration
            return await self.refs.pop(0)

    @troupe.remote(num_cpus=0)
    def gives(value: Any) -> Any:
        return value

    async def reads() -> list:
        return [
            value
            async for value in Reads(
                [gives.remote(1), fails.remote(StopIteration(2)), gives.remote(3)]
            )
        ]

    raised_by(lambda: asyncio.run(reads()), StopIteration())


@pytest.mark.parametrize(
    "kind", [KeyboardInterrupt, SystemExit, StopIteration, asyncio.CancelledError]
)
def test_a_value_that_raises_it_when_it_is_loaded(idle: Home, kind: type) -> None:
    class Trap:
        def __reduce__(self) -> tuple:
            return _raise, (kind,)

    def _raise(kind: type) -> None:
        raise kind("loaded")

    @troupe.remote(num_cpus=0)
    def gives() -> Any:
        return Trap()

    async def twice() -> str:
        ref = gives.remote()
        with pytest.raises(exceptions.TaskError, match=kind.__name__):
            await asyncio.wait_for(asyncio.shield(awaited(ref)), WITHIN_S)
        return "the loop goes on"

    assert asyncio.run(twice()) == "the loop goes on"
