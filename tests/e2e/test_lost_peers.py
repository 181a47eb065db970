"""A rank that waits in a collective for one that is gone hears of it from the head, not by its own patience of half an hour.

Method: Gloo groups, where a death is noticed by the neighbours alone, and an error by nobody, since the rank that raised keeps its
connections until all is decided; each rank that comes out of its collective writes a file, which one that is killed in it does not.
"""
from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from conftest import Home

from troupe import exceptions
from troupe.launch import distributed

WITHIN_S = 120.0


def waits_for_rank_3(folder: str, how: str) -> None:
    """Rank 3 ends while the others are in an all-reduce: their handlers and cleanup run, whatever they wait in."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, values = dist.get_rank(), torch.ones(1000)
    group = dist.new_group([0, 1, 2, 3])
    dist.all_reduce(values)
    dist.barrier()
    if rank == 3 and how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 3:
        raise ValueError("of rank 3")
    try:
        dist.all_reduce(values, group=group)
    finally:
        Path(folder, str(rank)).write_text("whole")


@pytest.mark.parametrize("how", ["killed", "raises"])
def test_all_ranks_leave_a_collective_with_one_that_is_lost(cluster: Home, tmp_path: Path, how: str) -> None:
    job = distributed(processes=4, remote=True)(waits_for_rank_3)
    handle = job.submit(str(tmp_path), how)
    with pytest.raises(exceptions.TroupeError) as caught:
        handle.result(WITHIN_S)
    assert ("SIGKILL" if how == "killed" else "ValueError: of rank 3") in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2"]
    ends = {each["rank"]: each["outcome"] for each in handle.status()["rank_infos"]}
    if how == "raises":  # of a killed one its neighbours hear by themselves, perhaps before they are told
        assert ends == {0: "cancelled", 1: "cancelled", 2: "cancelled", 3: "failed"}, "what a stop did is no failure of theirs"
