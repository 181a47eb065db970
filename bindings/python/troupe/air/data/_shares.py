"""The share of a dataset that this process reads: its rank's, and in a loader's worker that
worker's part of it."""

from __future__ import annotations

import os


def of_this_process() -> tuple[int, int]:
    """Return (this share, the number of shares).

    Ranks are those of torch's process group, else of RANK and WORLD_SIZE.

    Raises:
        ValueError: if only one of RANK and WORLD_SIZE is set outside of a process group: torchrun
        sets both.
    """
    import torch.distributed as dist
    import torch.utils.data

    rank, world = _ranks(dist)
    worker = torch.utils.data.get_worker_info()
    if worker is None:
        return rank, world
    return rank * worker.num_workers + worker.id, world * worker.num_workers


def _ranks(dist: object) -> tuple[int, int]:
    if dist.is_available() and dist.is_initialized():  # type: ignore[attr-defined]
        return dist.get_rank(), dist.get_world_size()  # type: ignore[attr-defined]
    given = {name: os.environ.get(name, "").strip() for name in ("RANK", "WORLD_SIZE")}
    if not any(given.values()):
        return 0, 1
    missing = [name for name, value in given.items() if not value]
    if missing:
        raise ValueError(
            f"{missing[0]} is not set, although {next(name for name in given if given[name])} is: "
            "start the script with torchrun, also for one GPU"
        )
    rank, world = int(given["RANK"]), int(given["WORLD_SIZE"])
    if not 0 <= rank < world:
        raise ValueError(f"RANK={rank} is no rank of WORLD_SIZE={world}")
    return rank, world
