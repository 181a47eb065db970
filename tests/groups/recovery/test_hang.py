"""A rank that keeps others waiting is named, and with hang_timeout it is ended, as a death
(docs/guides/recovery.md).

Method: ranks of Gloo, of which one stops itself, or is busy, once all have met; what the caller
sees, and what is left, is read.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from _loop import who_am_i
from e2e_conftest import Home, eventually, running

from troupe import exceptions, train
from troupe.launch import current, distributed, submit_command

LIMIT_S = 180
HANG_S = 8


def stop_here(folder: str) -> None:
    """SIGSTOP, to itself: nothing of this process says anything."""
    Path(folder, "pid").write_text(str(os.getpid()))
    os.kill(os.getpid(), signal.SIGSTOP)


def busy_here(folder: str) -> None:
    """The main thread works on, and comes to no collective."""
    Path(folder, "pid").write_text(str(os.getpid()))
    while True:
        sum(range(1000))


@pytest.mark.parametrize(
    ("keep", "backend"),
    [(stop_here, "gloo"), (busy_here, "gloo"), (stop_here, "troupe"), (busy_here, "troupe")],
)
def test_a_rank_that_keeps_others_waiting_is_named_and_killed(
    idle: Home, tmp_path: Path, keep: Any, backend: str
) -> None:
    @distributed(processes=3, remote=True, hang_timeout=HANG_S)
    def job(folder: str, keep: Any) -> None:
        import torch
        import torch.distributed as dist

        dist.init_process_group(backend)
        dist.barrier()
        if dist.get_rank() == 1:
            keep(folder)
        dist.all_reduce(torch.ones(1))

    with pytest.raises(exceptions.LaunchError) as failed:
        job.submit(str(tmp_path), keep).result(LIMIT_S)
    words = str(failed.value)
    assert (failed.value.rank, failed.value.host, failed.value.signal) == (1, "one", 9), words
    assert "rank 1 hung on one" in words and "hung: it has kept ranks 0, 2 waiting for " in words, (
        words
    )
    assert "(all_reduce) of process group 0, over hang_timeout=8 s" in words, words
    if keep is busy_here:
        assert "sum(range(1000))" in words, "where it was"
    else:
        assert "it says nothing: it is stopped, or in code that keeps Python's lock" in words
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not running(pid), what="the end of the rank that kept the others waiting")


def test_a_rank_may_wait_in_a_thread_beside_its_main_one(idle: Home, tmp_path: Path) -> None:
    @distributed(processes=3, remote=True, hang_timeout=HANG_S)
    def job(folder: str) -> None:
        import torch
        import torch.distributed as dist

        def learn() -> None:
            dist.barrier()
            if dist.get_rank() == 1:
                busy_here(folder)
            dist.all_reduce(torch.ones(1))

        dist.init_process_group("gloo")
        thread = threading.Thread(target=learn)
        thread.start()
        thread.join()

    with pytest.raises(
        exceptions.LaunchError,
        match=r"hung: it has kept ranks 0, 2 waiting for [^ ]+ s in operation [0-9]+ \(all_reduce\)",
    ) as failed:
        job.submit(str(tmp_path)).result(LIMIT_S)
    assert failed.value.rank == 1


@pytest.mark.parametrize("policy", ["shrink", "replace"])
def test_it_is_a_death_as_any_other(idle: Home, tmp_path: Path, policy: str) -> None:
    @distributed(processes=3, remote=True, hang_timeout=HANG_S, on_rank_death=policy)
    def job(folder: str) -> dict:
        import torch
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                dist.barrier()
                if attempt.rank == 1 and current().group_epoch == 1:
                    stop_here(folder)
                if current().group_epoch == 1:
                    dist.all_reduce(torch.ones(1))
                result = who_am_i(attempt)
        return result

    results = job.submit(str(tmp_path)).result(LIMIT_S)
    ends = [results[rank]["aborted"] for rank in (0, 2)]
    assert [(each.op, each.first_late_rank) for each in ends] == [("all_reduce", 1)] * 2 and ends[
        0
    ].seq == ends[1].seq > 1
    if policy == "replace":
        assert [each["is"] for each in results] == [(0, 3), (1, 3), (2, 3)] and results[1][
            "replaces"
        ]
        assert results[0]["aborted"].dead[1]["cause"].startswith("hung: ")
        return
    assert isinstance(results[1], train.RankLost) and results[1].cause.startswith(
        "hung: it has kept ranks 0, 2 waiting"
    ), results[1]
    assert results[1].exit_code == 137
    assert [results[rank]["is"] for rank in (0, 2)] == [(0, 2), (1, 2)]


def test_in_the_smaller_group_it_is_named_by_its_rank_in_the_launch(
    idle: Home, tmp_path: Path
) -> None:
    @distributed(processes=4, remote=True, hang_timeout=HANG_S, on_rank_death="shrink")
    def job(folder: str) -> int:
        import torch
        import torch.distributed as dist

        for attempt in train.attempts("gloo"):
            with attempt:
                dist.barrier()
                if attempt.number == 1 and attempt.rank == 0:
                    os.kill(os.getpid(), 9)
                if attempt.number == 2 and current().launch_rank == 2:
                    busy_here(folder)
                if attempt.number < 3:
                    dist.all_reduce(torch.ones(1))
                    dist.all_reduce(torch.ones(1))
                size = dist.get_world_size()
        return size

    results = job.submit(str(tmp_path)).result(LIMIT_S)
    assert [type(each) for each in results] == [train.RankLost, int, train.RankLost, int]
    assert results[2].cause.startswith("hung: it has kept ranks 1, 3 waiting"), results[2]


def test_one_that_is_only_slow_is_warned_of_and_the_launch_succeeds(idle: Home) -> None:
    @distributed(
        processes=3,
        remote=True,
        runtime_env={"env_vars": {"TROUPE_LATE_RANK_S": "2"}},
        hang_timeout=150,
    )
    def job() -> int:
        import threading

        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        dist.barrier()
        if dist.get_rank() == 0:
            threading.Event().wait(12)
        one = torch.ones(1)
        dist.all_reduce(one)
        return int(one)

    handle = job.submit()
    assert handle.result(LIMIT_S) == [3, 3, 3]
    said = "\n".join(line for rank in range(3) for line in handle.logs(rank))
    assert (
        "rank 0 has not come to operation" in said
        and "Who keeps others waiting for 150 s is ended (hang_timeout)" in said
    ), said


def test_a_rank_that_waits_for_another_in_a_group_of_theirs_is_not_ended(
    idle: Home, tmp_path: Path
) -> None:
    @distributed(processes=3, remote=True, hang_timeout=HANG_S)
    def job(folder: str) -> None:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        pair = dist.new_group([1, 2])
        dist.barrier()
        if dist.get_rank() == 2:
            busy_here(folder)
        if dist.get_rank() == 1:
            dist.all_reduce(torch.ones(1), group=pair)
        dist.all_reduce(torch.ones(1))

    with pytest.raises(exceptions.LaunchError) as failed:
        job.submit(str(tmp_path)).result(LIMIT_S)
    assert failed.value.rank == 2, failed.value


def test_of_a_script_too(idle: Home, tmp_path: Path) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(
        "import os, signal\nimport torch\nimport torch.distributed as "
        "dist\ndist.init_process_group('gloo')\ndist.barrier()\n"
        "if dist.get_rank() == 1:\n    os.kill(os.getpid(), "
        "signal.SIGSTOP)\ndist.all_reduce(torch.ones(1))\n"
    )
    done = idle.run(
        "submit",
        "--ranks",
        "2",
        "--cpus-per-rank",
        "0",
        "--hang-timeout",
        "6",
        str(script),
        timeout=LIMIT_S,
        ok=False,
    )
    assert done.returncode == 137 and "rank 1 hung on one" in done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("given", [0, 0.5, -1, True, "15", float("inf")])
def test_what_cannot_be_meant_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="hang_timeout must be 1 to "):
        distributed(processes=2, hang_timeout=given)(print)


def test_an_executed_program_is_refused(cluster: Home) -> None:
    with pytest.raises(ValueError, match="hang_timeout=15 is for scripts and modules"):
        submit_command(["--", "true"], processes=2, remote=True, hang_timeout=15)
