"""A rank that has returned while others wait for it fails their launch at once, by name; and none
that others do not wait for does.

Method: three ranks meet, rank 1 ends in each of the ways that a rank ends well, and the others go
on: to an operation that it was to take part in, or to what needs it no more. The same of parts
whose processes go on: of `current().run`, and of workers of troupe.train.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home

from troupe import exceptions
from troupe._process.returned import returned_verdict
from troupe._process.torch_backend import build
from troupe.launch import current, distributed, ray_launch, submit_command
from troupe.train import RunConfig, ScalingConfig, WorkerGroupError
from troupe.train.torch import TorchConfig, TorchTrainer

LIMIT_S = 180
LONGER_S = 8.0  # than it takes to ask a rank that has returned, several times

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def library() -> Path:
    """Built before any test counts its time."""
    return build.ensure()


def _meets(backend: str) -> tuple[int, Any, Any]:
    import torch
    import torch.distributed as dist

    dist.init_process_group(backend)
    ones = torch.ones(10)
    for _ in range(3):
        dist.all_reduce(ones)
    return dist.get_rank(), ones, dist


def _returns(backend: str) -> None:
    rank, ones, dist = _meets(backend)
    if rank != 1:
        dist.all_reduce(ones)


def _exits(backend: str) -> None:
    rank, ones, dist = _meets(backend)
    if rank == 1:
        sys.exit(0)
    for each in [dist.all_reduce(ones.clone(), async_op=True) for _ in range(2)]:
        each.wait()


def _catches(backend: str) -> None:
    rank, ones, dist = _meets(backend)
    try:
        if rank == 1:
            raise ValueError("out of data")
        dist.barrier()
    except ValueError:
        pass


def _differentiates(backend: str) -> None:
    import torch

    rank, _, _ = _meets(backend)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    if rank != 1:
        net(torch.ones(2, 4)).sum().backward()


def _in_a_pair(backend: str) -> None:
    rank, ones, dist = _meets(backend)
    pair, others = dist.new_group([0, 1]), dist.new_group([0, 2])
    if rank != 1:
        dist.all_reduce(ones, group=others)
    if rank == 0:
        dist.all_reduce(ones, group=pair)


def _receives(backend: str) -> None:
    rank, ones, dist = _meets(backend)
    if rank == 1:
        dist.send(ones, 0)
    if rank == 0:
        dist.recv(ones, 1)
        dist.irecv(ones, 1).wait()


def _never_comes(backend: str) -> None:
    if current().rank != 1:
        _meets(backend)


def _receives_on_a_gpu(backend: str) -> None:
    rank, ones, dist = _meets(backend)
    if rank == 1:
        dist.send(ones, 0)
    if rank == 0:
        dist.recv(ones, 1)
        dist.irecv(ones, 1)
        record = {
            "process_group": [dist.group.WORLD.group_name, "default_pg"],
            "is_p2p": True,
            "collective_seq_id": 3,
            "profiling_name": "nccl:recv 0<-1",
            "thread_id": str(threading.get_ident()),
        }
        records = [
            {**record, "p2p_seq_id": 1, "retired": True},
            {**record, "p2p_seq_id": 2, "retired": False},
        ]
        sys.modules["torch._C._distributed_c10d"]._dump_fr_trace_json = lambda *_: json.dumps(
            {"entries": records}
        )
        threading.Event().wait()  # stands for a thread that waits for its GPU


def _leaves_a_group_half_made(backend: str) -> None:
    rank, ones, dist = _meets(backend)
    if rank == 1:
        threading.Event().wait(LONGER_S)  # the others hold their connections to the store meanwhile
    else:
        dist.new_group()


@pytest.mark.parametrize(
    ("program", "backend", "said"),
    [
        (
            _returns,
            "gloo",
            "rank 1 returned after 3 operations; ranks 0, 2 wait for it in operation 4 "
            "(all_reduce) of process group 0",
        ),
        (
            _returns,
            "troupe",
            "rank 1 returned after 3 operations; ranks 0, 2 wait for it in operation 4 "
            "(all_reduce) of process group 0",
        ),
        (
            _exits,
            "gloo",
            "rank 1 returned after 3 operations; ranks 0, 2 wait for it in operation 4 "
            "(all_reduce) of process group 0",
        ),
        (
            _catches,
            "troupe",
            "rank 1 returned after 3 operations; ranks 0, 2 wait for it in operation 4 (barrier) "
            "of process group 0",
        ),
        (_differentiates, "gloo", "ranks 0, 2 wait for it in operation "),
        (
            _in_a_pair,
            "gloo",
            "rank 1 returned after 0 operations; rank 0 waits for it in operation 1 (all_reduce) "
            "of process group 1",
        ),
        (
            _receives,
            "gloo",
            "rank 1 returned after 1 send to rank 0, which waits for it in receive 2 of process "
            "group 0",
        ),
        (
            _receives,
            "troupe",
            "rank 1 returned after 1 send to rank 0, which waits for it in receive 2 of process "
            "group 0",
        ),
        (
            _receives_on_a_gpu,
            "gloo",
            "rank 1 returned after 1 send to rank 0, which waits for it in receive 2 of process "
            "group 0",
        ),
        (
            _never_comes,
            "gloo",
            "rank 1 returned without coming to process group 0, which rank",
        ),  # complete: the ranks that have come by then
        (
            _leaves_a_group_half_made,
            "gloo",
            "rank 1 returned without coming to process group 1, which rank",
        ),
    ],
)
def test_a_returned_rank_that_others_wait_for_fails_the_launch(
    cluster: Home, program: Any, backend: str, said: str
) -> None:
    with pytest.raises(exceptions.LaunchError) as failed:
        distributed(processes=3, remote=True)(program).submit(backend).result(LIMIT_S)
    words = str(failed.value)
    assert failed.value.rank == 1 and said in words.splitlines()[0], words
    assert (
        "waits here:" in words and program.__name__ in words or program in (_exits, _never_comes)
    ), words


def test_a_program_says_so_too(cluster: Home, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
        "for _ in range(3 if dist.get_rank() == 1 else 4): dist.all_reduce(torch.ones(1))\n"
        "if dist.get_rank() == 1: sys.exit(0)\n"
    )
    with pytest.raises(
        exceptions.LaunchError,
        match="rank 1 returned after 3 operations; ranks 0, 2 wait for it in operation 4",
    ):
        submit_command([str(script)], processes=3).result(LIMIT_S)


def _goes_on_alone(backend: str) -> int:
    rank, ones, dist = _meets(backend)
    if rank == 0:
        threading.Event().wait(LONGER_S)
    return rank


def _goes_on_without_it(backend: str) -> int:
    rank, ones, dist = _meets(backend)
    others = dist.new_group([0, 2])
    if rank == 0:
        threading.Event().wait(LONGER_S)
    if rank != 1:
        dist.all_reduce(ones, group=others)
    return rank


def _makes_a_group_without_it(backend: str) -> int:
    rank, ones, dist = _meets(backend)
    if rank == 0:
        threading.Event().wait(LONGER_S)
    if rank != 1:
        dist.all_reduce(ones, group=dist.new_group([0, 2]))
    return rank


def _finishes_what_it_began(backend: str) -> int:
    rank, ones, dist = _meets(backend)
    if rank == 0:
        threading.Event().wait(LONGER_S)
    work = dist.all_reduce(ones, async_op=True)
    if rank != 1:
        work.wait()
    return rank


def _has_a_thread_that_comes(backend: str) -> int:
    rank, ones, dist = _meets(backend)
    if rank == 1:
        threading.Thread(
            target=lambda: (threading.Event().wait(LONGER_S), dist.all_reduce(ones))
        ).start()
    else:
        dist.all_reduce(ones)
    return rank


def test_what_needs_a_returned_rank_no_more_goes_on(cluster: Home) -> None:
    programs = [
        (program, backend)
        for program in (
            _goes_on_alone,
            _goes_on_without_it,
            _makes_a_group_without_it,
            _finishes_what_it_began,
            _has_a_thread_that_comes,
        )
        for backend in ("gloo", "troupe")
    ]
    begun = [
        distributed(processes=3, remote=True)(program).submit(backend)
        for program, backend in programs
    ]
    for handle, (program, backend) in zip(begun, programs, strict=True):
        assert handle.result(LIMIT_S) == [0, 1, 2], (program, backend)


def _part(backend: str) -> None:
    import torch
    import torch.distributed as dist

    group = dist.new_group(backend=backend)
    ones = torch.ones(10)
    for _ in range(3):
        dist.all_reduce(ones, group=group)
    if dist.get_rank() != 1:
        dist.all_reduce(ones, group=group)


def _part_in_making(backend: str) -> None:
    import torch.distributed as dist

    if dist.get_rank() != 1:
        dist.new_group(backend=backend)


def _part_without_it(name: str) -> int:
    import torch
    import torch.distributed as dist

    ones = torch.ones(10)
    if (
        name == "first"
    ):  # rank 1 has begun less, and returns long before the others, which do not need it
        others = dist.new_group([0, 2])
        if dist.get_rank() == 0:
            threading.Event().wait(LONGER_S)
        if dist.get_rank() != 1:
            dist.all_reduce(ones, group=others)
    if name == "second":  # the others wait for it, and it has returned from the first part alone
        if dist.get_rank() == 1:
            threading.Event().wait(LONGER_S)
        dist.all_reduce(ones)
    return dist.get_rank()


@ray_launch(processes=3, cpus_per_rank=0.1, remote=True)
def _drives(part: Any, *given: str) -> list[int]:
    for each in given:
        found = current().run(part, each)
    return found


def test_a_part_waits_for_no_rank_whose_part_has_returned(cluster: Home, tmp_path: Path) -> None:
    healthy = _drives.submit(_part_without_it, "first", "second")
    failing = [_drives.submit(_part, backend) for backend in ("gloo", "troupe")]
    making = [_drives.submit(_part_in_making, backend) for backend in ("gloo", "troupe")]
    trainer = TorchTrainer(
        lambda: _part("gloo"),
        torch_config=TorchConfig(backend="gloo"),
        run_config=RunConfig(name="run", storage_path=tmp_path),
        scaling_config=ScalingConfig(num_workers=3, resources_per_worker={"CPU": 0.1}),
    )
    said = (
        "rank 1 returned after 3 operations; ranks 0, 2 wait for it in operation 4 (all_reduce) "
        "of process group 1"
    )
    with pytest.raises(WorkerGroupError, match=re.escape(said)):
        trainer.fit()
    for handle in failing:
        with pytest.raises(exceptions.LaunchError, match=re.escape(said)):
            handle.result(LIMIT_S)
    for handle in making:
        with pytest.raises(
            exceptions.LaunchError,
            match=re.escape("rank 1 returned without coming to process group 1, which rank"),
        ):
            handle.result(LIMIT_S)
    assert healthy.result(LIMIT_S)[0] == [0, 1, 2]


WORD = {
    "torch_group": "0",
    "key": "0 gloo",
    "kind": "collective",
    "operation": 4,
    "op": "all_reduce",
    "awaited": [1, 2],
}


@pytest.mark.parametrize(
    ("word", "records", "counts"),
    [
        (WORD, {1: {"0 gloo": 3}}, {1: 3}),
        (WORD, {1: {"0 gloo": 4}}, {}),
        (WORD, {1: {"1 gloo": 3}}, {}),  # counts no such group: not known
        (WORD, {0: {"0 gloo": 3}}, {}),  # a rank that is not waited for
        (WORD, {1: {"0 gloo": 3}, 2: {"0 gloo": 2}}, {1: 3, 2: 2}),
        ({**WORD, "kind": "making", "key": "1 made", "operation": 1}, {1: {"0 made": 1}}, {1: 0}),
        (
            {**WORD, "kind": "receive", "key": "0 send 1 0"},
            {1: {"0 made": 1, "0 send 1 0": 3}},
            {1: 3},
        ),
        ({**WORD, "kind": "receive", "key": "0 send 1 0"}, {1: {"0 made": 1}}, {1: 0}),
        ({**WORD, "kind": "receive", "key": "0 send 1 0"}, {1: {}}, {}),
        (
            {**WORD, "kind": "send", "key": "0 recv 1 0"},
            {1: {"0 made": 1, "0 recv 1 0": 2, "0 recv 1 any": 2}},
            {},
        ),
        (
            {**WORD, "kind": "send", "key": "0 recv 1 0"},
            {1: {"0 made": 1, "0 recv 1 0": 2, "0 recv 1 any": 1}},
            {1: 3},
        ),
        (
            {**WORD, "kind": "receive_any", "key": "0 sent 0"},
            {1: {"0 made": 1, "0 sent 0": 3}},
            {},
        ),  # rank 2 may send
        (
            {**WORD, "kind": "receive_any", "key": "0 sent 0"},
            {1: {"0 made": 1, "0 sent 0": 3}, 2: {"0 made": 1}},
            {1: 3, 2: 0},
        ),
        (
            {**WORD, "kind": "receive_any", "key": "0 sent 0"},
            {1: {"0 made": 1, "0 sent 0": 3}, 2: {"0 made": 1, "0 sent 0": 1}},
            {},
        ),
    ],
)
def test_who_can_never_come_is_who_has_begun_less(
    word: dict[str, Any], records: dict[int, dict[str, int]], counts: dict[int, int]
) -> None:
    assert returned_verdict.missing(word, records) == counts


@pytest.mark.parametrize(
    ("word", "counts", "waiting", "said"),
    [
        (
            WORD,
            {1: 3},
            [0, 2],
            "rank 1 returned after 3 operations; ranks 0, 2 wait for it in operation 4 "
            "(all_reduce) of process group 0",
        ),
        (
            WORD,
            {2: 1, 1: 1},
            [0],
            "rank 1 returned after 1 operation; rank 0 waits for it in operation 4 (all_reduce) of "
            "process group 0; "
            "rank 2 returned before it, too",
        ),
        (
            {**WORD, "kind": "making", "op": "new_group"},
            {1: 0},
            [0],
            "rank 1 returned without coming to process group 0, which rank 0 makes (new_group)",
        ),
        (
            {**WORD, "kind": "receive"},
            {1: 1},
            [0],
            "rank 1 returned after 1 send to rank 0, which waits for it in receive 4 of process "
            "group 0",
        ),
        (
            {**WORD, "kind": "send"},
            {1: 2},
            [0],
            "rank 1 returned after 2 receives from rank 0, which waits for it in send 4 of process "
            "group 0",
        ),
    ],
)
def test_the_verdict_says_who_returned_and_who_waits(
    word: dict[str, Any], counts: dict[int, int], waiting: list[int], said: str
) -> None:
    assert returned_verdict.text_of(word, counts, waiting) == said
