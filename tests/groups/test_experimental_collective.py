"""troupe.experimental.collective: groups made from outside, and collectives in graphs.

Method: real actors over Gloo; what each has afterwards is looked at.
"""

from __future__ import annotations

import sys
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home

import troupe
from troupe import dag
from troupe.experimental.collective import (
    allgather,
    allreduce,
    create_collective_group,
    destroy_all_collective_groups,
    destroy_collective_group,
    get_collective_groups,
    reducescatter,
)
from troupe.util import collective

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@troupe.remote(num_cpus=0)
class Worker:
    """A rank."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def gradient(self, scale: float) -> Any:
        return torch.arange(4.0) * scale + self.rank

    def array(self, scale: float) -> Any:
        return np.full((2, 2), scale + self.rank)

    def same(self, value: Any) -> Any:
        return value

    def reduced(self, group: str) -> Any:
        mine = np.full(2, self.rank + 1.0)
        allreduce(mine, group)
        return mine


@pytest.fixture
def workers(idle: Home) -> Any:
    yield [Worker.remote(rank) for rank in range(2)]
    destroy_all_collective_groups()


def test_a_group_is_made_found_used_and_destroyed(workers: list[Any]) -> None:
    group = create_collective_group(workers, backend="gloo", name="pair")
    assert (group.name, group.backend, group.actors) == ("pair", "gloo", workers)
    assert [group.get_rank(each) for each in (*workers, Worker.remote(9))] == [0, 1, -1]
    assert (
        get_collective_groups(workers[:1])
        == get_collective_groups(workers, "torch_gloo")
        == [group]
    )
    assert get_collective_groups(workers, "nccl") == []
    for reduced in troupe.get([each.reduced.remote("pair") for each in workers]):
        np.testing.assert_array_equal(reduced, [3.0, 3.0])
    with pytest.raises(ValueError, match="a group named 'pair' exists"):
        create_collective_group(workers, "gloo", "pair")
    with pytest.raises(
        RuntimeError,
        match="is in <group 'pair' of 2 actors .gloo.>, and an actor is in one group of each "
        "backend",
    ):
        create_collective_group([workers[1], Worker.remote(9)], "gloo", "other")
    destroy_collective_group(group)
    assert get_collective_groups([]) == []
    with pytest.raises(ValueError, match="No group with name pair found"):
        destroy_collective_group("pair")
    with pytest.raises(RuntimeError, match="not in the collective group 'pair'"):
        troupe.get(workers[0].reduced.remote("pair"))


def test_destroying_a_group_of_which_an_actor_has_ended(workers: list[Any]) -> None:
    group = create_collective_group(workers, "gloo")
    troupe.kill(workers[0])
    destroy_collective_group(group)
    again = create_collective_group([workers[1], Worker.remote(0)], "gloo", group.name)
    assert again.get_rank(workers[1]) == 0


@pytest.mark.parametrize("compiled", [False, True])
def test_collectives_are_steps_of_a_graph(workers: list[Any], compiled: bool) -> None:
    with dag.InputNode() as inp:
        tensors = [worker.gradient.bind(inp) for worker in workers]
        summed = allreduce.bind(tensors, transport="gloo")
        most = allreduce.bind(
            [worker.array.bind(inp) for worker in workers], collective.ReduceOp.MAX, "gloo"
        )
        gathered = allgather.bind(tensors, transport="gloo")
        shares = reducescatter.bind(tensors, transport="gloo")
        passed_on = [worker.same.bind(each) for worker, each in zip(workers, summed)]
        graph = dag.MultiOutputNode([*summed, *most, *gathered, *shares, *passed_on, *tensors])
    run = graph.experimental_compile() if compiled else graph
    for scale in (1.0, 2.0):
        base = torch.arange(4.0) * scale
        total = 2 * base + 1
        found = troupe.get(run.execute(scale))
        wanted = [
            total,
            total,
            np.full((2, 2), scale + 1),
            np.full((2, 2), scale + 1),
            torch.cat([base, base + 1]),
            torch.cat([base, base + 1]),
            total[:2],
            total[2:],
            total,
            total,
            base,
            base + 1,
        ]
        for have, want in zip(found, wanted, strict=True):
            assert type(have) is type(want)
            np.testing.assert_allclose(have, want)
    assert len(get_collective_groups(workers)) == 1, "all of them share a group"


def test_allreduce_of_several_tensors_of_each_actor(workers: list[Any]) -> None:
    with dag.InputNode() as inp:
        rows = [
            [worker.gradient.bind(inp) for worker in workers],
            [worker.array.bind(inp) for worker in workers],
        ]
        each = allreduce.bind(rows, transport="gloo")
        graph = dag.MultiOutputNode([node for nodes in each for node in nodes])
    first = troupe.get(graph.execute(1.0))
    for have, want in zip(
        first, 2 * [2 * torch.arange(4.0) + 1, np.full((2, 2), 3.0)], strict=True
    ):
        np.testing.assert_allclose(have, want)


def test_a_group_is_the_transport_of_a_graph(workers: list[Any]) -> None:
    group = create_collective_group(workers, "gloo")
    with dag.InputNode() as inp:
        tensors = [worker.gradient.bind(inp) for worker in workers]
        graph = dag.MultiOutputNode(allreduce.bind(tensors, transport=group))
    np.testing.assert_allclose(troupe.get(graph.execute(1.0))[0], 2 * torch.arange(4.0) + 1)
    other = create_collective_group([Worker.remote(5)], "gloo")
    with pytest.raises(ValueError, match="is not of the actors whose nodes are bound"):
        allreduce.bind(tensors, transport=other)


def test_what_cannot_be_is_refused_with_words(workers: list[Any]) -> None:
    with pytest.raises(ValueError, match="All actors must be unique"):
        create_collective_group([workers[0], workers[0]], "gloo")
    with pytest.raises(ValueError, match="at least one"):
        create_collective_group([], "gloo")
    with pytest.raises(ValueError, match="backend must be"):
        create_collective_group(workers, "mpi")
    nodes = [worker.gradient.bind(1.0) for worker in workers]
    for given, why in (
        ([], "takes calls of actors"),
        ([workers[0]], "takes calls of actors"),
        ([nodes[0], nodes[0]], "one call of each actor"),
        ([nodes, nodes[::-1]], "same order"),
    ):
        with pytest.raises(ValueError, match=why):
            allreduce.bind(given, transport="gloo")
    with pytest.raises(ValueError, match="Unexpected operation"):
        allreduce.bind(nodes, "sum")
    with pytest.raises(ValueError, match="transport is 'nccl', 'gloo'"):
        allreduce.bind(nodes, transport="pigeon")
    with pytest.raises(ValueError, match="for allreduce, not for allgather"):
        allgather.bind([nodes])
    odd = [worker.gradient.bind(1.0) for worker in [*workers, Worker.remote(2)]]
    with pytest.raises(ValueError, match="a first axis that 3 divides"):
        troupe.get(dag.MultiOutputNode(reducescatter.bind(odd, transport="gloo")).execute())


class Mailbox(collective.BaseGroup):
    """A backend of the user's own: it meets its fellows in an actor."""

    def __init__(self, world_size: int, rank: int, group_name: str) -> None:
        super().__init__(world_size, rank, group_name)
        self.box = Box.options(name=f"box of {group_name}", get_if_exists=True).remote(world_size)

    @classmethod
    def backend(cls) -> str:
        return "MAILBOX"

    @classmethod
    def check_backend_availability(cls) -> bool:
        return True

    def allreduce(self, tensor: Any, allreduce_options: Any = None) -> None:
        tensor[:] = troupe.get(
            self.box.exchange.remote(self.rank, tensor, allreduce_options.reduceOp.name)
        )

    def _not_here(self, *_: Any) -> None:
        raise NotImplementedError("the mailbox sums, no more")

    barrier = reduce = allgather = broadcast = reducescatter = send = recv = _not_here


@troupe.remote(num_cpus=0)
class Box:
    """A box of values in which the ranks meet."""

    def __init__(self, world_size: int) -> None:
        import asyncio

        self.given: dict[int, Any] = {}
        self.world_size, self.all = world_size, asyncio.Event()

    async def exchange(self, rank: int, tensor: Any, op: str) -> Any:
        assert op == "SUM"
        self.given[rank] = tensor
        if len(self.given) == self.world_size:
            self.all.set()
        await self.all.wait()
        return sum(self.given.values())


def _register(_instance: Any) -> None:
    collective.register_collective_backend("mailbox", Mailbox)


def test_a_backend_of_ones_own(workers: list[Any]) -> None:
    with pytest.raises(TypeError, match="not a subclass of BaseGroup"):
        collective.register_collective_backend("mailbox", Worker)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Backend GLOO already registered"):
        collective.register_collective_backend("gloo", Mailbox)
    with pytest.raises(ValueError, match="register_collective_backend"):
        create_collective_group(workers, "mailbox")
    _register(None)
    with pytest.raises(ValueError, match="register_collective_backend"):
        create_collective_group(workers, "mailbox")  # the actors do not know it
    troupe.get([each.__ray_call__.remote(_register) for each in workers])
    group = create_collective_group(workers, collective.Backend.MAILBOX)
    assert group.backend == "mailbox"
    for reduced in troupe.get([each.reduced.remote(group.name) for each in workers]):
        np.testing.assert_array_equal(reduced, [3.0, 3.0])
