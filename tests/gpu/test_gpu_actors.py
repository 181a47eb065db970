"""Actors and tasks with GPUs: shares of one, what waits and why, and what becomes of the device
where its process is killed.

Method: real processes on one card; whoever is to have the card next takes most of its memory at
once.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import card
import pytest
from conftest import Home, eventually, running

import troupe
from troupe import exceptions
from troupe.util.placement_group import placement_group, remove_placement_group
from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

pytestmark = pytest.mark.gpu
LIMIT_S = 60.0


class Taker:
    """Takes memory of the device, computes, and can leave children behind that have its
    descriptors."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def pid(self) -> int:
        return os.getpid()

    def take(self, part: float) -> float:
        """So much of the device's memory; what it then says of it."""
        import torch

        wanted = int(torch.cuda.mem_get_info()[1] * part)
        self.kept.append(torch.ones(wanted, dtype=torch.uint8, device="cuda"))
        return float(self.kept[-1][-1].item())

    def seen(self) -> tuple[str, int]:
        import torch

        return os.environ["CUDA_VISIBLE_DEVICES"], torch.cuda.device_count()

    def leave_a_child(self) -> int:
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        return pid

    def busy(self) -> None:
        """Starts work on the device that does not end."""
        import torch

        torch.cuda._sleep(1 << 50)


def test_two_halves_share_it_and_a_third_waits(idle: Home) -> None:
    half = troupe.remote(num_cpus=0, num_gpus=0.5)(Taker)
    one, two = half.remote(), half.remote()
    assert troupe.get([one.seen.remote(), two.seen.remote()], timeout=LIMIT_S) == [("0", 1)] * 2
    assert troupe.get([one.take.remote(0.1), two.take.remote(0.1)], timeout=LIMIT_S) == [1.0, 1.0]
    third = half.remote()
    answer = third.take.remote(0.1)
    reason = eventually(
        lambda: next(
            (each["waiting_for"] for each in troupe.state.list_actors() if each["waiting_for"]), ""
        ),
        what="a reason",
    )
    assert "GPU" in reason, reason
    assert "GPU" in idle.run("status").stdout.partition("waiting")[2]
    assert troupe.wait([answer], timeout=0)[0] == []
    troupe.kill(one)
    assert troupe.get(answer, timeout=LIMIT_S) == 1.0


def test_more_than_half_does_not_fit_beside_a_half(idle: Home) -> None:
    half = troupe.remote(num_gpus=0.5)(Taker).remote()
    troupe.get(half.pid.remote(), timeout=LIMIT_S)
    more = troupe.remote(num_gpus=0.6)(Taker).remote()
    asked = more.pid.remote()
    eventually(
        lambda: any("GPU" in each["waiting_for"] for each in troupe.state.list_actors()),
        what="a reason",
    )
    del half
    assert troupe.get(asked, timeout=LIMIT_S) > 0


@pytest.mark.parametrize("how", ["SIGKILL", "troupe.kill", "let go of", "a child is left", "busy"])
def test_the_next_actor_has_all_of_its_memory(idle: Home, how: str) -> None:
    """The GPU is given on when the memory of the one before is free, whatever ended it and whoever
    had its descriptors."""
    first = troupe.remote(num_gpus=1)(Taker).remote()
    pid = troupe.get(first.pid.remote(), timeout=LIMIT_S)
    assert troupe.get(first.take.remote(0.7), timeout=LIMIT_S) == 1.0
    if how == "a child is left":
        troupe.get(first.leave_a_child.remote(), timeout=LIMIT_S)
    if how == "busy":
        troupe.get(first.busy.remote(), timeout=LIMIT_S)
    second = troupe.remote(num_gpus=1)(Taker).remote()
    took = second.take.remote(0.7)
    if how == "troupe.kill":
        troupe.kill(first)
    elif how == "let go of":
        del first
    else:
        os.kill(pid, signal.SIGKILL)
    assert troupe.get(took, timeout=LIMIT_S) == 1.0
    if how not in ("troupe.kill", "let go of"):
        with pytest.raises(exceptions.ActorDiedError, match="SIGKILL"):
            troupe.get(first.pid.remote(), timeout=LIMIT_S)


def test_one_that_is_killed_is_made_again_with_the_gpu(idle: Home) -> None:
    actor = troupe.remote(num_gpus=1, max_restarts=1, max_task_retries=1)(Taker).remote()
    pid = troupe.get(actor.pid.remote(), timeout=LIMIT_S)
    assert troupe.get(actor.take.remote(0.7), timeout=LIMIT_S) == 1.0
    os.kill(pid, signal.SIGKILL)
    assert troupe.get(actor.take.remote(0.7), timeout=LIMIT_S) == 1.0
    assert troupe.get(actor.pid.remote(), timeout=LIMIT_S) != pid


def test_tasks_with_a_gpu_follow_tasks_and_actors_without(idle: Home) -> None:
    """The process that ran tasks of a CPU sees no GPU; one that is to have it sees it, and CUDA
    begins there."""

    def look() -> tuple[str, bool, float]:
        import torch

        there = torch.cuda.is_available()
        return (
            os.environ["CUDA_VISIBLE_DEVICES"],
            there,
            float(
                torch.ones(8, 8, device="cuda" if there else "cpu")
                .mm(torch.ones(8, 8, device="cuda" if there else "cpu"))
                .sum()
            ),
        )

    plain, on_gpu = troupe.remote(look), troupe.remote(num_gpus=1)(look)
    for _ in range(2):
        assert troupe.get(plain.remote(), timeout=LIMIT_S) == ("", False, 512.0)
        assert troupe.get(on_gpu.remote(), timeout=LIMIT_S) == ("0", True, 512.0)
    shares = [on_gpu.options(num_cpus=0.1, num_gpus=0.25).remote() for _ in range(8)]
    assert troupe.get(shares, timeout=LIMIT_S) == [("0", True, 512.0)] * 8


def test_an_actor_follows_a_task_that_held_the_memory(idle: Home) -> None:
    def hold() -> int:
        import torch

        return torch.ones(
            int(torch.cuda.mem_get_info()[1] * 0.7), dtype=torch.uint8, device="cuda"
        ).numel()

    assert troupe.get(troupe.remote(num_gpus=1)(hold).remote(), timeout=LIMIT_S) > 1 << 30
    actor = troupe.remote(num_gpus=1)(Taker).remote()
    assert troupe.get(actor.take.remote(0.7), timeout=LIMIT_S) == 1.0
    troupe.kill(actor)
    assert troupe.get(troupe.remote(num_gpus=1)(hold).remote(), timeout=LIMIT_S) > 1 << 30


def test_a_task_that_broke_cuda_breaks_no_other(idle: Home) -> None:
    """After an assertion on the device failed, nothing works in that process any more: it gets no
    more tasks."""

    def run(index: int) -> float:
        import torch

        return float(
            torch.arange(4.0, device="cuda")[torch.tensor([index], device="cuda")].cpu().item()
        )

    task = troupe.remote(num_gpus=1, max_retries=0)(run)
    assert troupe.get(task.remote(1), timeout=LIMIT_S) == 1.0
    for _ in range(2):
        broken, after = task.remote(7), task.remote(2)
        with pytest.raises(RuntimeError, match="device-side assert"):
            troupe.get(broken, timeout=LIMIT_S)
        assert troupe.get(after, timeout=LIMIT_S) == 2.0


def test_threads_and_coroutines_of_an_actor_use_it(idle: Home) -> None:
    class Threads:
        def most(self, n: int) -> float:
            import torch

            with torch.cuda.stream(torch.cuda.Stream()):
                return torch.full((1000,), float(n), device="cuda").max().item()

    class Coroutines:
        async def most(self, n: int) -> float:
            import asyncio

            return await asyncio.to_thread(Threads.most, None, n)

    several = troupe.remote(num_gpus=0.5, max_concurrency=4)(Threads).remote()
    at_once = troupe.remote(num_gpus=0.5)(Coroutines).remote()
    for actor in (several, at_once):
        assert troupe.get([actor.most.remote(n) for n in range(16)], timeout=LIMIT_S) == [
            float(n) for n in range(16)
        ]


def test_a_bundle_has_the_gpu(idle: Home) -> None:
    group = placement_group([{"CPU": 1, "GPU": 1}])
    troupe.get(group.ready(), timeout=LIMIT_S)
    place = PlacementGroupSchedulingStrategy(group)
    actor = troupe.remote(num_gpus=1, scheduling_strategy=place)(Taker).remote()
    assert troupe.get(actor.seen.remote(), timeout=LIMIT_S) == ("0", 1)
    assert troupe.get(actor.take.remote(0.7), timeout=LIMIT_S) == 1.0
    pid = troupe.get(actor.pid.remote(), timeout=LIMIT_S)
    remove_placement_group(group)
    eventually(lambda: not running(pid), what="the end of its actor")
    after = troupe.remote(num_gpus=1)(Taker).remote()
    assert troupe.get(after.take.remote(0.7), timeout=LIMIT_S) == 1.0


def test_a_group_of_actors_reduces_by_nccl(idle: Home) -> None:
    class Member:
        def reduce(self) -> tuple[list, str]:
            import torch

            from troupe.util import collective

            collective.init_collective_group(1, 0, backend="nccl", group_name="one")
            value = torch.full((3,), 2.0, device="cuda")
            collective.allreduce(value, group_name="one")
            collective.broadcast(value, 0, group_name="one")
            collective.synchronize(0)
            collective.destroy_collective_group("one")
            return value.tolist(), str(value.device)

    actor = troupe.remote(num_gpus=1)(Member).remote()
    assert troupe.get(actor.reduce.remote(), timeout=LIMIT_S) == ([2.0] * 3, "cuda:0")


def test_many_short_actors_leave_nothing(idle: Home) -> None:
    before = card.used_mib()
    for _ in range(8):
        actor = troupe.remote(num_gpus=1)(Taker).remote()
        assert troupe.get(actor.take.remote(0.05), timeout=LIMIT_S) == 1.0
        troupe.kill(actor)
    card.free_again(before + 64)
