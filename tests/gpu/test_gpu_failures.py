"""A rank, an actor or a task that ends by its GPU: the error says what it was, and the device is
there for the next one.

Method: one rank does what breaks it; the launch that follows computes on the same card.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Home
from waiting import waiting_launch

import troupe
from troupe import exceptions
from troupe.launch import distributed

pytestmark = pytest.mark.gpu
LIMIT_S = 60.0


def rank(what: str) -> float:
    """Breaks in that way; 4.0 where in none."""
    import ctypes

    import torch

    x = torch.ones(4, device="cuda")
    if what == "assert":
        x[torch.tensor([9], device="cuda")].cpu()
    if what == "illegal access":
        kernel = torch.cuda._compile_kernel(
            'extern "C" __global__ void wild(float* x) { ((float*)16)[threadIdx.x] = x[0]; }',
            "wild",
        )
        kernel((1, 1, 1), (32, 1, 1), (x,))
        torch.cuda.synchronize()
    if what == "memory":
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    if what == "memory in bits":
        kept = []
        while True:
            kept.append(torch.ones(1 << 32, dtype=torch.uint8, device="cuda"))
    if what in ("killed", "exit"):
        torch.cuda._sleep(1 << 50)
        if what == "exit":
            os._exit(7)
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "crash":
        ctypes.string_at(8)
    return x.sum().item()


WAYS = {
    "assert": (
        RuntimeError,
        "rank 0 raised (torch.)?AcceleratorError: CUDA error: device-side assert triggered",
        1,
    ),
    "illegal access": (
        RuntimeError,
        "rank 0 raised (torch.)?AcceleratorError: CUDA error: an illegal memory access was "
        "encountered",
        1,
    ),
    "memory": (
        RuntimeError,
        r"rank 0 raised (torch.)?OutOfMemoryError: CUDA out of memory. Tried to allocate 1048576.00 GiB",
        1,
    ),
    "memory in bits": (
        RuntimeError,
        r"rank 0 raised (torch.)?OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB",
        1,
    ),
    "killed": (exceptions.LaunchError, "rank 0 was killed by SIGKILL", 137),
    "exit": (exceptions.LaunchError, "rank 0 exited with code 7", 7),
    "crash": (exceptions.LaunchError, "rank 0 was killed by SIGSEGV", 139),
}


@pytest.fixture
def next_computes(idle: Home) -> Iterator[None]:
    """Asserts that the next launch has a device that works."""
    yield
    assert distributed(gpus=1, remote=True, timeout=LIMIT_S)(rank).distributed("") == [4.0]


@pytest.mark.parametrize("what", WAYS)
def test_the_error_of_a_launch_names_what_broke(next_computes: None, what: str) -> None:
    kind, text, code = WAYS[what]
    with pytest.raises(exceptions.LaunchError, match=text) as caught:
        distributed(gpus=1, remote=True, timeout=LIMIT_S)(rank).distributed(what)
    assert isinstance(caught.value, kind)
    assert caught.value.rank == 0 and caught.value.exit_code == code
    assert not isinstance(caught.value, exceptions.OutOfMemoryError), "that is the host's"


def test_it_is_caught_as_torchs_own(next_computes: None) -> None:
    import torch

    with pytest.raises(torch.OutOfMemoryError) as caught:
        distributed(gpus=1, remote=True, timeout=LIMIT_S)(rank).distributed("memory")
    assert isinstance(caught.value, torch.cuda.OutOfMemoryError)
    with pytest.raises(torch.AcceleratorError):
        distributed(gpus=1, remote=True, timeout=LIMIT_S)(rank).distributed("assert")


def test_another_attempt_has_a_device_that_works(next_computes: None) -> None:
    def first_breaks() -> float:
        return rank("assert" if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else "")

    assert distributed(gpus=1, remote=True, timeout=LIMIT_S, max_attempts=2)(
        first_breaks
    ).distributed() == [4.0]


def test_of_an_actor_and_of_a_task(next_computes: None) -> None:
    class Breaks:
        def do(self, what: str) -> float:
            return rank(what)

    actor = troupe.remote(num_gpus=1)(Breaks).remote()
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        troupe.get(actor.do.remote("memory"), timeout=LIMIT_S)
    assert troupe.get(actor.do.remote(""), timeout=LIMIT_S) == 4.0
    with pytest.raises(RuntimeError, match="device-side assert"):
        troupe.get(actor.do.remote("assert"), timeout=LIMIT_S)
    troupe.kill(actor)
    again = troupe.remote(num_gpus=1)(Breaks).remote()
    with pytest.raises(exceptions.ActorDiedError, match="SIGKILL"):
        troupe.get(again.do.remote("killed"), timeout=LIMIT_S)
    with pytest.raises(exceptions.WorkerCrashedError, match="SIGKILL"):
        troupe.get(troupe.remote(num_gpus=1, max_retries=0)(rank).remote("killed"), timeout=LIMIT_S)


def test_a_launch_that_is_cancelled_while_the_device_works(next_computes: None) -> None:
    """The main thread waits for the device, where no signal's handler runs: it is killed when its
    time is over."""
    handle = waiting_launch(LIMIT_S)
    handle.cancel(grace=0.5)
    assert handle.status()["outcome"] == "cancelled"


def test_nccls_own_errors_are_told(next_computes: None) -> None:
    """Two ranks of the program's own on one device, which NCCL refuses."""

    def twice(_: Any = None) -> None:
        import torch.multiprocessing as mp

        mp.spawn(_member, args=(), nprocs=2)

    with pytest.raises(exceptions.LaunchError, match="(?i)duplicate gpu|nccl"):
        distributed(gpus=1, remote=True, timeout=LIMIT_S)(twice).distributed()


def _member(number: int) -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("nccl", rank=number, world_size=2)
    dist.all_reduce(torch.ones(1, device="cuda"))
