"""Another process takes the place of a rank that died (docs/guides/recovery.md).

Method: ranks of Gloo in a loop of all-reduces; some are killed by their own hand, and what each
rank then is, the new one too, is its result.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from _loop import die, reduce_for_ever, who_am_i
from e2e_conftest import Home, eventually

from troupe import exceptions, train
from troupe.launch import current, distributed, submit_command

LIMIT_S = 180


@pytest.mark.parametrize("victim", [0, 2])
def test_a_rank_is_replaced_and_keeps_its_number(idle: Home, victim: int) -> None:
    @distributed(processes=4, remote=True, on_rank_death="replace")
    def job(victim: int) -> dict:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                if current().group_epoch == 1:
                    dist.barrier()
                    if attempt.rank == victim:
                        die()
                    reduce_for_ever()
                result = who_am_i(attempt)
        return result

    results = job.submit(victim).result(LIMIT_S)
    assert [each["is"] for each in results] == [(rank, 4) for rank in range(4)]
    assert [each["was"] for each in results] == [0, 1, 2, 3]
    for rank, each in enumerate(results):
        assert (each["sum"], each["epoch"], each["launch_epoch"]) == (4, 2, 1)
        new = rank == victim
        assert each["attempt"] == (1 if new else 2), "its first attempt meets the others' next one"
        assert each["replaces"] is new
        assert new or each["aborted"].dead[victim]["signal"] == 9


def test_two_at_once_and_the_replacement_too(idle: Home) -> None:
    @distributed(processes=4, remote=True, on_rank_death="replace")
    def job() -> dict:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                dist.barrier()
                if attempt.rank in (1, 3) and not current().replaces:
                    die()
                if attempt.rank == 3 and current().group_epoch == 3:
                    die()
                if current().group_epoch < 4:
                    reduce_for_ever()
                result = who_am_i(attempt)
        return result

    results = job.submit().result(LIMIT_S)
    assert [each["is"] for each in results] == [(rank, 4) for rank in range(4)]
    assert {each["epoch"] for each in results} == {4} and [
        each["replaces"] for each in results
    ] == [False, True, False, True]


def test_a_death_while_the_group_is_formed_anew(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="replace")
    def job() -> dict:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                if current().group_epoch == 1:
                    dist.barrier()
                    if attempt.rank == 2:
                        die()
                    try:
                        reduce_for_ever()
                    finally:
                        if attempt.rank == 1:  # has heard of the first death, and does not come
                            die()
                result = who_am_i(attempt)
        return result

    results = job.submit().result(LIMIT_S)
    assert [each["replaces"] for each in results] == [False, True, True] and {
        each["epoch"] for each in results
    } == {3}


def test_a_crash_loop_ends_the_launch_and_says_so(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="replace")
    def job() -> None:
        import torch.distributed as dist

        if current().replaces:
            die(6)
        for attempt in train.attempts("gloo"):
            with attempt:
                dist.barrier()
                if attempt.rank == 2:
                    die()
                reduce_for_ever()

    with pytest.raises(exceptions.LaunchError) as failed:
        job.submit().result(LIMIT_S)
    assert (failed.value.rank, failed.value.signal) == (2, 6)
    assert (
        "it is the 3rd process in a row in this rank's place that died before it was in a group"
        in str(failed.value)
    )


def test_what_a_replacement_raises_is_a_failure(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="replace")
    def job() -> None:
        import torch.distributed as dist

        if current().replaces:
            raise KeyError("lr")
        for attempt in train.attempts("gloo"):
            with attempt:
                dist.barrier()
                if attempt.rank == 0:
                    die()
                reduce_for_ever()

    with pytest.raises(KeyError) as failed:
        job.submit().result(LIMIT_S)
    assert failed.value.rank == 0 and "'lr'" in str(failed.value)


def test_below_the_minimum_the_whole_gang_begins_again(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="replace", min_processes=2, max_attempts=2)
    def job() -> dict:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                if current().epoch == 1:
                    dist.barrier()
                    if attempt.rank > 0:
                        die()
                    reduce_for_ever()
                result = who_am_i(attempt)
        return result

    results = job.submit().result(LIMIT_S)
    # The two may be heard of one after the other, and both be replaced.
    assert {(each["launch_epoch"], each["is"][1]) for each in results} in ({(2, 3)}, {(1, 3)})


class Kept:
    """A replacement that stands still before it comes: what is done meanwhile ends the launch."""

    def __init__(self, folder: Path, **options: Any) -> None:
        @distributed(processes=3, remote=True, on_rank_death="replace", **options)
        def job(folder: str) -> None:
            import torch.distributed as dist

            if current().replaces:
                Path(folder, "here").write_text(str(os.getpid()))
                signal.pause()
            for attempt in train.attempts("gloo"):
                with attempt:
                    dist.barrier()
                    if attempt.rank == 1:
                        die()
                    reduce_for_ever()

        self.handle = job.submit(str(folder))
        eventually(lambda: (folder / "here").exists(), timeout=LIMIT_S, what="the replacement")


def test_a_cancel_in_the_middle(idle: Home, tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.handle.cancel(grace=0.1)
    with pytest.raises(exceptions.LaunchCancelledError):
        kept.handle.result(LIMIT_S)


def test_the_launchs_timeout_in_the_middle(idle: Home, tmp_path: Path) -> None:
    kept = Kept(tmp_path, timeout=45, stop_grace=0.1)
    with pytest.raises(exceptions.GetTimeoutError):
        kept.handle.result(LIMIT_S)


def test_one_that_does_not_come_is_replaced_in_turn(idle: Home, tmp_path: Path) -> None:
    @distributed(processes=3, remote=True, on_rank_death="replace", reform_timeout=20)
    def job(folder: str) -> dict:
        import torch.distributed as dist

        if current().replaces and not Path(folder, "seen").exists():
            Path(folder, "seen").touch()
            signal.pause()
        for attempt in train.attempts("gloo"):
            with attempt:
                if current().group_epoch == 1:
                    dist.barrier()
                    if attempt.rank == 1:
                        die()
                    reduce_for_ever()
                result = who_am_i(attempt)
        return result

    results = job.submit(str(tmp_path)).result(LIMIT_S)
    assert {each["epoch"] for each in results} == {3}
    assert "within 20 s of another rank's death" in results[0]["aborted"].dead[1]["cause"]


def test_a_script_goes_on_too(idle: Home, tmp_path: Path) -> None:
    script = tmp_path / "replaced.py"
    script.write_text(
        "import os, sys\nimport torch\nimport torch.distributed as dist\nfrom troupe import "
        "train\nfrom troupe.launch import current\n"
        "for attempt in train.attempts('gloo'):\n"
        "    with attempt:\n"
        "        dist.barrier()\n"
        "        if current().group_epoch == 1 and attempt.rank == 1:\n            "
        "os.kill(os.getpid(), 9)\n"
        "        while current().group_epoch == 1:\n            dist.all_reduce(torch.ones(1))\n"
        "        print('size', dist.get_world_size(), current().replaces, flush=True)\n"
    )
    results = submit_command(
        [str(script)], processes=3, remote=True, on_rank_death="replace"
    ).result(LIMIT_S)
    assert results == [None, None, None]
    done = idle.run(
        "submit",
        "--ranks",
        "3",
        "--cpus-per-rank",
        "0",
        "--on-rank-death",
        "replace",
        "--reform-timeout",
        "100",
        str(script),
        timeout=LIMIT_S,
    )
    assert done.stdout.count("size 3 False") == 2 and done.stdout.count("size 3 True") == 1, (
        done.stdout + done.stderr
    )


def test_groups_of_the_programs_own_are_named_alike(idle: Home) -> None:
    """A new rank has made and destroyed no groups before, of which torch keeps count; and groups by
    a hash of their ranks count apart."""

    @distributed(processes=3, remote=True, on_rank_death="replace")
    def job() -> int:
        import torch
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                if current().group_epoch == 1:
                    made = [dist.new_group([0, 1, 2])]
                    if attempt.rank < 2:
                        made.append(dist.new_group([0, 1], use_local_synchronization=True))
                    # all have made them: who destroys one ends its connections to the others
                    dist.barrier()
                    for group in made:
                        dist.destroy_process_group(group)
                    dist.barrier()
                    if attempt.rank == 1:
                        die()
                    reduce_for_ever()
                one = torch.ones(1)
                dist.all_reduce(one, group=dist.new_group([0, 1, 2]))
                if attempt.rank < 2:
                    dist.all_reduce(
                        one, group=dist.new_group([0, 1], use_local_synchronization=True)
                    )
                result = int(one)
        return result

    assert job.submit().result(LIMIT_S) == [6, 6, 3]


def test_reform_by_hand(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="replace")
    def job() -> tuple:
        import torch
        import torch.distributed as dist

        told = ""
        if current().replaces:
            try:
                dist.init_process_group("gloo")
            except RuntimeError as error:
                told = str(error)
            place = train.reform("gloo")
        else:
            dist.init_process_group("gloo")
            dist.barrier()
            if dist.get_rank() == 0:
                die()
            try:
                reduce_for_ever()
            except RuntimeError:
                place = train.reform("gloo")
        one = torch.ones(1)
        dist.all_reduce(one)
        return (*place, int(one), told)

    first, *others = job.submit().result(LIMIT_S)
    assert first[:3] == (0, 3, 3) and others == [(1, 3, 3, ""), (2, 3, 3, "")]
    assert (
        "this process has taken the place of a rank that died" in first[3]
        and "troupe.train.reform()" in first[3]
    ), first[3]


def test_ctrl_c_in_the_middle(idle: Home, tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.handle.stop("Ctrl-C in the caller", by=signal.SIGINT, grace=0.1)
    with pytest.raises(exceptions.LaunchCancelledError, match="Ctrl-C in the caller"):
        kept.handle.result(LIMIT_S)
