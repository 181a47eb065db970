"""Graphs of calls, as Ray's `ray.dag`: described by `bind`, run by `execute`, with real actors and
tasks."""

from __future__ import annotations

import asyncio
import os
import pickle

import pytest

import troupe
from troupe.dag import InputNode, MultiOutputNode


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with troupe.init("local", num_cpus=4, log_to_driver=False) as context:
        yield context


@troupe.remote
def add(left: int, right: int) -> int:
    return left + right


@troupe.remote
def total(numbers: dict) -> int:
    return sum(troupe.get(list(numbers["all"])))


@troupe.remote(num_cpus=0)
class Counter:
    def __init__(self, start: int = 0) -> None:
        self.value = start

    def inc(self, by: int = 1) -> int:
        self.value += by
        return self.value

    def get(self) -> tuple[int, int]:
        return self.value, os.getpid()

    def split(self, text: str) -> tuple[str, str]:
        return text[:1], text[1:]

    def fail(self, _: object) -> None:
        raise KeyError("lost")


def test_a_graph_of_tasks_runs_each_step_once() -> None:
    counter = Counter.remote()
    one = counter.inc.bind()  # two take it
    graph = add.bind(add.bind(one, one), add.options(num_cpus=2).bind(1, right=one))
    assert troupe.get(graph.execute()) == 4
    assert troupe.get(graph.execute()) == (2 + 2) + (1 + 2)


def test_values_of_several_names_and_positions() -> None:
    with InputNode() as inp:
        graph = add.bind(inp[0], inp.other)
    assert troupe.get(graph.execute(1, other=2)) == 3
    with InputNode() as inp:
        whole = add.bind(inp, 1)
        part = add.bind(inp["a"], inp["b"])
    assert troupe.get(whole.execute(4)) == 5
    assert troupe.get(part.execute({"a": 1, "b": 7})) == 8
    with pytest.raises(TypeError, match="takes one value.*given 2 values and x"):
        whole.execute(1, 2, x=3)
    with pytest.raises(TypeError, match="takes 'other' of its input; execute.. was given 2 values"):
        graph.execute(1, 2)
    with pytest.raises(TypeError, match="has no InputNode"):
        add.bind(1, 2).execute(3)


def test_nodes_inside_of_containers_arrive_as_refs() -> None:
    assert troupe.get(total.bind({"all": (add.bind(1, 2), add.bind(3, 4))}).execute()) == 10


def test_an_actor_of_the_graph_is_made_for_each_execution_and_called_in_the_order_of_binding() -> (
    None
):
    counter = Counter.options(max_restarts=1).bind(add.bind(5, 5))
    counter.inc.bind(2)  # nobody takes what it returns: it runs all the same, first
    graph = counter.get.bind()
    (first, its), (second, other) = troupe.get([graph.execute(), graph.execute()])
    assert (first, second) == (12, 12) and its != other
    assert isinstance(counter.execute(), troupe.actor.ActorHandle)
    with pytest.raises(
        AttributeError, match="Counter has no method 'nothing'; it has fail, get, inc, split"
    ):
        counter.nothing  # noqa: B018


def test_several_outputs_and_several_results() -> None:
    counter = Counter.remote()
    with InputNode() as inp:
        head, tail = counter.split.options(num_returns=2).bind(inp)
        graph = MultiOutputNode([tail, head, inp])
    refs = graph.execute("abc")
    assert troupe.get(refs[:2]) == ["bc", "a"] and refs[2] == "abc"
    later = Counter.bind()
    _, rest = later.split.options(num_returns=2).bind("xyz")
    assert troupe.get(rest.execute()) == "yz"
    with pytest.raises(ValueError, match="a list of nodes, at least one"):
        MultiOutputNode([])


def test_a_compiled_graph_runs_as_often_as_one_likes_until_it_is_torn_down() -> None:
    counters = [Counter.remote() for _ in range(2)]
    with InputNode() as inp:
        graph = MultiOutputNode([each.inc.bind(inp) for each in counters])
    compiled = graph.experimental_compile(_submit_timeout=10)
    refs = [compiled.execute(1) for _ in range(100)]
    assert troupe.get(refs[-1]) == [100, 100] and troupe.get(refs[0]) == [1, 1]

    async def waits() -> list[int]:
        return [await each for each in await compiled.execute_async(5)]

    assert asyncio.run(waits()) == [105, 105]
    compiled.teardown()
    compiled.teardown()
    with pytest.raises(RuntimeError, match="was torn down"):
        compiled.execute(1)
    assert troupe.get(counters[0].inc.remote()) == 106
    with InputNode() as inp:
        chain = (
            counters[1]
            .fail.bind(counters[0].inc.bind(inp[0]))
            .experimental_compile(enable_asyncio=True)
        )
    with pytest.raises(KeyError, match="lost"):
        troupe.get(chain.execute(3))
    chain.teardown(kill_actors=True)
    with pytest.raises(troupe.exceptions.ActorDiedError):
        troupe.get(counters[0].inc.remote())


def test_what_cannot_be_compiled_is_said() -> None:
    counter = Counter.remote()
    with InputNode() as inp:
        for graph, why in (
            (add.bind(inp, 1), "not of <task add"),
            (Counter.bind(inp).get.bind(), "not of <actor of Counter"),
            (counter.inc.bind(1), "has an InputNode"),
            (MultiOutputNode([inp]), "calls at least one method"),
        ):
            with pytest.raises(ValueError, match=why):
                graph.experimental_compile()
        with pytest.raises(TypeError, match="no parameter 'fast'"):
            counter.inc.bind(inp).experimental_compile(fast=True)


def test_a_node_does_not_travel_and_is_not_called() -> None:
    node = add.bind(1, 2)
    with pytest.raises(
        TypeError, match="cannot be sent: a graph is executed by the process that bound it"
    ):
        pickle.dumps(node)
    with pytest.raises(TypeError, match="cannot be sent"):
        add.remote(node, 1)
    with pytest.raises(TypeError, match="run by execute"):
        node()


def test_a_long_chain_is_no_recursion() -> None:
    counter = Counter.remote()
    node = counter.inc.bind(0)
    for _ in range(3000):
        node = counter.inc.bind(node)
    assert troupe.get(node.execute()) == 0
