"""A launch goes on in its processes after some of its ranks died (docs/guides/recovery.md).

Method: ranks of Gloo in a loop of all-reduces; one is killed by its own hand once all are in the
loop, so that the others wait for it, and those that are no neighbours of it in the ring would wait
half an hour. What each rank then is, by torch, by its environment and by Troupe, is its result.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from _loop import (
    die,
    exchange,
    kill_once_stopped,
    reduce_for_ever,
    stop_amid_messages,
    who_am_i,
)
from e2e_conftest import Home, eventually, running

from troupe import exceptions, train
from troupe.launch import distributed, ray_launch, submit_command

LIMIT_S = 180


@pytest.mark.parametrize("victim", [0, 2])
def test_the_others_go_on_in_a_smaller_group(idle: Home, victim: int) -> None:
    @distributed(processes=4, remote=True, on_rank_death="shrink", min_processes=2)
    def job(victim: int) -> dict:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                if attempt.number == 1:
                    dist.barrier()
                    if attempt.rank == victim:
                        die()
                    reduce_for_ever()
                result = who_am_i(attempt)
        return result

    results = job.submit(victim).result(LIMIT_S)
    lost = results.pop(victim)
    assert isinstance(lost, train.RankLost), results
    assert (lost.rank, lost.exit_code, lost.host) == (
        victim,
        137,
        "one",
    ) and "SIGKILL" in lost.cause
    assert [each["is"] for each in results] == [(0, 3), (1, 3), (2, 3)], "dense, in the old order"
    assert [each["was"] for each in results] == [rank for rank in range(4) if rank != victim]
    for each in results:
        assert (each["sum"], each["attempt"], each["epoch"], each["launch_epoch"]) == (3, 2, 2, 1)
        aborted = each["aborted"]
        assert isinstance(aborted, train.GroupAborted) and isinstance(aborted, RuntimeError)
        assert (
            aborted.op == "all_reduce"
            and aborted.epoch == 1
            and aborted.seq > 0
            and aborted.first_late_rank is None
        )
        assert aborted.dead[victim]["exit_code"] == 137 and aborted.dead[victim]["signal"] == 9
        assert re.match(
            "the group of job, epoch 1, was aborted in all_reduce \\(operation \\d+\\): rank "
            f"{victim} .*SIGKILL",
            str(aborted),
        ), aborted


@pytest.mark.parametrize("operation", ["send", "isend", "all_reduce"])
def test_large_messages_to_a_rank_that_stops_and_is_killed_keep_nobody_from_the_next_group(
    idle: Home, tmp_path: Path, operation: str
) -> None:
    @distributed(processes=3, remote=True, on_rank_death="shrink", reform_timeout=120)
    def job(folder: str, operation: str) -> dict:
        import torch
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                if attempt.number == 1:
                    values = torch.ones(16 << 20)
                    dist.barrier()
                    if attempt.rank == 2:
                        stop_amid_messages(operation, values, Path(folder, "pid"))
                    elif attempt.rank == 0:
                        kill_once_stopped(operation, Path(folder, "pid"))
                    exchange(operation, attempt.rank, values)
                    reduce_for_ever()
                result = who_am_i(attempt)
        return result

    first, second, lost = job.submit(str(tmp_path), operation).result(LIMIT_S)
    assert isinstance(lost, train.RankLost) and "SIGKILL" in lost.cause, lost
    for each in (first, second):
        assert not isinstance(each, train.RankLost), each
        assert each["sum"] == 2 and set(each["aborted"].dead) == {2}
        assert "rank 2 " in str(each["aborted"])


def test_a_death_while_the_group_is_formed_anew_is_the_next_epoch(idle: Home) -> None:
    @distributed(processes=4, remote=True, on_rank_death="shrink")
    def job() -> dict:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                if attempt.number == 1:
                    dist.barrier()
                    if attempt.rank == 3:
                        die()
                    try:
                        reduce_for_ever()
                    finally:
                        if attempt.rank == 1:  # has heard of the first death, and does not come
                            die()
                result = who_am_i(attempt)
        return result

    first, second, third, fourth = job.submit().result(LIMIT_S)
    assert isinstance(second, train.RankLost) and isinstance(fourth, train.RankLost)
    assert [first["is"], third["is"]] == [(0, 2), (1, 2)]
    assert first["epoch"] == 3 and set(first["aborted"].dead) == {1, 3}


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("when", ["the others wait for it", "the others have been told"])
def test_a_rank_that_dies_before_the_group_was_ever_formed(
    idle: Home, tmp_path: Path, when: str, by_hand: bool
) -> None:
    @distributed(processes=3, remote=True, on_rank_death="shrink")
    def job(folder: str, when: str, by_hand: bool) -> tuple:
        import time

        import torch
        import torch.distributed as dist

        from troupe.launch import current

        def until(path: Path, there: bool) -> None:
            while path.exists() != there:
                time.sleep(0.01)  # lint-ok: a look at what other ranks have written

        if current().launch_rank == 2:
            for rank in range(2):
                until(Path(folder, str(rank)), True)
            die()
        waits = when == "the others wait for it"
        if (
            waits
        ):  # this one, and then the victim, which dies once the store is waited at or just before
            Path(folder, str(current().launch_rank)).touch()
        else:
            from troupe._process import group_epochs

            Path(folder, str(current().launch_rank)).touch()

            assert group_epochs.wait_lost(LIMIT_S)
        if by_hand:
            try:
                dist.init_process_group("gloo")
            except RuntimeError:
                place = train.reform("gloo")
        else:
            for attempt in train.attempts("gloo"):
                with attempt:
                    place = (attempt.rank, attempt.world_size)
        one = torch.ones(1)
        dist.all_reduce(one)
        return (*place, int(one))

    results = job.submit(str(tmp_path), when, by_hand).result(LIMIT_S)
    assert results[:2] == [(0, 2, 2), (1, 2, 2)] and isinstance(results[2], train.RankLost), results


def test_one_death_after_the_other(idle: Home) -> None:
    @distributed(processes=4, remote=True, on_rank_death="shrink")
    def job() -> dict:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                dist.barrier()
                if attempt.world_size == 1:
                    result = who_am_i(attempt)
                    continue
                if attempt.rank == attempt.world_size - 1:
                    die()
                reduce_for_ever()
        return result

    results = job.submit().result(LIMIT_S)
    assert results[0]["is"] == (0, 1) and results[0]["epoch"] == 4
    assert [type(each) for each in results[1:]] == [train.RankLost] * 3


def test_with_fewer_than_the_minimum_the_launch_fails_and_says_so(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="shrink", min_processes=2)
    def job() -> None:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                dist.barrier()
                if attempt.rank == attempt.world_size - 1:
                    die()
                reduce_for_ever()

    with pytest.raises(exceptions.LaunchError) as failed:
        job.submit().result(LIMIT_S)
    assert failed.value.rank == 1, "the one that was too many"
    assert "of 3 ranks 1 are left, and min_processes is 2" in str(failed.value)
    assert failed.value.signal == 9


def test_what_code_raises_is_a_failure_after_a_death_too(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="shrink")
    def job() -> None:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                dist.barrier()
                if attempt.number == 2:
                    raise KeyError("lr")
                if attempt.rank == 2:
                    die()
                reduce_for_ever()

    with pytest.raises(KeyError) as failed:
        job.submit().result(LIMIT_S)
    assert failed.value.rank in (0, 1) and "'lr'" in str(failed.value)


def test_without_attempts_the_death_is_the_failure(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="shrink")
    def job() -> None:
        import torch.distributed as dist

        dist.init_process_group("gloo")
        dist.barrier()
        if dist.get_rank() == 2:
            die()
        reduce_for_ever()

    with pytest.raises(exceptions.LaunchError) as failed:
        job.submit().result(LIMIT_S)
    assert (failed.value.rank, failed.value.signal) == (2, 9)


def test_who_does_not_come_is_named_and_is_a_death(idle: Home, tmp_path: Path) -> None:
    @distributed(processes=3, remote=True, on_rank_death="shrink", reform_timeout=30)
    def job(folder: str) -> dict:
        import signal

        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                if attempt.number == 1:
                    dist.barrier()
                    if attempt.rank == 2:
                        die()
                    if attempt.rank == 1:
                        Path(folder, "pid").write_text(str(os.getpid()))
                        signal.pause()
                    reduce_for_ever()
                result = who_am_i(attempt)
        return result

    results = job.submit(str(tmp_path)).result(LIMIT_S)
    assert results[0]["is"] == (0, 1)
    assert (
        "did not come to the re-form of the ranks' group (epoch 2) within 30 s of another rank's "
        "death" in results[1].cause
    )
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not running(pid), what="the end of the rank that did not come")


def test_reform_by_hand(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="shrink")
    def job() -> tuple:
        import torch
        import torch.distributed as dist

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
        return (
            *place,
            int(one),
            (place.rank, place.world_size) == (dist.get_rank(), dist.get_world_size()),
        )

    results = job.submit().result(LIMIT_S)
    assert isinstance(results[0], train.RankLost) and results[1:] == [
        (0, 2, 2, True),
        (1, 2, 2, True),
    ]


def test_who_has_returned_is_not_waited_for(idle: Home) -> None:
    @distributed(processes=3, remote=True, on_rank_death="shrink")
    def job() -> Any:
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                if attempt.number == 1:
                    dist.barrier()
                    if attempt.rank == 0:
                        return "first"
                    if attempt.rank == 1:
                        die()
                    reduce_for_ever()
                result = who_am_i(attempt)
        return result["is"]

    first, second, third = job.submit().result(LIMIT_S)
    assert (first, third) == ("first", (0, 1)) and isinstance(second, train.RankLost)


def test_a_script_recovers_too(idle: Home, tmp_path: Path) -> None:
    script = tmp_path / "recovers.py"
    script.write_text(
        "import os, sys\nimport torch\nimport torch.distributed as dist\nfrom troupe import train\n"
        "for attempt in train.attempts('gloo'):\n"
        "    with attempt:\n"
        "        dist.barrier()\n"
        "        if attempt.number == 1 and attempt.rank == 1:\n            os.kill(os.getpid(), "
        "9)\n"
        "        while attempt.number == 1:\n            dist.all_reduce(torch.ones(1))\n"
        "        print('size', dist.get_world_size(), flush=True)\n"
    )
    handle = submit_command([str(script)], processes=3, remote=True, on_rank_death="shrink")
    results = handle.result(LIMIT_S)
    assert isinstance(results[1], train.RankLost) and results[0] is results[2] is None
    assert "size 2" in "\n".join(handle.logs(0))
    done = idle.run(
        "submit",
        "--ranks",
        "3",
        "--cpus-per-rank",
        "0",
        "--on-rank-death",
        "shrink",
        "--min-processes",
        "2",
        str(script),
        timeout=LIMIT_S,
    )
    assert done.stdout.count("size 2") == 2, done.stdout + done.stderr


def test_a_plain_call_has_one_attempt() -> None:
    @distributed(processes=4, on_rank_death="shrink")
    def job() -> list[tuple]:
        import torch.distributed as dist

        seen = []
        for attempt in train.attempts("gloo"):
            with attempt:
                seen.append(
                    (
                        attempt.number,
                        attempt.rank,
                        attempt.world_size,
                        dist.get_world_size(),
                        attempt.aborted,
                    )
                )
        dist.destroy_process_group()
        return seen

    assert job() == [(1, 0, 1, 1, None)]


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"on_rank_death": "grow"}, ValueError, "'fail' .*'shrink' .*'replace' "),
        (
            {"on_rank_death": "replace", "min_processes": 4},
            ValueError,
            "min_processes must be 1 to 3, .*not 4",
        ),
        ({"min_processes": 2}, TypeError, "min_processes= goes with on_rank_death="),
        (
            {"on_rank_death": "shrink", "min_processes": 4},
            ValueError,
            "min_processes must be 1 to 3, .*not 4",
        ),
        (
            {"on_rank_death": "shrink", "min_processes": 0},
            TypeError,
            "min_processes must be a whole number of at least 1",
        ),
        (
            {"on_rank_death": "shrink", "reform_timeout": 0},
            ValueError,
            "reform_timeout must be more than 0",
        ),
        ({"on_rank_death": "shrink", "processes": 1}, ValueError, "needs at least 2 ranks"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        distributed(**{"processes": 4, **options})(print)
    if "processes" not in options:
        with pytest.raises(kind, match=words):
            distributed(processes=4)(print).options(**options)


def test_options_change_one_at_a_time() -> None:
    job = distributed(processes=4, on_rank_death="shrink", min_processes=3)(print)
    assert job.options(min_processes=2)._options.min_processes == 2
    with pytest.raises(ValueError, match="min_processes must be 1 to 1"):
        job.options(processes=2)


def test_a_driver_has_no_such_option() -> None:
    with pytest.raises(TypeError, match="on_rank_death"):
        ray_launch(processes=4, on_rank_death="shrink")(print)


def test_an_executed_program_hears_nothing_and_is_refused(cluster: Home) -> None:
    with pytest.raises(ValueError, match="on_rank_death='shrink' is for scripts and modules"):
        submit_command(["--", "true"], processes=2, remote=True, on_rank_death="shrink")


def test_misuse_of_attempts_is_told() -> None:
    import torch.distributed as dist

    with pytest.raises(RuntimeError, match="reform\\(\\) is for the ranks of a launch"):
        train.reform()
    with pytest.raises(ValueError, match="most must be"):
        next(train.attempts(most=0))
    attempts = train.attempts("gloo")
    next(attempts)
    with pytest.raises(RuntimeError, match="an attempt was not entered"):
        next(attempts)
    assert not dist.is_initialized()
