"""Takers of tensors that stay in an actor: tasks, constructors, futures, coroutines, graphs,
handles by name, many at once.

Method: actors of a real cluster and this process as their driver.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import Home

import troupe
from troupe.dag import InputNode

torch = pytest.importorskip("torch")
from makers import LIMIT_S, Maker, let_go

LARGE = 1_000_000


@pytest.fixture
def maker(idle: Home) -> Any:
    return troupe.remote(Maker).remote()


@troupe.remote
def total(value: Any, refs: Any = ()) -> float:
    return float(value.sum()) + sum(float(each.sum()) for each in troupe.get(list(refs)))


@troupe.remote
class Given:
    def __init__(self, value: Any, refs: Any) -> None:
        self.total = float(value.sum()) + float(troupe.get(refs[0]).sum())

    def get(self) -> float:
        return self.total


def test_tasks_and_constructors(maker: Any) -> None:
    ref = maker.make.remote(LARGE)
    assert troupe.get(total.remote(ref), timeout=LIMIT_S) == LARGE
    assert troupe.get(total.remote(ref, [ref]), timeout=LIMIT_S) == 2 * LARGE
    given = Given.remote(ref, [ref])
    assert troupe.get(given.get.remote(), timeout=LIMIT_S) == 2 * LARGE
    troupe.kill(given)
    del ref
    let_go(maker)


def test_futures_and_coroutines_of_the_driver(maker: Any) -> None:
    ref = maker.make.remote(LARGE)
    assert float(ref.future().result(timeout=LIMIT_S).sum()) == LARGE

    async def awaited() -> list[float]:
        return [
            float(each.sum())
            for each in await asyncio.gather(
                ref, maker.make.remote(5), asyncio.wrap_future(ref.future())
            )
        ]

    assert asyncio.run(asyncio.wait_for(awaited(), LIMIT_S)) == [LARGE, 5, LARGE]
    futures = [
        maker.make.remote(size).future() for size in range(1, 50)
    ]  # completed by a thread of the runtime
    assert [float(each.result(timeout=LIMIT_S).sum()) for each in futures] == list(range(1, 50))
    ready, _ = troupe.wait([ref], timeout=LIMIT_S)
    assert [float(each.sum()) for each in troupe.get([ref, *ready], timeout=LIMIT_S)] == [
        LARGE,
        LARGE,
    ]


def test_actors_take_each_others_at_once(maker: Any) -> None:
    other = troupe.remote(Maker).remote()
    mine, theirs = ([each.make.remote(100_000) for _ in range(20)] for each in (maker, other))
    sums = [
        call
        for pair in zip(mine, theirs)
        for call in (other.total.remote(pair[0]), maker.total.remote(pair[1]))
    ]
    assert troupe.get(sums, timeout=LIMIT_S) == [100_000.0] * 40
    del mine, theirs, sums
    let_go(maker)
    let_go(other)


def test_a_pipeline_of_actors_passes_what_came_on(maker: Any) -> None:
    others = [troupe.remote(Maker).remote() for _ in range(2)]
    ref = others[1].give.remote(others[0].give.remote(maker.make.remote(LARGE)))
    assert float(troupe.get(ref, timeout=LIMIT_S).sum()) == LARGE
    assert [troupe.get(each.kept.remote(), timeout=LIMIT_S)[0] for each in (maker, *others)] == [
        0,
        0,
        1,
    ]  # each let go of what was taken


def test_calls_that_may_be_made_again_and_handles_by_name(idle: Home) -> None:
    named = troupe.remote(max_task_retries=2, max_restarts=1, name="maker")(Maker).remote()
    ref = named.make.remote(5)
    assert troupe.get(named.is_own.remote(ref), timeout=LIMIT_S)
    assert float(troupe.get(ref, timeout=LIMIT_S).sum()) == 5
    assert [
        troupe.get(named.is_own.remote(each), timeout=LIMIT_S) for each in named.each.remote(2)
    ] == [False, False]
    first, second = named.two.remote()
    assert troupe.get(named.total.remote(first), timeout=LIMIT_S) == 2 and troupe.get(
        second, timeout=LIMIT_S
    )["it"].shape == (3,)
    del ref, first, second
    let_go(named)
    found = troupe.get_actor("maker")
    assert troupe.get(found.is_own.remote(found.make.remote(5)), timeout=LIMIT_S)


def test_nodes_of_a_graph(maker: Any) -> None:
    with InputNode() as size:
        made = maker.plain.bind(size).with_tensor_transport("auto")
        graph = maker.is_own.bind(made)
    assert troupe.get(graph.execute(5), timeout=LIMIT_S)
    with InputNode() as size:
        graph = maker.is_own.bind(maker.plain.bind(size))
    assert not troupe.get(graph.execute(5), timeout=LIMIT_S)


def test_gradients_and_inference_tensors(maker: Any) -> None:
    weight = torch.ones(3, requires_grad=True)
    got = troupe.get(
        maker.give.remote(
            [weight * 2, torch.ones(2).to(torch.complex64).conj(), torch.ones(4, 3).t()]
        ),
        timeout=LIMIT_S,
    )
    assert got[0].requires_grad and got[0].is_leaf and got[0].tolist() == [2, 2, 2]
    assert torch.equal(got[1], torch.ones(2, dtype=torch.complex64)) and got[2].shape == (3, 4)
    with torch.inference_mode():
        unguarded = torch.ones(3)
    assert troupe.get(maker.give.remote(unguarded), timeout=LIMIT_S).tolist() == [1, 1, 1]
