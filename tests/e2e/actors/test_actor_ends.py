"""Calls that are cancelled, and calls that are made again when an actor is started again; real
processes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest
from conftest import Home, eventually, running, stand_still

import troupe
from troupe import exceptions
from troupe._actors.link import LINKS
from troupe._cluster import session


class Slow:
    """Methods that wait for a file."""

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.pause = threading.Event()

    def wait_for(self, path: str) -> str:
        while not os.path.exists(path):
            self.pause.wait(0.01)
        return "there"

    def begin_and_wait_for(self, begun: str, path: str) -> str:
        Path(begun).touch()
        return self.wait_for(path)

    def until_cancelled(self, begun: str) -> str:
        Path(begun).touch()
        while not troupe.get_runtime_context().is_canceled():
            self.pause.wait(0.001)
        return "noticed"

    def note(self, number: int) -> int:
        self.ran.append(number)
        return number

    def pid(self) -> int:
        return os.getpid()

    def notes(self) -> list[int]:
        return self.ran


class AsyncSlow:
    """Coroutines that wait for good."""

    def __init__(self) -> None:
        self.cancelled = 0

    async def sleep(self) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def stubborn(self) -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "still here"
        return ""

    async def seen(self) -> int:
        return self.cancelled

    async def asks(self) -> bool:
        return troupe.get_runtime_context().is_canceled()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_queued_call_is_not_run(idle: Home, tmp_path: Path, threads: int) -> None:
    made = troupe.remote(max_concurrency=threads)(Slow).remote()
    gate = str(tmp_path / "gate")
    troupe.get(made.__ray_ready__.remote(), timeout=20)
    held = [made.wait_for.remote(gate) for _ in range(threads)]
    queued = [made.note.remote(i) for i in range(10)]
    for ref in queued[3:6]:
        troupe.cancel(ref)
    if threads == 1:  # looks for cancelled calls before each call, and answers in turn
        Path(gate).touch()
    for ref in queued[3:6]:
        with pytest.raises(exceptions.TaskCancelledError, match="before it began"):
            troupe.get(ref, timeout=20)
    Path(gate).touch()
    assert troupe.get(held, timeout=20) == ["there"] * threads
    assert troupe.get(queued[:3] + queued[6:], timeout=20) == [0, 1, 2, 6, 7, 8, 9]
    assert sorted(troupe.get(made.notes.remote(), timeout=20)) == [0, 1, 2, 6, 7, 8, 9]
    troupe.cancel(queued[0])  # over: nothing happens
    assert troupe.get(queued[0]) == 0
    troupe.kill(made)


def test_a_call_that_came_with_the_one_that_runs_is_not_run(idle: Home, tmp_path: Path) -> None:
    """All calls are in what the actor reads at once; the word of their cancellation comes while the
    first one runs."""
    made = troupe.remote(Slow).remote()
    pid = troupe.get(made.pid.remote(), timeout=20)
    stand_still(pid)
    first = made.begin_and_wait_for.remote(str(tmp_path / "begun"), str(tmp_path / "gate"))
    behind = [made.note.remote(i) for i in range(3)]
    os.kill(pid, signal.SIGCONT)
    eventually((tmp_path / "begun").exists, what="the begin of the method")
    troupe.cancel(behind[1])
    (tmp_path / "gate").touch()
    assert troupe.get(first, timeout=20) == "there"
    with pytest.raises(exceptions.TaskCancelledError, match="before it began"):
        troupe.get(behind[1], timeout=20)
    assert troupe.get(made.notes.remote(), timeout=20) == [0, 2]
    troupe.kill(made)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_running_method_may_ask(idle: Home, tmp_path: Path, threads: int) -> None:
    made = troupe.remote(max_concurrency=threads)(Slow).remote()
    ref = made.until_cancelled.remote(str(tmp_path / "begun"))
    eventually((tmp_path / "begun").exists, what="the begin of the method")
    troupe.cancel(ref)
    assert troupe.get(ref, timeout=20) == "noticed"
    assert troupe.get(made.note.remote(1), timeout=20) == 1
    troupe.kill(made)


def test_a_coroutine_is_cancelled(idle: Home) -> None:
    made = troupe.remote(AsyncSlow).remote()
    refs = [made.sleep.remote() for _ in range(3)]
    troupe.get(made.seen.remote(), timeout=20)
    troupe.cancel(refs[1])
    with pytest.raises(exceptions.TaskCancelledError, match="while it ran"):
        troupe.get(refs[1], timeout=20)
    assert troupe.get(made.seen.remote(), timeout=20) == 1
    stubborn = made.stubborn.remote()
    troupe.get(made.seen.remote(), timeout=20)
    troupe.cancel(stubborn)
    assert troupe.get(stubborn, timeout=20) == "still here"
    with pytest.raises(RuntimeError, match="asyncio"):
        troupe.get(made.asks.remote(), timeout=20)
    troupe.kill(made)


def test_a_waiting_coroutine_call_is_not_run(idle: Home) -> None:
    made = troupe.remote(max_concurrency=1)(AsyncSlow).remote()
    first, second = made.sleep.remote(), made.seen.remote()
    troupe.cancel(second)
    with pytest.raises(exceptions.TaskCancelledError, match="before it began"):
        troupe.get(second, timeout=20)
    troupe.cancel(first)
    with pytest.raises(exceptions.TaskCancelledError):
        troupe.get(first, timeout=20)
    assert troupe.get(made.seen.remote(), timeout=20) in (0, 1)
    troupe.kill(made)


def test_misuse_of_cancel(idle: Home) -> None:
    made = troupe.remote(Slow).remote()
    with pytest.raises(ValueError, match="actor tasks"):
        troupe.cancel(made.note.remote(1), force=True)
    for wrong in (made, "ref", [made.note.remote(1)]):
        with pytest.raises(TypeError, match="ObjectRef"):
            troupe.cancel(wrong)
    with pytest.raises(RuntimeError, match="is_canceled"):
        troupe.get_runtime_context().is_canceled()
    troupe.kill(made)


def test_a_task_is_cancelled(idle: Home) -> None:
    @troupe.remote
    def forever() -> None:
        threading.Event().wait()

    for force, kind in (
        (False, exceptions.TaskCancelledError),
        (True, exceptions.WorkerCrashedError),
    ):
        ref = forever.remote()
        assert troupe.wait([ref], timeout=0.3) == ([], [ref])
        troupe.cancel(ref, force=force)
        with pytest.raises(kind):
            troupe.get(ref, timeout=20)
    eventually(
        lambda: not [each for each in troupe.state.list_actors() if each["state"] != "dead"],
        what="the end of the tasks' processes",
    )


class Fragile:
    """Notes what it runs in a file, which outlives it."""

    def __init__(self, log: str) -> None:
        self.log = log

    def note(self, number: int) -> int:
        with open(self.log, "a") as file:
            file.write(f"{number}\n")
        return number

    def die_once(self, flag: str) -> str:
        if not os.path.exists(flag):
            Path(flag).touch()
            os.kill(os.getpid(), 9)
        return "survived"

    def pid(self) -> int:
        return os.getpid()

    def fails_until(self, count: int) -> int:
        seen = self.note(0) + len(Path(self.log).read_text().split())
        if seen < count:
            raise ConnectionResetError(f"attempt {seen}")
        return seen

    def pair(self) -> tuple:
        return 1, 2


def test_calls_are_made_again_in_order(idle: Home, tmp_path: Path) -> None:
    log, flag = tmp_path / "log", str(tmp_path / "flag")
    made = troupe.remote(max_restarts=1, max_task_retries=2)(Fragile).remote(str(log))
    before = [made.note.remote(i) for i in range(5)]
    crash = made.die_once.remote(flag)
    after = [made.note.remote(i) for i in range(5, 30)]
    assert troupe.get(crash, timeout=30) == "survived"
    assert troupe.get(before + after, timeout=30) == list(range(30))
    ran = [int(line) for line in log.read_text().split()]
    assert ran[-25:] == list(range(5, 30)) and set(ran[:-25]) <= set(range(5))
    first, second = made.pair.options(num_returns=2).remote()
    assert troupe.get([first, second], timeout=20) == [1, 2]
    troupe.kill(made)


def test_without_retries_a_lost_call_is_an_error_and_the_actor_comes_back(
    idle: Home, tmp_path: Path
) -> None:
    made = troupe.remote(max_restarts=1)(Fragile).remote(str(tmp_path / "log"))
    pid = troupe.get(made.pid.remote(), timeout=20)
    with pytest.raises(exceptions.ActorUnavailableError):
        troupe.get(made.die_once.remote(str(tmp_path / "flag")), timeout=20)
    again = eventually(lambda: _pid_of(made), what="the actor's return")
    assert again != pid
    os.kill(again, 9)
    with pytest.raises(exceptions.ActorDiedError):
        eventually(lambda: _pid_of(made) == 0, what="its death")


def _pid_of(made: object) -> int:
    try:
        return troupe.get(made.pid.remote(), timeout=20)
    except exceptions.ActorUnavailableError:
        return 0


def test_retries_end(idle: Home, tmp_path: Path) -> None:
    made = troupe.remote(max_restarts=-1, max_task_retries=1)(Fragile).remote(str(tmp_path / "log"))

    @troupe.method(max_task_retries=1)
    def unused() -> None: ...

    lost = made.__ray_call__.options(max_task_retries=2).remote(
        lambda self: os.kill(os.getpid(), 9)
    )
    with pytest.raises(exceptions.ActorUnavailableError):
        troupe.get(lost, timeout=60)
    assert troupe.get(made.note.remote(7), timeout=30) == 7
    troupe.kill(made)
    with pytest.raises(exceptions.ActorDiedError):
        troupe.get(made.note.remote(8), timeout=20)


def test_kill_with_restart(idle: Home, tmp_path: Path) -> None:
    made = troupe.remote(max_restarts=1, max_task_retries=-1)(Fragile).remote(str(tmp_path / "log"))
    pid = troupe.get(made.pid.remote(), timeout=20)
    troupe.kill(made, no_restart=False)
    eventually(lambda: not running(pid), what="the end of its process")
    assert troupe.get(made.pid.remote(), timeout=30) != pid
    troupe.kill(made)


def test_exceptions_may_be_retried(idle: Home, tmp_path: Path) -> None:
    made = troupe.remote(Fragile).remote(str(tmp_path / "log"))
    retried = made.fails_until.options(max_task_retries=3, retry_exceptions=[ConnectionResetError])
    assert troupe.get(retried.remote(3), timeout=20) == 3
    with pytest.raises(ConnectionResetError, match="attempt"):
        troupe.get(retried.remote(100), timeout=20)
    other = made.fails_until.options(max_task_retries=3, retry_exceptions=[KeyError])
    with pytest.raises(ConnectionResetError, match="attempt 8"):
        troupe.get(other.remote(100), timeout=20)
    troupe.kill(made)


class Maker:
    """Makes another actor, and runs a task."""

    def __init__(self) -> None:
        self.made: list[object] = []

    def pid(self) -> int:
        """Return the process id."""
        return os.getpid()

    def make(self) -> tuple[int, int]:
        """The processes of what it made."""
        child = troupe.remote(num_cpus=0)(Maker).remote()
        task = troupe.remote(os.getpid)
        self.made += [child, task]
        return troupe.get(child.pid.remote(), timeout=30), troupe.get(task.remote(), timeout=30)


def test_what_a_process_made_ends_with_it_though_it_is_started_again(idle: Home) -> None:
    made = troupe.remote(num_cpus=0, max_restarts=1, max_task_retries=-1)(Maker).remote()
    before = troupe.get(made.pid.remote(), timeout=20)
    left = set(troupe.get(made.make.remote(), timeout=30))
    os.kill(before, 9)
    assert troupe.get(made.pid.remote(), timeout=30) != before
    eventually(
        lambda: not left & set(idle.processes()),
        what="the end of the actor and the task process it had",
    )
    assert troupe.get(made.make.remote(), timeout=30)
    troupe.kill(made)


def test_nothing_is_kept_of_actors_that_are_dead(idle: Home) -> None:
    def one(how: str) -> object:
        made = troupe.remote(num_cpus=0)(Maker).remote()
        pid = troupe.get(made.pid.remote(), timeout=20)
        if how == "troupe.kill":
            troupe.kill(made)
        else:
            os.kill(pid, 9)
        with pytest.raises(exceptions.ActorDiedError):
            troupe.get(made.pid.remote(), timeout=20)
        return made

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    handles = [one("troupe.kill")]
    before = descriptors()
    handles += [one(how) for how in ["troupe.kill", "a signal"] * 10]
    eventually(lambda: descriptors() <= before + 3, what="the end of the connections to them")
    with pytest.raises(exceptions.ActorDiedError, match="dead|killed"):
        troupe.get(handles[-1].pid.remote(), timeout=20)
    assert not LINKS.known(session.current())
