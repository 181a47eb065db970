"""What the ranks of these tests do: they wait for each other until some die, and say what they are
afterwards."""

from __future__ import annotations

import os
from typing import Any


def reduce_for_ever() -> None:
    """Until a death ends the attempt."""
    import torch
    import torch.distributed as dist

    values = torch.ones(1 << 14)
    while True:
        dist.all_reduce(values)
        values.fill_(1)


def who_am_i(attempt: Any) -> dict:
    """What this rank is, by whoever says it, and the sum over all that live."""
    import torch
    import torch.distributed as dist

    from troupe.launch import current

    one = torch.ones(1)
    dist.all_reduce(one)
    said = {
        (dist.get_rank(), dist.get_world_size()),
        (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])),
        (current().rank, current().world_size),
        (attempt.rank, attempt.world_size),
    }
    assert len(said) == 1, said
    return {
        "was": current().launch_rank,
        "is": said.pop(),
        "sum": int(one),
        "attempt": attempt.number,
        "epoch": current().group_epoch,
        "launch_epoch": current().epoch,
        "replaces": current().replaces,
        "aborted": attempt.aborted,
        "pid": os.getpid(),
    }


def die(signal: int = 9) -> None:
    os.kill(os.getpid(), signal)
