"""A rank's place is filled on another node where its own was lost, and after its head was killed
and started again.

Method: two or three nodes; ranks in a loop of all-reduces; a worker, or the head and then a rank,
is killed from outside once all are in it.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import Home, eventually, running

import troupe
from troupe import exceptions, train
from troupe.launch import distributed

LIMIT_S = 180


def job(**options: Any) -> Any:
    @distributed(remote=True, on_rank_death="replace", **options)
    def loop(folder: str) -> tuple:
        import torch
        import torch.distributed as dist

        from troupe.launch import current

        for attempt in train.attempts("gloo"):
            with attempt:
                one = torch.ones(1)
                dist.all_reduce(one)
                print("in group", current().group_epoch, flush=True)
                if current().group_epoch == 1:
                    Path(folder, f"{attempt.rank}.new").write_text(str(os.getpid()))
                    os.rename(f"{folder}/{attempt.rank}.new", f"{folder}/{attempt.rank}.pid")
                    while True:
                        dist.all_reduce(torch.ones(1))
                result = (
                    attempt.rank,
                    attempt.world_size,
                    int(one),
                    current().epoch,
                    current().node_name,
                    current().local_rank,
                    current().replaces,
                )
        return result

    return loop


def in_the_loop(folder: Path, ranks: int) -> list[int]:
    """The ranks' processes, once all are there."""
    files = [folder / f"{rank}.pid" for rank in range(ranks)]
    eventually(
        lambda: all(each.exists() for each in files), timeout=LIMIT_S, what="the loop of all ranks"
    )
    return [int(each.read_text()) for each in files]


class Nodes:
    """A head, and workers by name."""

    def __init__(self, home: Home, **cpus: int) -> None:
        self.home = home
        self.head = home.json("start", "--head", "--no-worker", "--port", "0")
        self.pids: dict[str, int] = {}
        for name, count in cpus.items():
            self.join(name, count)
        troupe.init(self.head["address"])

    def join(self, name: str, cpus: int) -> None:
        self.pids[name] = self.home.json(
            "start",
            "--address",
            self.head["address"],
            "--token-file",
            self.home.token(),
            "--node-name",
            name,
            "--num-cpus",
            str(cpus),
        )["pid"]

    def lose(self, handle: Any, node_rank: int) -> tuple[str, set[int]]:
        """Kills that node of the launch; its name, and its ranks."""
        infos = handle.status()["rank_infos"]
        name = list(dict.fromkeys(each["node"] for each in infos))[node_rank]
        os.kill(self.pids[name], signal.SIGKILL)
        return name, {each["rank"] for each in infos if each["node"] == name}


@pytest.mark.parametrize("lost_node_rank", [0, 1])
def test_its_ranks_come_to_a_third_node(home: Home, tmp_path: Path, lost_node_rank: int) -> None:
    nodes = Nodes(home, a=2, b=2, c=2)
    handle = job(processes=4).submit(str(tmp_path))
    in_the_loop(tmp_path, 4)
    seen: list[str] = []
    reader = threading.Thread(target=lambda: seen.extend(handle.logs(follow=True)), daemon=True)
    reader.start()
    name, lost = nodes.lose(handle, lost_node_rank)
    assert len(lost) == 2
    results = handle.result(LIMIT_S)
    reader.join(LIMIT_S)
    assert not reader.is_alive()
    assert {f"[{rank}] in group 3" for rank in range(4)} <= set(seen), seen
    assert [each[:4] for each in results] == [(rank, 4, 4, 1) for rank in range(4)]
    assert {rank for rank, each in enumerate(results) if each[6]} == lost
    assert len({results[rank][4] for rank in lost} - {name}) == 1, "both are on the third one"
    assert sorted(results[rank][5] for rank in lost) == [0, 1]


def test_beside_the_others_where_there_is_room(home: Home, tmp_path: Path) -> None:
    nodes = Nodes(home, a=4, b=4)
    handle = job(processes=4, strategy="SPREAD").submit(str(tmp_path))
    in_the_loop(tmp_path, 4)
    nodes.lose(handle, 1)
    results = handle.result(LIMIT_S)
    assert [each[:3] for each in results] == [(rank, 4, 4) for rank in range(4)]
    assert len({each[4] for each in results}) == 1
    assert sorted(each[5] for each in results) == [0, 1, 2, 3]


def test_a_node_that_joins_in_time_is_room(home: Home, tmp_path: Path) -> None:
    nodes = Nodes(home, a=2, b=2)
    handle = job(processes=4).submit(str(tmp_path))
    in_the_loop(tmp_path, 4)
    _, lost = nodes.lose(handle, 1)
    eventually(
        lambda: all(handle.status()["rank_infos"][rank]["outcome"] == "failed" for rank in lost),
        timeout=LIMIT_S,
        what="the loss of the node",
    )
    nodes.join("c", 2)
    results = handle.result(LIMIT_S)
    assert {results[rank][4] for rank in lost} == {"c"}


def test_without_room_the_launch_fails_and_says_what_was_missing(
    home: Home, tmp_path: Path
) -> None:
    nodes = Nodes(home, a=2, b=2)
    handle = job(processes=4, reform_timeout=10).submit(str(tmp_path))
    in_the_loop(tmp_path, 4)
    _, lost = nodes.lose(handle, 1)
    with pytest.raises(exceptions.NodeDiedError) as failed:
        handle.result(LIMIT_S)
    assert failed.value.rank in lost
    assert (
        "no other process could take its place within 10 s (reform_timeout): its node is lost, and "
        "elsewhere it waited for " in str(failed.value)
    )
    assert "CPU" in str(failed.value)


def test_the_head_is_away_when_a_rank_dies(home: Home, tmp_path: Path) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "4")
    troupe.init(head["address"])
    handle = job(processes=4).submit(str(tmp_path))
    pids = in_the_loop(tmp_path, 4)
    os.kill(head["pid"], signal.SIGKILL)
    eventually(lambda: not running(head["pid"]), what="the end of the head")
    os.kill(pids[1], signal.SIGKILL)
    home.json("start", "--head", "--no-worker")
    results = handle.result(LIMIT_S)
    assert [each[:4] for each in results] == [(rank, 4, 4, 1) for rank in range(4)]
    assert [each[6] for each in results] == [False, True, False, False]


def test_the_head_is_killed_while_the_replacement_comes(home: Home, tmp_path: Path) -> None:
    @distributed(processes=3, remote=True, on_rank_death="replace")
    def loop(folder: str) -> tuple:
        import torch
        import torch.distributed as dist

        from troupe.launch import current

        if current().replaces:
            Path(folder, "here").touch()
            while not Path(folder, "go").exists():
                os.sched_yield()
        for attempt in train.attempts("gloo"):
            with attempt:
                dist.barrier()
                if current().group_epoch == 1 and attempt.rank == 0:
                    os.kill(os.getpid(), 9)
                while current().group_epoch == 1:
                    dist.all_reduce(torch.ones(1))
                result = (attempt.rank, attempt.world_size, current().group_epoch)
        return result

    head = home.json("start", "--head", "--port", "0", "--num-cpus", "3")
    troupe.init(head["address"])
    handle = loop.submit(str(tmp_path))
    eventually(lambda: (tmp_path / "here").exists(), timeout=LIMIT_S, what="the replacement")
    os.kill(head["pid"], signal.SIGKILL)
    eventually(lambda: not running(head["pid"]), what="the end of the head")
    (tmp_path / "go").touch()
    home.json("start", "--head", "--no-worker")
    assert handle.result(LIMIT_S) == [(rank, 3, 2) for rank in range(3)]
