"""How a rank, a driver, a caller can end: what the caller sees, every rank's exit code, what is
left.

The rows of docs/reference/deaths.md, with real processes forked by a warm zygote. `idle` sees to it
that all resources are free again after each, and the end of the module that no process and no
socket is left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Home, eventually, running, stand_still
from gangs import Gang, live

import troupe
from troupe import exceptions
from troupe.launch import ray_launch


@dataclass(frozen=True)
class Death:
    """Rank 1 of 3 is told `word`; the rest is what must be seen."""

    name: str
    word: str
    exit_code: int
    first_line: str
    raised: type[BaseException] = exceptions.LaunchError
    signal: int | None = None
    cause: str = ""
    status: int | None = None  # exit code where it is not the error's


DEATHS = [
    Death("raises", "{}['lr']", 1, "rank 1 raised KeyError: 'lr' on one", KeyError),
    Death("leaves by sys.exit", "sys.exit(3)", 3, "rank 1 left by sys.exit(3) on one"),
    Death("exits 3", "os._exit(3)", 3, "rank 1 exited with code 3 on one", cause="rank 1 on one ("),
    Death(
        "exits 0 without a value",
        "os._exit(0)",
        1,
        "rank 1 exited with code 0 without returning a value on one",
        status=0,
    ),
    Death(
        "killed by SIGKILL",
        "os.kill(os.getpid(), 9)",
        137,
        "rank 1 was killed by SIGKILL on one",
        signal=9,
        cause="ended: SIGKILL, peak RSS ",
    ),
    Death(
        "killed by SIGTERM",
        "os.kill(os.getpid(), 15)",
        143,
        "rank 1 was killed by SIGTERM on one",
        signal=15,
    ),
    Death("aborts", "os.abort()", 134, "rank 1 was killed by SIGABRT on one", signal=6),
    Death(
        "crashes",
        "__import__('ctypes').string_at(0)",
        139,
        "rank 1 was killed by SIGSEGV on one",
        signal=11,
    ),
    Death(
        "aborts in a thread that is not Python's",
        "(lambda c: (os.write(2, b'  what():  not enough\\n'), "
        "c.CDLL(None).pthread_create(c.byref(c.c_ulong()), None, "
        "c.CDLL(None).abort, None), signal.pause()))(__import__('ctypes'))",
        134,
        "rank 1 was killed by SIGABRT on one",
        signal=6,
        cause="    Fatal Python error: Aborted",
    ),
    Death(
        "has no address space left",
        "[__import__('resource').setrlimit(9, (1 << 30, 1 << 30)), [bytearray(1 << 28) for _ in "
        "range(99)]]",
        1,
        "rank 1 raised MemoryError",
        MemoryError,
    ),
]


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: death.name)
def test_a_rank_ends(idle: Home, tmp_path: Path, death: Death) -> None:
    gang = Gang(tmp_path / "gang", 3)
    gang.tell(1, death.word)
    error = gang.failure(exceptions.LaunchError)
    lines = str(error).splitlines()
    assert isinstance(error, death.raised), type(error).__mro__
    assert lines[0].startswith(death.first_line) and lines[0].endswith("(epoch 1 of 1)"), lines[0]
    assert any(death.cause in line for line in lines), lines
    assert "  the other 2 ranks are stopped; nothing of the launch stays on any node" in lines
    assert lines[-1] == f"  logs: troupe logs {gang.handle.id[:4]} --rank 1"
    assert (error.rank, error.host, error.exit_code, error.signal, error.epoch) == (
        1,
        "one",
        death.exit_code,
        death.signal,
        1,
    )
    said = "last words of rank 1"
    assert said in error.log_tail
    shown = (
        lines[lines.index("  last lines of its stderr:") : -1]
        if "  last lines of its stderr:" in lines
        else []
    )
    if death.signal in (6, 11):
        assert "    Fatal Python error" in "\n".join(shown), lines
        assert ("    Current thread 0x" in "\n".join(shown)) == ("thread" not in death.name), lines
        assert ("      what():  not enough" in shown) == ("thread" in death.name), lines
    assert not any("troupe/_" in line for line in lines), "frames of the runtime"
    assert any(
        line.startswith((f"    {said}", "  Traceback (most recent call last):")) for line in lines
    ), lines
    # Stopped ranks leave with the launch's code.
    status = death.exit_code if death.status is None else death.status
    assert gang.exit_codes() == [death.exit_code, status, death.exit_code]
    assert gang.ends()[0][0] == gang.ends()[2][0] == "cancelled" and gang.ends()[1][0] == "failed"
    eventually(lambda: not gang.alive(), what="the end of every rank")


def test_ranks_that_sit_in_a_call_with_the_gil_end_all_the_same(idle: Home, tmp_path: Path) -> None:
    gang = Gang(tmp_path / "gang", 3, stop_grace=1)
    inside = [
        tmp_path / "0",
        tmp_path / "2",
    ]  # written by a shell for which the rank waits, without letting go of the GIL
    calls = [
        f"__import__('ctypes').PyDLL(None).system({f'echo > {file}; exec sleep 1000'.encode()!r})"
        for file in inside
    ]
    gang.tell(0, f"[signal.signal(15, signal.SIG_IGN), {calls[0]}]")
    gang.tell(2, calls[1])
    eventually(lambda: all(file.exists() for file in inside), what="both calls")
    gang.tell(1, "os._exit(3)")
    assert gang.failure(exceptions.LaunchError).rank == 1
    assert gang.exit_codes() == [137, 3, 137]  # first asked to stop, then SIGKILL


def test_a_rank_that_does_not_leave_after_its_result_is_ended(idle: Home, tmp_path: Path) -> None:
    gang = Gang(tmp_path / "gang", 1, exit_grace=1)
    hold = "__import__('atexit').register(lambda: __import__('ctypes').PyDLL(None).pause())"
    gang.tell(0, f"[{hold}, 7][1]")
    assert gang.handle.result(60) == [7]
    eventually(lambda: not gang.alive(), what="its end, by its worker")
    warning = eventually(
        lambda: gang.handle.status()["rank_infos"][0]["warning"], what="the word of it"
    )
    assert warning == (
        "rank 0 on one returned its value, and then did not end in the time it had and was killed"
    )


def test_what_a_rank_leaves_behind_is_ended(idle: Home, tmp_path: Path) -> None:
    gang = Gang(tmp_path / "gang", 2)
    pids = tmp_path / "left"
    code = "import signal, sys; print(flush=True); signal.pause()"
    start = f"subprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True, stdout=-1)"
    gang.tell(
        0,
        "[(lambda left: (left.stdout.readline(), "
        f"Path({str(pids)!r}).write_text(str(left.pid))))({start}), "
        "os.kill(os.getpid(), 9)]",
    )
    gang.failure(exceptions.LaunchError)
    eventually(lambda: not running(int(pids.read_text())), what="the end of the grandchild")
    assert gang.exit_codes() == [137, 137]


def test_a_rank_that_is_stopped_is_only_slow(idle: Home, tmp_path: Path) -> None:
    gang = Gang(tmp_path / "gang", 2)
    stand_still(gang.pids[1])
    gang.tell(0, "'first'")
    gang.failure(exceptions.GetTimeoutError, timeout=6)  # longer than a node's lease: nobody minds
    os.kill(gang.pids[1], signal.SIGCONT)
    gang.tell(1, "'second'")
    assert gang.handle.result(60) == ["first", "second"]


def test_a_stopped_rank_ends_with_its_launch(idle: Home, tmp_path: Path) -> None:
    gang = Gang(tmp_path / "gang", 2)
    stand_still(gang.pids[1])
    gang.handle.cancel(grace=1)
    gang.failure(exceptions.LaunchCancelledError)
    assert gang.exit_codes() == [130, 137]


def drive(folder: str) -> None:
    """Rank 0 makes an actor and lets all ranks live; the actor tells its pid."""
    import os
    from pathlib import Path

    import troupe
    from troupe.launch import current

    class Neighbour:
        """Something of the driver's."""

        def pid(self) -> int:
            return os.getpid()

    helper = troupe.remote(num_cpus=0)(Neighbour).remote()
    Path(folder, "helper").write_text(str(troupe.get(helper.pid.remote(), timeout=60)))
    current().run(live, folder)


@pytest.mark.parametrize("victim", [0, 1], ids=["the driver", "a rank that serves it"])
def test_a_process_of_a_driven_launch_is_killed(idle: Home, tmp_path: Path, victim: int) -> None:
    gang = Gang(tmp_path / "gang", 3, ray_launch, drive)
    helper = int((tmp_path / "gang" / "helper").read_text())
    os.kill(gang.pids[victim], signal.SIGKILL)
    error = gang.failure(exceptions.LaunchError)
    assert (error.rank, error.signal, error.exit_code) == (victim, 9, 137)
    assert str(error).startswith(f"rank {victim} was killed by SIGKILL on one")
    assert gang.exit_codes() == [137, 137, 137]
    assert [outcome for _, (outcome, _) in sorted(gang.ends().items())].count("failed") == 1
    eventually(
        lambda: not gang.alive() and not running(helper),
        what="the end of the ranks and of the driver's actor",
    )


CALLER = """
import sys, troupe
from gangs import live
from troupe.launch import distributed
troupe.init({address!r})
distributed(processes=2, remote=True, name={name!r})(live).distributed({folder!r})
"""


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (signal.SIGINT, "Ctrl-C in the caller"),
        (signal.SIGKILL, "cancelled: its caller's process ended"),
    ],
    ids=["Ctrl-C", "killed"],
)
def test_the_caller_ends(idle: Home, tmp_path: Path, number: int, cause: str) -> None:
    name, folder = f"of-a-caller-{number}", tmp_path / "gang"
    folder.mkdir()
    code = CALLER.format(
        address=troupe.init(ignore_reinit_error=True).address, name=name, folder=str(folder)
    )
    caller = subprocess.Popen(
        [sys.executable, "-u", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": f"{Path(__file__).parents[1]}:{os.environ.get('PYTHONPATH', '')}",
        },
    )
    files = [folder / "1-0.pid", folder / "1-1.pid"]
    eventually(lambda: all(file.exists() for file in files), what="both ranks")
    pids = [int(file.read_text()) for file in files]
    assert caller.stderr is not None and any(
        "2 ranks on 1 node" in line for line in iter(caller.stderr.readline, "")
    )  # follows the launch now
    caller.send_signal(number)
    errors = caller.communicate(timeout=60)[1]
    assert caller.returncode == -number, errors
    assert number == signal.SIGKILL or "KeyboardInterrupt" in errors, errors

    def ended() -> dict | None:
        return next(
            (
                each
                for each in troupe.state.list_launches()
                if each["name"] == name
                and each["state"] == "cancelled"
                and all(rank["outcome"] != "none" for rank in each["rank_infos"])
            ),
            None,
        )

    launch = eventually(ended, what="the end of the launch and of its ranks")
    assert (launch["outcome"], launch["cause"]) == ("cancelled", cause)
    assert [rank["exit_code"] for rank in launch["rank_infos"]] == [130, 130]
    eventually(lambda: not any(map(running, pids)), what="the end of the ranks")
