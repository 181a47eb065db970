"""E2, W8: whichever rank is heard of first, the error names the one that was the cause; and ranks
that are done keep their connections until nobody needs them.

Four ranks on two nodes, in a loop of collectives, as in any training; one of them ends in every way
that a rank can. The others see closed connections, and say so. Many rounds of it:
`benchmarks/failure.py`.
"""

from __future__ import annotations

import signal
from typing import Any

import pytest

from troupe import exceptions
from troupe.launch import distributed

ROUNDS = 2


def training() -> Any:
    def loop(word: str) -> None:
        import ctypes
        import datetime
        import os
        import sys

        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=5))
        dist.barrier()
        for step in range(100_000):
            if step == 3 and dist.get_rank() == 2:
                exec(word, {"os": os, "sys": sys, "ctypes": ctypes})
                return
            dist.all_reduce(torch.ones(1000))

    return loop


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "raises": ("raise ValueError('diverged')", {"exit_code": 1}),
    "SIGKILL": ("os.kill(os.getpid(), 9)", {"exit_code": 137, "signal": signal.SIGKILL}),
    "SIGSEGV": ("ctypes.string_at(0)", {"exit_code": 139, "signal": signal.SIGSEGV}),
    "os._exit": ("os._exit(5)", {"exit_code": 5}),
    "sys.exit": ("sys.exit(3)", {"exit_code": 3}),
    "sys.exit(0)": ("sys.exit(0)", {}),
    "returns early": ("pass", {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_E2_the_cause_is_named_and_not_its_victim(hosts: dict[str, str], way: str) -> None:
    word, expected = WAYS[way]
    job = distributed(processes=4, strategy="SPREAD", remote=True)(training())
    for _ in range(ROUNDS):
        with pytest.raises(exceptions.LaunchError) as caught:
            job.submit(word).result(120)
        error = caught.value
        assert error.rank == 2, str(error)
        for name, value in expected.items():
            assert getattr(error, name) == value, str(error)
        if way in ("sys.exit(0)", "returns early"):
            first = str(error).splitlines()[
                0
                # Caused by the group's own timeout, or by the question who waits for whom:
                # whichever is first
            ]
            assert (
                "rank 2 returned before rank" in first
                or "rank 2 returned after 4 operations; ranks 0, 1, 3 wait for it" in first
            ), str(error)
        if way == "raises":
            assert isinstance(error, ValueError)


def test_W8_a_rank_that_returns_first_closes_no_connection_that_others_still_make(
    hosts: dict[str, str],
) -> None:
    @distributed(processes=4, remote=True)
    def first() -> int:
        import torch.distributed as dist

        dist.init_process_group()
        return dist.get_rank()

    for _ in range(4):
        assert first.submit().result(60) == [0, 1, 2, 3]


def test_W8_a_gather_of_which_only_rank_0_waits(hosts: dict[str, str]) -> None:
    @distributed(processes=4, remote=True)
    def gather() -> float:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        mine = torch.full((100_000,), float(dist.get_rank()))
        parts = [torch.empty_like(mine) for _ in range(4)] if dist.get_rank() == 0 else None
        dist.gather(mine, parts)
        return sum(float(part[0]) for part in parts) if parts else 0.0

    for _ in range(4):
        assert gather.submit().result(60) == [6.0, 0.0, 0.0, 0.0]


def test_an_exception_that_cannot_say_itself_is_named_all_the_same(hosts: dict[str, str]) -> None:
    @distributed(processes=1, remote=True)
    def job() -> None:
        class Bad(Exception):
            def __str__(self) -> str:
                return "lost " + self.name  # type: ignore[attr-defined]

        raise Bad

    with pytest.raises(exceptions.LaunchError) as caught:
        job.submit().result(60)
    assert caught.value.exit_code == 1 and "raised Bad: (its __str__ raised AttributeError)" in str(
        caught.value
    )
