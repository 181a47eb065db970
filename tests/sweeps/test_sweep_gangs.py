"""Trials that are gangs: a process group over their ranks, rank 0's reports, stops that reach all,
a failure by its cause.

Method: sweeps of two ranks on CPUs, with torch's gloo.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home

from troupe import tune

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@tune.sweep(
    remote=True,
    metric="x",
    mode="max",
    ranks=2,
    cpus=0.5,
    space={"a": tune.grid_search([1, 2])},
    max_t=3,
)
def train(a: int, folder: str, how: str = "") -> None:
    """Sum over the ranks; all of them or rank 0 reports; each writes down its end."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, context = dist.get_rank(), tune.get_context()
    assert (context.get_world_rank(), context.get_world_size(), context.get_local_rank()) == (
        rank,
        2,
        rank,
    )
    try:
        for step in range(5):
            total = torch.tensor([float(a * (rank + 1))])
            dist.all_reduce(total)
            if how == "fails" and rank == 1 and step == 1:
                raise KeyError("rank one's own")
            if how != "rank 0 alone" or rank == 0:
                tune.report({"x": total.item() + step, "name": context.get_trial_name()})
    finally:
        Path(folder, f"{a}-{rank}").write_text("finally")


def test_ranks_have_a_group_and_a_stop_reaches_all_of_them(idle: Home, tmp_path: Path) -> None:
    grid = train.options(storage=tmp_path, name="all").sweep(folder=str(tmp_path))
    assert [(each.metrics["x"], each.metrics["training_iteration"]) for each in grid] == [
        (5.0, 3),
        (8.0, 3),
    ], grid.errors
    assert sorted(path.name for path in tmp_path.glob("?-?")) == ["1-0", "1-1", "2-0", "2-1"]
    assert all(each.metrics["name"] == f"train_{each.trial_id}" for each in grid)


def test_rank_0_alone_may_report(idle: Home, tmp_path: Path) -> None:
    grid = train.options(storage=tmp_path, name="one", max_t=None).sweep(
        folder=str(tmp_path), how="rank 0 alone"
    )
    assert [each.metrics["training_iteration"] for each in grid] == [5, 5] and not grid.errors


def test_what_another_rank_fails_of_is_the_trials_failure(idle: Home, tmp_path: Path) -> None:
    grid = train.options(storage=tmp_path, name="fails").sweep(folder=str(tmp_path), how="fails")
    assert [type(each.error) is not None and isinstance(each.error, KeyError) for each in grid] == [
        True,
        True,
    ], grid.errors
    assert all("rank one's own" in str(each.error) for each in grid)


@tune.sweep(
    remote=True,
    metric="x",
    mode="max",
    ranks=3,
    cpus=0.3,
    quiet=True,
    space={"leaves": tune.grid_search([0, 1])},
)
def left(leaves: int, is_needed: bool) -> None:
    """End one rank after two operations, rank 1 by `sys.exit(0)`; the others wait for it in a third
    one, or need it no more."""
    import threading

    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        tune.report({"x": 1.0})
    others = dist.new_group([rank for rank in range(3) if rank != leaves])
    for _ in range(2):
        dist.all_reduce(torch.ones(1))
    if dist.get_rank() == leaves:
        if leaves == 1:
            sys.exit(0)
        return
    if not is_needed:
        if dist.get_rank() == 2:
            threading.Event().wait(8.0)  # longer than it takes to find that a rank has left
        dist.all_reduce(torch.ones(1), group=others)
    else:
        dist.all_reduce(torch.ones(1))


def test_a_rank_that_ends_while_others_wait_for_it_is_named(idle: Home, tmp_path: Path) -> None:
    grid = left.options(storage=tmp_path, name="needed").sweep(is_needed=True)
    for each in grid:
        said = rf"rank {each.config['leaves']} returned after 2 operations; ranks? [0-2, ]+ waits? for it in operation 3 \(all_reduce\) of process group 0"
        assert re.search(said, str(each.error)), each.error
    assert not left.options(storage=tmp_path, name="healthy").sweep(is_needed=False).errors


def test_every_rank_has_imported_already_what_is_preimported(
    idle: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of the program's own, which writes down in which process it was imported: not in the
    ranks', but where they are forked from."""
    (tmp_path / "imported_before.py").write_text("import os\nPID = os.getpid()\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    @tune.sweep(
        remote=True,
        ranks=2,
        cpus=0.5,
        preimport=["imported_before"],
        storage=tmp_path,
        name="early",
        quiet=True,
    )
    def early() -> None:
        import os

        import torch
        import torch.distributed as dist

        loaded = (
            "imported_before" in sys.modules and sys.modules["imported_before"].PID != os.getpid()
        )
        dist.init_process_group("gloo")
        total = torch.tensor([int(loaded)])
        dist.all_reduce(total)
        tune.report({"loaded": total.item()})

    grid = early.sweep()
    assert not grid.errors and grid[0].metrics["loaded"] == 2, grid.errors
