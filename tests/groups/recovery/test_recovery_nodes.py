"""A launch goes on after a node of it was lost, the store's too, and after its head was killed and
started again.

Method: two nodes with two ranks each, in a loop of all-reduces; a worker, or the head and then a
rank, is killed from outside once all are in it.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from e2e_conftest import Home, eventually, running

import troupe
from troupe import train
from troupe.launch import distributed

LIMIT_S = 180


@distributed(processes=4, remote=True, strategy="SPREAD", on_rank_death="shrink")
def loop(folder: str) -> tuple:
    """Until ranks are lost; then what is left."""
    import torch
    import torch.distributed as dist

    from troupe.launch import current

    for attempt in train.attempts("gloo"):
        with attempt:
            one = torch.ones(1)
            dist.all_reduce(one)
            if attempt.number == 1:
                Path(folder, f"{attempt.rank}.new").write_text(str(os.getpid()))
                os.rename(f"{folder}/{attempt.rank}.new", f"{folder}/{attempt.rank}.pid")
                while True:
                    dist.all_reduce(torch.ones(1))
            result = (
                current().launch_rank,
                attempt.rank,
                attempt.world_size,
                int(one),
                current().epoch,
            )
    return result


def in_the_loop(folder: Path) -> list[int]:
    """The ranks' processes, once all are there."""
    files = [folder / f"{rank}.pid" for rank in range(4)]
    eventually(
        lambda: all(each.exists() for each in files), timeout=LIMIT_S, what="the loop of all ranks"
    )
    return [int(each.read_text()) for each in files]


@pytest.mark.parametrize("lost_node_rank", [0, 1])
def test_a_node_is_lost_with_its_ranks(home: Home, tmp_path: Path, lost_node_rank: int) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    workers = {}
    for name in ("a", "b"):
        workers[name] = home.json(
            "start",
            "--address",
            head["address"],
            "--token-file",
            home.token(),
            "--node-name",
            name,
            "--num-cpus",
            "2",
        )["pid"]
    troupe.init(head["address"])
    handle = loop.submit(str(tmp_path))
    in_the_loop(tmp_path)
    ranks = handle.status()["rank_infos"]
    names = list(dict.fromkeys(each["node"] for each in ranks))
    lost = {each["rank"] for each in ranks if each["node"] == names[lost_node_rank]}
    assert len(lost) == 2
    os.kill(workers[names[lost_node_rank]], signal.SIGKILL)
    results = handle.result(LIMIT_S)
    assert {
        rank for rank, each in enumerate(results) if isinstance(each, train.RankLost)
    } == lost, results
    left = sorted(set(range(4)) - lost)
    assert [results[rank] for rank in left] == [(left[0], 0, 2, 2, 1), (left[1], 1, 2, 2, 1)]
    assert all("its worker ended" in results[rank].cause for rank in lost)


def test_the_head_is_away_when_a_rank_dies(home: Home, tmp_path: Path) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "4")
    troupe.init(head["address"])
    handle = loop.submit(str(tmp_path))
    pids = in_the_loop(tmp_path)
    os.kill(head["pid"], signal.SIGKILL)
    eventually(lambda: not running(head["pid"]), what="the end of the head")
    os.kill(pids[1], signal.SIGKILL)
    home.json("start", "--head", "--no-worker")
    results = handle.result(LIMIT_S)
    assert isinstance(results[1], train.RankLost)
    assert [results[rank] for rank in (0, 2, 3)] == [
        (0, 0, 3, 3, 1),
        (2, 1, 3, 3, 1),
        (3, 2, 3, 3, 1),
    ]
