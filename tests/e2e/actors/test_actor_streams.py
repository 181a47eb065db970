"""Methods that yield, through real processes: plain, threaded and async actors, errors,
back-pressure, ends."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from conftest import Home, eventually

import troupe
from troupe import exceptions
from troupe.util import placement_group, remove_placement_group


class Maker:
    """Yields, and knows how far it got."""

    def __init__(self) -> None:
        self.made = 0
        self.closed = False
        self.gate = threading.Event()

    def count(self, upto: int) -> Iterator[int]:
        self.made = 0
        self.closed = False
        try:
            for i in range(upto):
                self.made += 1
                yield i
        finally:
            self.closed = True

    def gated(self, path: str) -> Iterator[str]:
        yield "first"
        while not os.path.exists(path):
            self.gate.wait(0.01)
        yield "second"

    def breaks(self) -> Iterator[int]:
        yield 1
        raise LookupError("half way")

    def listed(self) -> list[int]:
        return [1, 2, 3]

    def seen(self) -> tuple[int, bool]:
        return self.made, self.closed

    def pid(self) -> int:
        return os.getpid()

    def endless(self) -> Iterator[bytes]:
        while True:
            self.made += 1
            yield b"x" * 1000


class AsyncMaker:
    """A maker whose methods are coroutines."""

    def __init__(self) -> None:
        self.made = 0
        self.closed = False

    async def count(self, upto: int) -> AsyncIterator[int]:
        self.made = 0
        self.closed = False
        try:
            for i in range(upto):
                await asyncio.sleep(0)
                self.made += 1
                yield i
        finally:
            self.closed = True

    async def breaks(self) -> AsyncIterator[int]:
        yield 1
        raise LookupError("half way")

    def plain(self) -> Iterator[int]:
        yield from range(3)

    async def seen(self) -> tuple[int, bool]:
        return self.made, self.closed


KINDS = {
    "plain": lambda: troupe.remote(Maker).remote(),
    "threaded": lambda: troupe.remote(max_concurrency=3)(Maker).remote(),
    "async": lambda: troupe.remote(AsyncMaker).remote(),
}


@pytest.fixture(params=sorted(KINDS))
def maker(request, idle: Home):
    """An actor of every kind, killed after the test."""
    made = KINDS[request.param]()
    yield made
    troupe.kill(made)


def test_refs_come_one_by_one_in_order(maker) -> None:
    generator = maker.count.remote(500)
    assert isinstance(generator, troupe.ObjectRefGenerator)
    assert [troupe.get(ref) for ref in generator] == list(range(500))
    assert list(generator) == [] and generator.is_finished()
    assert troupe.get(generator.completed(), timeout=20) is None
    assert list(maker.count.remote(0)) == []


def test_an_exception_is_the_last_ref(maker) -> None:
    refs = list(maker.breaks.remote())
    assert len(refs) == 2 and troupe.get(refs[0]) == 1
    with pytest.raises(LookupError, match="half way"):
        troupe.get(refs[1])


def test_the_maker_is_no_further_ahead_than_asked(maker) -> None:
    generator = maker.count.options(_generator_backpressure_num_objects=4).remote(50)
    assert troupe.get(next(generator), timeout=20) == 0
    taken = [0] + [troupe.get(ref) for ref in generator]
    assert taken == list(range(50))
    assert troupe.get(maker.seen.remote(), timeout=20) == (50, True)


def test_async_iteration(maker) -> None:
    async def collect() -> list:
        return [await ref async for ref in maker.count.remote(100)]

    assert asyncio.run(collect()) == list(range(100))


def test_a_dropped_generator_ends_its_method(maker) -> None:
    generator = maker.count.options(_generator_backpressure_num_objects=10).remote(1_000_000)
    assert troupe.get(next(generator), timeout=20) == 0
    del generator
    made, closed = eventually(
        lambda: (lambda seen: seen if seen[1] else None)(
            troupe.get(maker.seen.remote(), timeout=30)
        ),
        what="the end of the method",
    )
    assert closed and made <= 12


def test_each_word_of_what_is_taken_is_heard(idle: Home) -> None:
    """Each is all that the waiting maker gets: one that is read and not looked at would be waited
    for for ever."""
    made = troupe.remote(Maker).remote()
    generator = made.count.options(_generator_backpressure_num_objects=1).remote(300)
    assert [troupe.get(ref, timeout=60) for ref in generator] == list(range(300))


def test_backpressure_bounds_what_is_made(idle: Home) -> None:
    made = troupe.remote(AsyncMaker).remote()
    generator = made.count.options(_generator_backpressure_num_objects=5).remote(1000)
    next(generator)
    eventually(lambda: troupe.get(made.seen.remote(), timeout=20)[0] >= 5, what="five items")
    assert troupe.get([made.seen.remote() for _ in range(50)], timeout=20)[-1][0] <= 6
    troupe.kill(made)


def test_an_endless_generator_is_bounded_by_default(idle: Home) -> None:
    made = troupe.remote(max_concurrency=2)(Maker).remote()
    generator = made.endless.remote()
    assert len(troupe.get(next(generator), timeout=20)) == 1000
    eventually(
        lambda: troupe.get(made.seen.remote(), timeout=20)[0] > 32_000, what="32 MiB of items"
    )
    assert max(troupe.get([made.seen.remote() for _ in range(50)], timeout=20))[0] < 33_000
    del generator
    troupe.kill(made)


def test_wait_and_polling(idle: Home, tmp_path) -> None:
    made = troupe.remote(Maker).remote()
    gate = tmp_path / "gate"
    generator = made.gated.remote(str(gate))
    assert troupe.wait([generator], timeout=20) == ([generator], [])
    assert generator.next_ready() and troupe.get(next(generator)) == "first"
    assert troupe.wait([generator], timeout=0.2) == ([], [generator])
    assert not generator.next_ready() and not generator.is_finished()
    gate.touch()
    assert troupe.get(next(generator), timeout=20) == "second"
    assert list(generator) == []
    with pytest.raises(ValueError, match="twice"):
        troupe.wait([generator, generator])
    troupe.kill(made)


def test_streaming_what_is_no_generator(idle: Home) -> None:
    made = troupe.remote(Maker).remote()
    streaming = made.listed.options(num_returns="streaming").remote()
    assert [troupe.get(ref) for ref in streaming] == [1, 2, 3]
    (broken,) = list(made.pid.options(num_returns="streaming").remote())
    with pytest.raises(TypeError, match="iterable"):
        troupe.get(broken)
    other = troupe.remote(AsyncMaker).remote()
    assert [troupe.get(ref) for ref in other.plain.remote()] == [0, 1, 2]
    with pytest.raises(TypeError, match="stays in the process"):
        made.gated.remote(other.plain.remote())
    for each in (made, other):
        troupe.kill(each)


def test_a_named_actor_that_is_not_there_yet_is_known_by_its_class(idle: Home) -> None:
    everything = placement_group([{"CPU": troupe.cluster_resources()["CPU"]}])
    troupe.get(everything.ready(), timeout=20)
    made = troupe.remote(num_cpus=1, name="to come")(Maker).remote()
    found = troupe.get_actor("to come")
    assert isinstance(found.count.remote(3), troupe.ObjectRefGenerator)
    with pytest.raises(AttributeError, match="no method 'counts'"):
        found.counts.remote(3)
    with pytest.raises(TypeError, match="missing a required argument: 'upto'"):
        found.count.remote()
    troupe.kill(made)
    remove_placement_group(everything)


def test_an_actor_that_dies_in_mid_stream(idle: Home) -> None:
    made = troupe.remote(max_concurrency=2)(Maker).remote()
    pid = troupe.get(made.pid.remote(), timeout=20)
    generator = made.count.options(_generator_backpressure_num_objects=3).remote(100)
    assert troupe.get(next(generator), timeout=20) == 0
    os.kill(pid, 9)
    rest = list(generator)
    assert 1 <= len(rest) <= 10
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(rest[-1], timeout=20)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(generator.completed(), timeout=20)
