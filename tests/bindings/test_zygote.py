"""The zygote by itself: this test is its worker, over the socket; children are real forks.

`Worker` speaks the worker's half; this process is a subreaper as a worker is, so what the zygote
forks are its children. Everything is waited for by an event with a deadline: a datagram of the
zygote, the bytes or the end of a child's control channel, its end.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from troupe import _native
from troupe._base.identity import new_id
from troupe._process import os_calls, prefork

LIMIT_S = 60.0
NOBODY = ""
RANK = {
    "kind": "rank",
    "env": [{"name": "MINE", "value": "yes"}],
    "working_directory": "/",
    "threads": 1,
}


class Worker:
    """A zygote and the worker's end of its socket."""

    def __init__(self, log: Path, parked: int, **environment: str) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(LIMIT_S)
        self.log = log
        self.announced: set[int] = set()
        self.said: deque[tuple[str, dict]] = deque()
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "troupe._process.zygote",
                    "--fd",
                    str(theirs.fileno()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, "TROUPE_PARKED_PROCESSES": str(parked), **environment},
            )
        theirs.close()
        self.wanted = parked
        assert self.next("ZygoteReady")["usable"]

    def next(self, kind: str) -> dict:
        """The fields of the next datagram that announces no child; it must be of this kind."""
        while not self.said:
            self.read()
        got, fields = self.said.popleft()
        assert got == kind, (got, fields)
        return fields

    def read(self) -> None:
        """Read one datagram: announced children are known from then on, the rest is for next()."""
        data, fds, _, _ = socket.recv_fds(self.socket, 1 << 20, 4)
        for each in fds:
            os.close(each)
        kind, fields, _ = _native.decode_message(data)[:3]
        if kind == "ForkReply" and fields["process"] == NOBODY:
            assert len(fds) == 1, "a child comes with a pidfd"
            self.announced.add(fields["pid"])
        else:
            self.said.append((kind, fields))

    def children(self) -> set[int]:
        """Living children that this zygote has forked; each is a child of ours, and was
        announced."""
        ours: set[int] = set()
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(
                FileNotFoundError, ProcessLookupError
            ):  # a thread that has ended since
                ours.update(map(int, (task / "children").read_text().split()))
        while self.process.poll() is None and select.select([self.socket], [], [], 0)[0]:
            self.read()
        return {pid for pid in ours & self.announced if state_of(pid) not in "ZX"}

    def parked(self) -> set[int]:
        """Children that wait for what they are to be."""
        return {pid for pid in self.children() if title_of(pid) == "troupe: parked"}

    def all_parked(self) -> set[int]:
        """Return the parked processes, once there are as many as are wanted."""
        until(
            lambda: len(self.parked()) == self.wanted,
            f"{self.wanted} parked ({self.log.read_text()})",
        )
        return self.parked()

    def sockets(self) -> int:
        """How many the zygote holds: one to us, one to each child that waits."""
        links = [os.readlink(each) for each in Path(f"/proc/{self.process.pid}/fd").iterdir()]
        return sum(link.startswith("socket:") for link in links)

    def start(self, out: Path, **request: object) -> tuple[int, socket.socket]:
        """Asks for a process; its pid and our end of its control channel."""
        ours, theirs = socket.socketpair()
        ours.settimeout(LIMIT_S)
        process = new_id()
        message = _native.encode_message(
            "ForkRequest", {**RANK, **request, "process": process}, b""
        )
        with theirs, out.open("ab") as file:
            socket.send_fds(self.socket, [message], [theirs.fileno(), file.fileno(), file.fileno()])
        reply = self.next("ForkReply")
        assert reply["process"] == process and reply["error"] == ""
        return reply["pid"], ours


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "X"


def title_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode()
    except OSError:
        return ""


def until(condition, what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT_S:g} s: {what}"
        time.sleep(0.01)  # lint-ok: looking at other processes, up to a deadline


def reap(pid: int) -> int:
    """The wait status of a child of ours, once it has ended."""
    ended = os.pidfd_open(pid)
    try:
        assert select.select([ended], [], [], LIMIT_S)[0], (
            f"process {pid} did not end within {LIMIT_S:g} s"
        )
    finally:
        os.close(ended)
    return os.waitpid(pid, 0)[1]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    reap(pid)


@contextlib.contextmanager
def zygote(folder: Path, parked: int, **environment: str) -> Iterator[Worker]:
    worker = Worker(folder / "zygote.log", parked, **environment)
    try:
        yield worker
        children = worker.children()
        worker.socket.close()
        assert worker.process.wait(LIMIT_S) == 0, worker.log.read_text()
        assert [os.waitstatus_to_exitcode(reap(pid)) for pid in children] == [
            prefork.NEVER_GIVEN
        ] * len(children)
    finally:
        worker.process.kill()
        worker.process.wait()


@pytest.fixture(scope="module", autouse=True)
def subreaper() -> Iterator[None]:
    """This process is the parent of what the zygotes fork, as a worker is."""
    os_calls.adopt_orphans()
    yield
    os_calls.adopt_orphans(False)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with zygote(tmp_path_factory.mktemp("zygote"), 3) as made:
        yield made


def end(pid: int, control: socket.socket) -> int:
    """Ends a process by the end of its channel; its wait status."""
    control.close()
    return reap(pid)


def test_a_request_is_given_to_a_parked_child_and_another_one_is_parked(
    worker: Worker, tmp_path: Path
) -> None:
    before = worker.all_parked()
    pid, control = worker.start(tmp_path / "out", title="troupe: rank 0")
    assert pid in before
    until(lambda: title_of(pid) == "troupe: rank 0", "its title")
    assert os.getsid(pid) == pid
    until(lambda: os.readlink(f"/proc/{pid}/cwd") == "/", "its directory")
    assert (
        os.readlink(f"/proc/{pid}/fd/1")
        == os.readlink(f"/proc/{pid}/fd/2")
        == str(tmp_path / "out")
    )
    assert os.waitstatus_to_exitcode(end(pid, control)) == 75  # the worker is gone, as it sees it
    assert worker.all_parked() >= before - {pid}


def test_more_than_are_parked_are_forked(worker: Worker, tmp_path: Path) -> None:
    before = worker.all_parked()
    started = dict(worker.start(tmp_path / "out") for _ in range(5))
    assert len(started) == 5 and before <= set(started)
    for pid, control in started.items():
        end(pid, control)
    worker.all_parked()


def test_a_parked_child_that_was_killed_is_replaced_and_never_given(
    worker: Worker, tmp_path: Path
) -> None:
    before = worker.all_parked()
    victim = min(before)
    kill(victim)
    pid, control = worker.start(tmp_path / "out")
    assert pid != victim
    end(pid, control)
    assert victim not in worker.all_parked()


def test_nobody_is_parked_while_a_start_is_under_way(worker: Worker, tmp_path: Path) -> None:
    """A rank counts as starting for a second, an actor until it is ready or has ended."""
    before = worker.all_parked()
    began = time.monotonic()
    pid, control = worker.start(tmp_path / "out")
    until(lambda: worker.parked() - before, "another one")
    assert time.monotonic() - began > 0.9
    end(pid, control)


def test_an_actor_s_start_is_over_when_it_is_ready(worker: Worker, tmp_path: Path) -> None:
    import cloudpickle

    before = worker.all_parked()
    pid, control = worker.start(tmp_path / "out", kind="actor")
    assert pid in before
    path = str(tmp_path / "actor")
    control.sendall(
        _native.encode_message(
            "ActorBegin",
            {"class_name": "dict", "socket_path": path},
            cloudpickle.dumps((dict, (), {})),
        )
    )
    assert select.select([control], [], [], LIMIT_S)[0]  # ActorReady
    worker.all_parked()
    until(
        lambda: worker.sockets() == 1 + worker.wanted, "the end of the actor's socket to the zygote"
    )
    end(pid, control)


def test_parked_children_end_with_a_zygote_that_is_killed(tmp_path: Path) -> None:
    worker = Worker(tmp_path / "zygote.log", 2)
    parked = worker.all_parked()
    assert len(parked) == 2
    given, control = worker.start(tmp_path / "out")
    until(lambda: title_of(given) != "troupe: parked", "the request's arrival")
    worker.process.kill()
    worker.process.wait(LIMIT_S)
    # The other one, and whom it may have been about to park in the place of what was given its
    # request.
    waiting = (parked | worker.children()) - {given}
    assert {os.waitstatus_to_exitcode(reap(pid)) for pid in waiting} == {prefork.NEVER_GIVEN}
    assert worker.children() == {given}, "what was given its request lives on"
    end(given, control)
    worker.socket.close()


def test_a_zygote_whose_children_do_not_live_stops_parking(tmp_path: Path) -> None:
    with zygote(tmp_path, 1) as worker:
        for _ in range(3):
            kill(min(worker.all_parked()))
        until(lambda: "no more processes are parked" in worker.log.read_text(), "the log's line")
        pid, control = worker.start(tmp_path / "out")
        end(pid, control)
        assert worker.children() == set()


def test_none_are_parked_where_the_variable_says_so(tmp_path: Path) -> None:
    with zygote(tmp_path, 0) as worker:
        pid, control = worker.start(tmp_path / "out")
        assert worker.children() == {pid}
        end(pid, control)


def test_a_zygote_is_in_no_cluster_and_starts_none(tmp_path: Path) -> None:
    """A module that is to be imported before its program asks for it, and calls the cluster while
    it is."""
    (tmp_path / "calls_early.py").write_text("import troupe\ntroupe.init()\n")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(LIMIT_S)
    started = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "troupe._process.zygote",
            "--fd",
            str(theirs.fileno()),
            "--light",
            "--module",
            "calls_early",
            "--path",
            str(tmp_path),
        ],
        pass_fds=[theirs.fileno()],
        stderr=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    kind, fields = _native.decode_message(ours.recv(1 << 20))[:2]
    ours.close()
    _, said = started.communicate(timeout=LIMIT_S)
    assert (
        kind == "ZygoteReady"
        and not fields["usable"]
        and fields["reason"].startswith("ConnectionError: this process is a worker's zygote")
    )
    assert "must not use the cluster while it is imported" in said


RECORD_PRCTL = """
import ctypes, os
class Recording(ctypes.CDLL):
    def __getattr__(self, name):
        function = super().__getattr__(name)
        if name != "prctl":
            return function
        def prctl(option, argument, *rest):
            with open(os.environ["PRCTL_RECORD"], "a") as file:
                file.write(f"{os.getpid()} {option} {getattr(argument, 'value', argument)}\\n")
            return function(option, argument, *rest)
        return prctl
ctypes.CDLL = Recording
"""


def test_forked_and_executed_processes_name_their_worker_as_the_one_that_may_read_them(
    tmp_path: Path,
) -> None:
    """Observed at the call, for most kernels that tests run on have no Yama; this process is the
    worker."""
    record = tmp_path / "record"
    (tmp_path / "sitecustomize.py").write_text(RECORD_PRCTL)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHONPATH": path, "PRCTL_RECORD": str(record)}

    def named(pid: int) -> bool:
        return (
            record.exists()
            and f"{pid} {0x59616D61} {os.getpid()}" in record.read_text().splitlines()
        )

    with zygote(tmp_path, 1, **environment) as worker:
        ahead = min(worker.all_parked())
        until(lambda: named(ahead), "the call of one that is forked ahead")
    with zygote(tmp_path, 0, **environment) as worker:
        pid, control = worker.start(tmp_path / "out")
        until(lambda: named(pid), "the call of one that is forked on demand")
        end(pid, control)
    ours, theirs = socket.socketpair()
    executed = subprocess.Popen(
        [sys.executable, "-P", "-m", "troupe._process", "--fd", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    try:
        ours.sendall(_native.encode_message("ForkRequest", {**RANK, "process": new_id()}, b""))
        until(lambda: named(executed.pid), "the call of one that is executed")
    finally:
        executed.kill()
        executed.wait()
        ours.close()
        theirs.close()
