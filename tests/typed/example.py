"""A program as a user's editor sees it: the types of all that the public names give, and lines that
must be errors.

Nothing runs it. mypy in strict mode and basedpyright read it (tests/lint/typing_errors.py):
`assert_type` says what a line has to give, and a line with `# type: ignore` is an error for both,
which would say that the comment is not needed where it were none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

import troupe
from troupe import ActorClass, ActorHandle, ObjectRef, ObjectRefGenerator
from troupe.actor import ActorProxy
from troupe.launch import LaunchHandle, attach, distributed, ray_launch, submit_command

# ---- tasks


@troupe.remote
def repeat(text: str, times: int = 2) -> str:
    return text * times


@troupe.remote(num_cpus=1, label_selector={"zone": "a"})
def length(text: str) -> int:
    return len(text)


@troupe.remote
def count(most: int) -> Iterator[int]:
    yield from range(most)


@troupe.remote(num_returns=2)
def halves(text: str) -> tuple[str, str]:
    return text[:1], text[1:]


@troupe.remote(num_returns="dynamic")
def parts(text: str) -> Iterator[str]:
    yield from text


def tasks() -> None:
    assert_type(repeat.remote("a"), ObjectRef[str])
    assert_type(repeat.remote("a", times=3), ObjectRef[str])
    assert_type(troupe.get(repeat.remote("a")), str)
    assert_type(troupe.get(length.remote("a"), timeout=5), int)
    assert_type(troupe.get([length.remote("a"), length.remote("b")]), list[int])
    assert_type(troupe.get((length.remote("a"),), timeout=5), list[int])
    assert_type(length.options(num_cpus=2).remote("a"), ObjectRef[int])
    assert_type(length.options(num_returns=2).remote("a"), list[ObjectRef[Any]])
    assert_type(halves.remote("ab"), list[ObjectRef[Any]])

    # A ref in the place of the value.
    assert_type(repeat.remote(repeat.remote("a"), length.remote("b")), ObjectRef[str])
    assert_type(repeat.remote(troupe.put("a"), times=2), ObjectRef[str])
    repeat.remote(length.remote("a"))  # type: ignore[arg-type]
    repeat.remote("a", troupe.put("b"))  # type: ignore[arg-type]

    repeat.remote()  # type: ignore[call-overload]
    repeat.remote(1)  # type: ignore[call-overload]
    repeat.remote("a", "b")  # type: ignore[call-overload]
    repeat.remote("a", time=1)  # type: ignore[call-overload]
    repeat.options(num_cpu=1)  # type: ignore[call-overload]
    troupe.get("a")  # type: ignore[arg-type]


def streams() -> None:
    assert_type(count.remote(3), ObjectRefGenerator[int])
    for ref in count.remote(3):
        assert_type(ref, ObjectRef[int])
    assert_type(next(count.remote(3)), ObjectRef[int])
    assert_type([troupe.get(each) for each in count.remote(3)], list[int])
    for part in troupe.get(parts.remote("ab")):
        assert_type(part, ObjectRef[str])


async def awaited() -> None:
    assert_type(await length.remote("a"), int)
    assert_type(await asyncio.gather(length.remote("a"), repeat.remote("b")), tuple[int, str])
    async for ref in count.remote(3):
        assert_type(await ref, int)
    assert_type(length.remote("a").future().result(), int)


def objects() -> None:
    ref = troupe.put([1.5])
    assert_type(ref, ObjectRef[list[float]])
    assert_type(troupe.get(ref), list[float])
    assert_type(ref.hex(), str)
    assert_type(
        troupe.wait([ref], num_returns=1, timeout=0),
        tuple[list[ObjectRef[list[float]]], list[ObjectRef[list[float]]]],
    )
    ready, _ = troupe.wait([count.remote(3)])
    assert_type(ready, list[ObjectRefGenerator[int]])
    troupe.cancel(ref)
    troupe.wait(ref)  # type: ignore[arg-type]
    troupe.cancel("a")  # type: ignore[arg-type]


# ---- actors


class Base:
    def __init__(self, start: int, name: str = "") -> None:
        self.value = start

    def add(self, amount: int) -> int:
        self.value += amount
        return self.value

    @troupe.method
    def declared(self, amount: int) -> int:
        assert_type(self.declared(1), int)
        return self.add(amount)

    @troupe.method(max_task_retries=2)
    async def later(self, amount: int) -> str:
        assert_type(await self.later(1), str)
        return str(amount)

    @troupe.method(num_returns=2)
    def pair(self) -> tuple[int, int]:
        return 1, 2

    @troupe.method
    async def items(self, most: int) -> AsyncIterator[int]:
        yield most


Counter = troupe.remote(Base)
Placed = troupe.remote(num_cpus=1, max_concurrency=4)(Base)


def actors() -> None:
    counter = Counter.remote(1, name="a")
    assert_type(counter, ActorHandle[Base])
    assert_type(Placed.remote(1), ActorHandle[Base])
    assert_type(Counter.options(num_cpus=1, lifetime="detached").remote(1), ActorHandle[Base])
    assert_type(Counter.remote(length.remote("a")), ActorHandle[Base])
    assert_type(counter.add.remote(1), ObjectRef[Any])
    assert_type(counter.add.options(num_returns=2).remote(1), list[ObjectRef[Any]])
    assert_type(counter.__ray_call__.remote(Base.add, 2), ObjectRef[int])
    assert_type(troupe.get(counter.__ray_call__.remote(lambda self: self.value)), int)
    assert_type(troupe.get_actor("a"), ActorHandle[Any])
    troupe.kill(counter, no_restart=False)
    Counter.remote("a")  # type: ignore[call-overload]
    Counter.remote()  # type: ignore[call-overload]
    Counter.remote(repeat.remote("a"))  # type: ignore[arg-type]
    Counter.options(num_cpu=1)  # type: ignore[call-arg]
    counter.__ray_call__.remote(Base.add, "a")  # type: ignore[arg-type]
    takes_handle(counter)
    declared(counter)


def takes_handle(counter: ActorHandle[Base]) -> None:
    assert_type(counter.add.remote(1), ObjectRef[Any])


def takes_class(counters: ActorClass[Base]) -> None:
    assert_type(counters.remote(1, 2, 3), ActorHandle[Any])


def declared(counter: ActorProxy[Base]) -> None:
    """Annotated so, methods with `@troupe.method` have their types."""
    assert_type(troupe.get(counter.declared.remote(1)), int)
    assert_type(counter.declared.remote(length.remote("a")), ObjectRef[int])
    assert_type(counter.later.remote(1), ObjectRef[str])
    assert_type(counter.pair.remote(), list[ObjectRef[Any]])
    assert_type(counter.items.remote(2), ObjectRefGenerator[int])
    counter.declared.remote("a")  # type: ignore[call-overload]
    counter.declared.remote()  # type: ignore[call-overload]
    counter.unknown.remote()  # type: ignore[union-attr]
    troupe.kill(counter)


# ---- launches


@distributed(processes=4, timeout=60)
def train(epochs: int, rate: float = 0.1) -> dict[str, float]:
    return {"loss": epochs * rate}


@ray_launch(processes=2)
def drive(name: str) -> str:
    return name


def evaluate(epoch: int) -> float:
    return float(epoch)


def launches() -> None:
    assert_type(train(3), dict[str, float])
    assert_type(train.distributed(epochs=3), list[dict[str, float]])
    handle = train.submit(3, rate=0.2)
    assert_type(handle, LaunchHandle[dict[str, float]])
    assert_type(handle.result(timeout=5), list[dict[str, float]])
    assert_type(train.options(processes=8, detach=True).submit(3), LaunchHandle[dict[str, float]])
    assert_type(drive("a"), str)
    assert_type(drive.distributed("a"), list[str | None])
    assert_type(distributed(evaluate, processes=2).distributed(1), list[float])
    assert_type(attach("7f3a").result(), list[Any])
    assert_type(submit_command(["train.py"], processes=2), LaunchHandle[None])
    assert_type(troupe.launch.current().rank, int)
    assert_type(troupe.launch.current().run(evaluate, 1), list[float])
    assert_type(troupe.launch.current().run(evaluate, 1, timeout=5), list[float])
    train.distributed(epoch=3)  # type: ignore[call-arg]
    train.submit("3")  # type: ignore[arg-type]
    train.options(process=8)  # type: ignore[call-arg]
    distributed(evaluate, processes="2")  # type: ignore[call-overload]
    troupe.launch.unknown  # type: ignore[attr-defined]
    troupe.unknown  # type: ignore[attr-defined]
