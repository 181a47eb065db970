"""torch's process groups come and go in a rank as they do in a process of one's own, and nothing of
them stays; and a rank that waits in one for a rank that is gone hears of it from the head, not by
its own patience of half an hour.

Method of the latter: Gloo groups, where a death is noticed by the neighbours alone, and an error by
nobody, since the rank that raised keeps its connections until all is decided; each rank that comes
out of its collective writes a file, which one that is killed in it does not.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import signal
import sys
import termios
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home, eventually

from troupe import exceptions
from troupe.launch import distributed

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def _count_connections() -> list[dict]:
    """In a rank: grows with each connection to the store."""
    rendezvous: Any = importlib.import_module("torch.distributed.rendezvous")
    made: list[dict] = []
    connect = rendezvous.TCPStore

    def noted(**given: Any) -> Any:
        made.append(given)
        return connect(**given)

    rendezvous.TCPStore = noted
    return made


def test_a_group_made_destroyed_and_made_again_is_a_group(cluster: Home) -> None:
    @distributed(processes=2, remote=True)
    def job() -> tuple[list[int], int]:
        import torch
        import torch.distributed as dist

        connected = _count_connections()
        sums = []
        for _ in range(6):
            dist.init_process_group("gloo")
            mine = torch.ones(1)
            dist.all_reduce(mine)
            sums.append(int(mine))
            dist.destroy_process_group()
        return sums, len(connected)

    for _ in range(3):
        assert job.submit().result(120) == [([2] * 6, 1)] * 2, (
            "torch asks the DNS at each connection to the store: there is one"
        )


def test_a_group_is_made_again_whatever_became_of_the_connection_to_the_store(
    cluster: Home,
) -> None:
    @distributed(processes=2, remote=True)
    def job() -> tuple[list[int], int]:
        import threading

        import torch
        import torch.distributed as dist

        from troupe._base import rendezvous as _rendezvous
        from troupe._process import gloo_sockets

        _rendezvous._ANSWERS_S = 0.5
        connected, sums = _count_connections(), []
        for turn in range(3):
            dist.init_process_group("gloo")
            mine = torch.ones(1)
            dist.all_reduce(mine)
            sums.append(int(mine))
            store = dist.distributed_c10d._get_default_store()
            dist.destroy_process_group()
            if turn == 0:  # a thread of the program's waits by it
                threading.Thread(target=store.get, args=("never",), daemon=True).start()
                while _rendezvous._answers(store):
                    pass
            else:
                gloo_sockets.cut(int(os.environ["MASTER_PORT"]))
        return sums, len(connected)

    for sums, connections in job.submit().result(120):
        assert (sums, connections) == ([2] * 3, 3)


def test_a_group_that_its_ranks_alone_make_is_made_again(cluster: Home) -> None:
    @distributed(processes=3, remote=True)
    def job() -> list[int]:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        sums = []
        for _ in range(6):
            if dist.get_rank() < 2:
                group = dist.new_group([0, 1], use_local_synchronization=True)
                mine = torch.ones(1)
                dist.all_reduce(mine, group=group)
                sums.append(int(mine))
                dist.destroy_process_group(group)
                del group
        dist.barrier()
        return sums

    for _ in range(3):
        assert job.submit().result(120) == [[2] * 6, [2] * 6, []]


def test_destroyed_groups_keep_no_descriptor_and_no_thread(cluster: Home) -> None:
    @distributed(processes=2, remote=True)
    def job() -> list[tuple[int, int]]:
        import os

        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        seen = []
        for turn in range(201):
            group = dist.new_group([0, 1])
            dist.all_reduce(torch.ones(1), group=group)
            dist.barrier()
            dist.destroy_process_group(group)
            del group
            if turn % 100 == 0:
                seen.append((len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))))
        return seen

    for seen in job.submit().result(120):
        assert seen[2][0] <= seen[0][0] + 2 and seen[2][1] <= seen[0][1] + 1, seen


def test_a_group_destroyed_before_a_module_that_used_it_keeps_no_rank_from_returning(
    cluster: Home,
) -> None:
    @distributed(processes=2, remote=True)
    def job() -> int:
        import torch
        import torch.distributed as dist

        def train() -> None:
            dist.init_process_group("gloo")
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model(torch.ones(4, 64)).sum().backward()
            optimizer.step()
            dist.destroy_process_group()

        for _ in range(20):
            train()
        return dist.is_initialized()

    for _ in range(3):
        assert job.submit().result(240) == [False, False]


WITHIN_S = 120.0


def waits_for_rank_3(folder: str, how: str) -> None:
    """Rank 3 ends while the others are in an all-reduce: their handlers and cleanup run, whatever
    they wait in."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, values = dist.get_rank(), torch.ones(1000)
    group = dist.new_group([0, 1, 2, 3])
    dist.all_reduce(values)
    signal.signal(
        signal.SIGTERM, lambda *_: None
    )  # an error is raised at the end of the collective, and not in later code
    if rank == 3:
        dist.barrier()
    if rank == 3 and how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 3:
        raise ValueError("of rank 3")
    try:
        dist.barrier()
        dist.all_reduce(values, group=group)
    finally:
        Path(folder, str(rank)).write_text("whole")


@pytest.mark.parametrize("how", ["killed", "raises"])
def test_all_ranks_leave_a_collective_with_one_that_is_lost(
    cluster: Home, tmp_path: Path, how: str
) -> None:
    job = distributed(processes=4, remote=True)(waits_for_rank_3)
    handle = job.submit(str(tmp_path), how)
    with pytest.raises(exceptions.TroupeError) as caught:
        handle.result(WITHIN_S)
    assert ("SIGKILL" if how == "killed" else "ValueError: of rank 3") in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2"]
    ends = {each["rank"]: each["outcome"] for each in handle.status()["rank_infos"]}
    if (
        how == "raises"
    ):  # the neighbours of a killed rank learn of it by themselves, perhaps before they are told
        assert ends == {0: "cancelled", 1: "cancelled", 2: "cancelled", 3: "failed"}, (
            "what a stop did is no failure of theirs"
        )


def exchanges_with_a_rank_that_is_lost(folder: str) -> None:
    """Rank 0 sends more than the kernel takes to rank 1, which stands still first, so that only a
    part of the message is on its way."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    values, rank = torch.zeros(16 << 20), dist.get_rank()
    dist.barrier()
    if rank == 1:
        exchange = dist.irecv(values, 0)
        say(Path(folder, "receives"))
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        eventually(Path(folder, "receives").exists, what="rank 1 to stand still")
        exchange = dist.isend(values, 1)
        eventually(lambda: unsent_bytes() > 1 << 20, what="bytes that rank 1 does not take")
        say(Path(folder, "sends"))
    try:
        exchange.wait()
        Path(folder, "done").write_text("")
        dist.barrier()
    finally:
        Path(folder, "out").write_text("")


def say(path: Path) -> None:
    """Writes this process's id there."""
    path.with_suffix(".new").write_text(str(os.getpid()))
    path.with_suffix(".new").rename(path)


def unsent_bytes() -> int:
    """The most that one of this process's sockets has not sent."""
    most = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            waiting = fcntl.ioctl(int(name), termios.TIOCOUTQ, b"\0" * 4)
            most = max(most, int.from_bytes(waiting, sys.byteorder))
    return most


def has_ended(pid: int) -> bool:
    """Returns True once the process has none of its connections any more."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True


@pytest.mark.parametrize("lost", ["receiver", "sender"])
def test_a_rank_amid_a_message_leaves_it_when_the_other_is_lost(
    cluster: Home, tmp_path: Path, lost: str
) -> None:
    job = distributed(processes=2, remote=True, stop_grace=WITHIN_S)(
        exchanges_with_a_rank_that_is_lost
    )
    handle = job.submit(str(tmp_path))
    receives, sends = tmp_path / "receives", tmp_path / "sends"
    eventually(lambda: receives.exists() and sends.exists(), what="a part of the message")
    receiver, sender = int(receives.read_text()), int(sends.read_text())
    os.kill(receiver if lost == "receiver" else sender, signal.SIGKILL)
    if lost == "sender":
        eventually(lambda: has_ended(sender), what="the end of rank 0")
        os.kill(receiver, signal.SIGCONT)
    with pytest.raises(exceptions.TroupeError, match="SIGKILL"):
        handle.result(WITHIN_S)
    assert (tmp_path / "out").exists(), "Gloo itself tells nobody who is amid a message"
    assert (tmp_path / "done").exists() == (lost == "receiver"), "a part is not the message"


def test_connections_that_a_group_makes_at_its_first_use_end_with_it(cluster: Home) -> None:
    @distributed(processes=2, remote=True, runtime_env={"env_vars": {"TORCH_GLOO_LAZY_INIT": "1"}})
    def job() -> tuple[int, str]:
        import socket
        from unittest import mock

        import torch
        import torch.distributed as dist

        from troupe._process import gloo_sockets

        dist.init_process_group("gloo")
        one = torch.ones(1)
        dist.all_reduce(one)
        with mock.patch.object(socket.socket, "shutdown"):  # the other end would close this one
            ended = gloo_sockets.cut()
        dist.barrier()
        gloo_sockets.cut()
        try:
            dist.all_reduce(one)
        except RuntimeError as error:
            return ended, str(error)
        return ended, ""

    for ended, error in job.submit().result(WITHIN_S):
        assert ended == 1 and error, "each rank has one connection, which either of them has opened"


def test_the_rank_whose_parameters_have_diverged_is_named(cluster: Home) -> None:
    @distributed(processes=3, remote=True)
    def job() -> list:
        import torch
        import torch.distributed as dist

        from troupe import train

        dist.init_process_group("gloo")
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        train.check_equal(model)
        said = []
        with torch.no_grad():
            if dist.get_rank() == 1:
                model[0].weight[2, 3] += 1e-6
                model[1].running_mean.add_(1.0)
            wrong = {0: torch.ones(3), 1: torch.ones(3), 2: torch.ones(4)}[dist.get_rank()]
        for what in (model, {"x": wrong}):
            try:
                train.check_equal(what)
            except train.DivergedError as error:
                said.append((dict(error.tensors), str(error)))
        train.check_equal({})
        return said

    first, *others = job.submit().result(180)
    assert others == [first, first], "all ranks are told the same"
    (tensors, text), (_, of_shape) = first
    assert tensors == {"0.weight": [1], "1.running_mean": [1]}
    assert (
        text.startswith("rank 1 (")
        and (
            "has other values than most of 3 ranks, in 2 of 7 tensors:\n  0.weight: on 1\n  "
            "1.running_mean: on 1"
        )
        in text
    )
    assert of_shape.startswith("the ranks have different tensors\n  rank 2 (")
    assert of_shape.endswith("x is torch.float32 (4,); on rank 0 it is torch.float32 (3,)")


def test_a_rank_that_others_wait_for_is_named_with_where_it_is_and_nothing_ends(
    cluster: Home, tmp_path: Path
) -> None:
    @distributed(processes=3, remote=True, runtime_env={"env_vars": {"TROUPE_LATE_RANK_S": "2"}})
    def job() -> None:
        import torch
        import torch.distributed as dist

        def evaluates_alone() -> None:
            (tmp_path / "go on").read_text()  # somebody opens it for writing

        dist.init_process_group("gloo")
        goes_on, step = torch.ones(1), 0
        while goes_on.item():
            step += 1
            if step == 3 and dist.get_rank() == 1:
                evaluates_alone()
            goes_on = torch.tensor([0.0 if (tmp_path / "end").exists() else 1.0])
            dist.all_reduce(goes_on, dist.ReduceOp.MIN)

    os.mkfifo(tmp_path / "go on")
    handle = job.submit()

    def said(words: str) -> bool:
        return words in "\n".join(handle.logs())

    eventually(lambda: said("evaluates_alone()"), timeout=180, what="the warning")
    (tmp_path / "go on").write_text("")
    eventually(
        lambda: said("troupe: process group 0 goes on, after "),
        timeout=180,
        what="the word that it goes on",
    )
    (tmp_path / "end").write_text("")
    assert handle.result(180) == [None] * 3
    assert said(
        "troupe: rank 1 has not come to operation 3 of process group 0, in which ranks 0 and 2 "
        "wait, for "
    )
    assert said("rank 1 (host ") and said("has begun 2 operations, and is here:")
