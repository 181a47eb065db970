"""init_process_group("troupe") over two nodes of two ranks: as over Gloo, a rank of either node
that dies or does not come is named on both.

Method: two workers of this machine that are as two hosts (--force-tcp): ranks of different ones
share no memory, and meet by TCP at the loopback.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import group_programs
import pytest
from e2e_conftest import Home

import troupe
from troupe import train
from troupe._process.torch_backend import build
from troupe.launch import distributed

cloudpickle.register_pickle_by_value(group_programs)
cloudpickle.register_pickle_by_value(sys.modules[__name__])
NODES = ("a", "b")


def goes_on_smaller() -> tuple[int, int, int, list[float]]:
    """Rank 3 is killed in the middle of all-reduces, the others go on without it: (rank of the
    launch, rank, size, what all have gathered)."""
    import os
    import signal

    import torch
    import torch.distributed as dist

    from troupe import train
    from troupe.launch import current

    for attempt in train.attempts("troupe"):
        with attempt:
            values = torch.ones(1 << 20)
            for step in range(1 if attempt.number == 2 else 1 << 30):
                if attempt.number == 1 and step == 3 and attempt.rank == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                dist.all_reduce(values, dist.ReduceOp.MAX)
            gathered = [torch.zeros(1 << 18) for _ in range(attempt.world_size)]
            dist.all_gather(gathered, torch.full((1 << 18,), float(attempt.rank)))
            result = (
                current().launch_rank,
                attempt.rank,
                attempt.world_size,
                [each.unique().item() for each in gathered],
            )
    return result


@pytest.fixture
def nodes(home: Home) -> Iterator[Callable[..., Any]]:
    """Runs a function on four ranks, two on each of two nodes."""
    build.ensure()  # before any test counts its time
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    for name in NODES:
        home.json(
            "start",
            "--address",
            head["address"],
            "--token-file",
            home.token(),
            "--node-name",
            name,
            "--num-cpus",
            "2",
            "--force-tcp",
        )
    troupe.init(head["address"])
    yield lambda function, *args, **options: distributed(
        processes=4, remote=True, quiet=True, strategy="SPREAD", **options
    )(function).distributed(*args)
    troupe.shutdown()


def test_every_operation_and_type_is_as_over_gloo(nodes: Callable[..., Any]) -> None:
    for differences in nodes(group_programs.like_gloo):
        assert differences == []


def test_lists_objects_anybody_and_a_group_made_anew(nodes: Callable[..., Any]) -> None:
    ranks = nodes(group_programs.lists_and_objects)
    objects, apart = [{"rank": rank} for rank in range(4)], [0.0, 31.0, 2.0, 33.0, 4.0, 35.0]
    assert ranks == [
        (
            [[10.0 * each + rank] * 2 for each in range(4)],
            objects,
            0 if rank == 1 else -1,
            apart,
            4.0,
        )
        for rank in range(4)
    ]


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
def test_a7_what_is_learnt_is_the_same_bits_on_every_rank(
    nodes: Callable[..., Any], how: str
) -> None:
    """And what Gloo learns but for the order of sums, which is another with more than two ranks."""
    over_gloo, found = (
        nodes(group_programs.learns, "gloo", how),
        nodes(group_programs.learns, "troupe", how),
    )
    assert [served for served, _, _ in found] == ["troupe"] * 4
    assert len({digest for _, digest, _ in found}) == 1
    assert [loss for _, _, loss in found] == pytest.approx(
        [loss for _, _, loss in over_gloo], rel=1e-4
    )
    assert nodes(group_programs.learns, "troupe", how) == found, "in every run"


def test_d5_a_killed_rank_of_another_node_is_named_in_backward(
    nodes: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(
        troupe.exceptions.LaunchError, match="rank 2 was killed by SIGKILL"
    ) as caught:
        nodes(group_programs.loses_rank_2, str(tmp_path))
    assert caught.value.rank == 2
    for rank in (0, 1, 3):
        said = (tmp_path / str(rank)).read_text()
        assert said.startswith(
            f"DistBackendError: group 0, epoch 1, rank {rank} of 4: stopped: rank 2 on b"
        ), said
        assert "SIGKILL" in said, said


def test_the_others_go_on_without_a_rank_in_a_group_whose_nodes_have_not_equally_many(
    nodes: Callable[..., Any],
) -> None:
    *others, lost = nodes(goes_on_smaller, on_rank_death="shrink", min_processes=3)
    assert others == [(rank, rank, 3, [0.0, 1.0, 2.0]) for rank in range(3)]
    assert isinstance(lost, train.RankLost) and "SIGKILL" in lost.cause


def test_a_rank_of_another_node_that_does_not_come_is_named(nodes: Callable[..., Any]) -> None:
    said = nodes(group_programs.waits_in_vain, 3, 4.0)
    assert all(
        "was not done after 4 s" in each and "rank 3 has not come to it" in each
        for each in said[:3]
    ), said
    assert said[3] == ""
