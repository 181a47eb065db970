"""troupe.util.collective: actors that exchange tensors, over Gloo and over Troupe's own backend.

Method: real actors, each a rank; what every rank has afterwards is looked at. NCCL needs a GPU and
is not run here.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home

import troupe
from troupe import exceptions
from troupe.util import collective

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
cloudpickle.register_pickle_by_value(sys.modules[__name__])

TIMEOUT_S = 240.0
"""Of a call: each member imports torch first, all at once."""
GLOO_TIMEOUT_MS = 180_000


@troupe.remote(num_cpus=0)
class Member:
    """A rank."""

    def init(self, world_size: int, rank: int, **options: Any) -> tuple[int, int]:
        collective.init_collective_group(
            world_size, rank, **{"backend": "gloo", "gloo_timeout": GLOO_TIMEOUT_MS, **options}
        )
        name = options.get("group_name", "default")
        return collective.get_rank(name), collective.get_collective_group_size(name)

    def pid(self) -> int:
        return os.getpid()

    def info(self, name: str) -> tuple:
        return (
            collective.is_group_initialized(name),
            collective.get_rank(name),
            collective.get_collective_group_size(name),
        )

    def allreduce(self, value: Any, name: str = "default", op: str = "SUM") -> Any:
        collective.allreduce(value, name, collective.ReduceOp[op])
        return value

    def keep(self, value: Any) -> None:
        self.kept = value

    def give(self) -> Any:
        return self.kept.copy()

    def allreduce_kept(self, name: str) -> None:
        collective.allreduce(self.kept, name)

    def allreduce_own(self, name: str) -> None:
        mine = np.ones(4)
        mine.flags.writeable = False
        collective.allreduce(mine, name)

    def columns(self) -> Any:
        """Return the columns of a tensor that is not contiguous, and of the elements beside it."""
        whole = torch.arange(6.0).reshape(2, 3)
        collective.allreduce(whole[:, 1])
        return whole.tolist()

    def all_kinds(self, size: int) -> dict[str, Any]:
        rank = collective.get_rank()
        mine = np.full(2, rank + 1.0)
        given = mine.copy()
        given.flags.writeable = False  # arrays that are only read may be read-only
        made: dict[str, Any] = {}
        made["reduce"] = mine.copy()
        collective.reduce(made["reduce"], dst_rank=1)
        made["broadcast"] = mine.copy()
        collective.broadcast(made["broadcast"], src_rank=2)
        made["allgather"] = [np.zeros(2) for _ in range(size)]
        collective.allgather(made["allgather"], given)
        made["reducescatter"] = np.zeros(1)
        collective.reducescatter(
            made["reducescatter"], [np.full(1, 10.0 * i + rank) for i in range(size)]
        )
        made["ring"] = np.zeros(2)
        if rank % 2 == 0:
            collective.send(given, (rank + 1) % size)
            collective.recv(made["ring"], (rank - 1) % size)
        else:
            collective.recv(made["ring"], (rank - 1) % size)
            collective.send(mine, (rank + 1) % size)
        collective.barrier()
        return made

    def destroy(self, name: str = "default") -> None:
        collective.destroy_collective_group(name)


def members(count: int) -> list[Any]:
    return [Member.remote() for _ in range(count)]


def joined(count: int, **options: Any) -> list[Any]:
    actors = members(count)
    made = troupe.get(
        [each.init.remote(count, rank, **options) for rank, each in enumerate(actors)],
        timeout=TIMEOUT_S,
    )
    assert made == [(rank, count) for rank in range(count)]
    return actors


@pytest.mark.parametrize("backend", ["gloo", "troupe"])
def test_every_operation(idle: Home, backend: str) -> None:
    actors = joined(4, backend=backend)
    sums = troupe.get(
        [each.allreduce.remote(np.full(3, rank + 1.0)) for rank, each in enumerate(actors)],
        timeout=TIMEOUT_S,
    )
    assert [each.tolist() for each in sums] == [[10.0] * 3] * 4
    for op, wanted in (("PRODUCT", 24), ("MIN", 1), ("MAX", 4)):
        made = troupe.get(
            [
                each.allreduce.remote(torch.tensor([rank + 1]), op=op)
                for rank, each in enumerate(actors)
            ],
            timeout=TIMEOUT_S,
        )
        assert [each.item() for each in made] == [wanted] * 4
    made = troupe.get([each.all_kinds.remote(4) for each in actors], timeout=TIMEOUT_S)
    assert made[1]["reduce"].tolist() == [10.0, 10.0]
    for rank, each in enumerate(made):
        assert each["broadcast"].tolist() == [3.0, 3.0]
        assert [part.tolist() for part in each["allgather"]] == [[i + 1.0] * 2 for i in range(4)]
        assert each["reducescatter"].tolist() == [40.0 * rank + 6]
        assert each["ring"].tolist() == [(rank - 1) % 4 + 1.0] * 2
    for each in troupe.get([each.columns.remote() for each in actors], timeout=TIMEOUT_S):
        assert each == [[0.0, 4.0, 2.0], [3.0, 16.0, 5.0]]


def test_a_group_made_from_outside_and_several_groups_of_one_process(idle: Home) -> None:
    actors = members(3)
    collective.create_collective_group(actors, 3, [2, 0, 1], backend="gloo", group_name="all")
    collective.create_collective_group(actors[:2], 2, [0, 1], backend="gloo", group_name="pair")
    assert troupe.get([each.info.remote("all") for each in actors], timeout=TIMEOUT_S) == [
        (True, 2, 3),
        (True, 0, 3),
        (True, 1, 3),
    ]
    assert troupe.get(actors[2].info.remote("pair"), timeout=TIMEOUT_S) == (False, -1, -1)
    both = [each.allreduce.remote(np.ones(1), "pair") for each in actors[:2]]
    assert [each.item() for each in troupe.get(both, timeout=TIMEOUT_S)] == [2.0, 2.0]
    every = [each.allreduce.remote(np.ones(1), "all") for each in actors]
    assert [each.item() for each in troupe.get(every, timeout=TIMEOUT_S)] == [3.0] * 3


@pytest.mark.parametrize("backend", ["gloo", "troupe"])
def test_a_group_is_made_anew_after_its_end_and_after_a_members_death(
    idle: Home, backend: str
) -> None:
    actors = joined(2, group_name="again", backend=backend)
    troupe.get([each.destroy.remote("again") for each in actors], timeout=TIMEOUT_S)
    troupe.get(
        [
            each.init.remote(2, rank, group_name="again", backend=backend)
            for rank, each in enumerate(actors)
        ],
        timeout=TIMEOUT_S,
    )
    os.kill(troupe.get(actors[1].pid.remote(), timeout=TIMEOUT_S), signal.SIGKILL)
    with pytest.raises(
        RuntimeError,
        match=rf"allreduce of the collective group 'again' failed at rank 0 of 2 \({backend}\)",
    ) as caught:
        troupe.get(actors[0].allreduce.remote(np.ones(1), "again"), timeout=TIMEOUT_S)
    assert "destroy the group and make it anew" in str(caught.value)
    troupe.get(actors[0].destroy.remote("again"), timeout=TIMEOUT_S)
    pair = [actors[0], Member.remote()]
    troupe.get(
        [
            each.init.remote(2, rank, group_name="again", backend=backend)
            for rank, each in enumerate(pair)
        ],
        timeout=TIMEOUT_S,
    )
    sums = troupe.get(
        [each.allreduce.remote(np.ones(1), "again") for each in pair], timeout=TIMEOUT_S
    )
    assert [each.item() for each in sums] == [2.0, 2.0]


def test_who_does_not_come_is_named(idle: Home) -> None:
    actors = members(2)
    late = [
        each.init.remote(4, rank, group_name="late", gloo_timeout=300)
        for rank, each in enumerate(actors)
    ]
    for each in late:
        with pytest.raises(
            TimeoutError,
            match=r"the collective group 'late': ranks \[.*3\] of 4 had not joined 0.3 s after rank",
        ):
            troupe.get(each, timeout=TIMEOUT_S)
    troupe.get(
        [each.init.remote(2, rank, group_name="late") for rank, each in enumerate(actors)],
        timeout=TIMEOUT_S,
    )


def test_what_does_not_fit_is_refused(idle: Home) -> None:
    first, second = members(2)
    waits = first.init.remote(2, 0, group_name="wrong", gloo_timeout=3000)
    late = second.init.remote(2, 0, group_name="wrong", gloo_timeout=3000)
    done, _ = troupe.wait(
        [waits, late], timeout=TIMEOUT_S
    )  # the second is refused, the first one waits
    with pytest.raises(
        ValueError, match="the collective group 'wrong': another process has joined as rank 0"
    ):
        troupe.get(done[0], timeout=TIMEOUT_S)
    again = (second if done[0] is late else first).init.remote(
        3, 1, group_name="wrong", gloo_timeout=3000
    )
    with pytest.raises(
        ValueError, match="rank 0 said world_size=2 and backend='gloo', rank 1 says 3 and 'gloo'"
    ):
        troupe.get(again, timeout=TIMEOUT_S)
    with pytest.raises(TimeoutError, match=r"ranks \[1\] of 2 had not joined 3 s after rank 0"):
        troupe.get(late if done[0] is waits else waits, timeout=TIMEOUT_S)
    for arguments, words in (
        ((0, 0), "world_size must be"),
        ((2, 2), "a rank of 2 is a whole number from 0 to 1, not 2"),
        ((2, -1), "not -1"),
    ):
        with pytest.raises(ValueError, match=words):
            collective.init_collective_group(*arguments, backend="gloo")
    with pytest.raises(
        ValueError, match="backend must be 'nccl', 'gloo' or 'troupe', or one that .*, not 'mpi'"
    ):
        collective.init_collective_group(1, 0, backend="mpi")
    if not collective.nccl_available():
        with pytest.raises(
            RuntimeError,
            match="backend 'nccl' cannot be used here: it needs torch with CUDA and a GPU",
        ):
            collective.init_collective_group(1, 0)
    with pytest.raises(ValueError, match="each of 2 ranks needs one actor: there are 1 actors"):
        collective.create_collective_group([first], 2, [0], backend="gloo")
    with pytest.raises(RuntimeError, match="this process is not in the collective group 'nowhere'"):
        collective.allreduce(np.ones(1), "nowhere")
    assert collective.get_rank("nowhere") == -1 and not collective.is_group_initialized("nowhere")


def test_arrays_that_came_as_arguments_are_changed_in_place_and_nobody_elses_are(
    idle: Home,
) -> None:
    actors = joined(2, group_name="in place")
    reader = Member.remote()
    for count in (
        1_000,
        20_000,
        300_000,
    ):  # in the call's frame, and in memory that all processes share
        ref = troupe.put(np.full(count, 1.0))
        kept = troupe.get(ref)
        troupe.get([reader.keep.remote(ref), actors[0].keep.remote(ref)], timeout=TIMEOUT_S)
        for _ in range(2):
            sums = troupe.get(
                [each.allreduce.remote(ref, "in place") for each in actors], timeout=TIMEOUT_S
            )
            assert [(each == 2).all() for each in sums] == [True] * 2
        for other in (
            kept,
            troupe.get(ref),
            *troupe.get([reader.give.remote(), actors[0].give.remote()], timeout=TIMEOUT_S),
        ):
            assert (other == 1).all()


def test_tensors_that_cannot_be_changed_are_refused(idle: Home) -> None:
    only = Member.remote()
    troupe.get(only.pid.remote(), timeout=TIMEOUT_S)
    troupe.get(
        only.keep.remote(np.ones(200_000)), timeout=TIMEOUT_S
    )  # shared with its owner, this process
    troupe.get(only.init.remote(1, 0, group_name="one"), timeout=TIMEOUT_S)
    refused = "the array is read-only: .*\n.*pass array.copy"
    for call, words in (
        (only.allreduce_kept.remote("one"), refused),
        (only.allreduce_own.remote("one"), refused),
        (only.allreduce.remote([1.0], "one"), "a numpy array or a torch tensor, not list"),
    ):
        with pytest.raises(exceptions.TaskError, match=words):
            troupe.get(call, timeout=TIMEOUT_S)
    with pytest.raises(RuntimeError, match="is in the collective group 'one' already"):
        troupe.get(only.init.remote(1, 0, group_name="one"), timeout=TIMEOUT_S)
