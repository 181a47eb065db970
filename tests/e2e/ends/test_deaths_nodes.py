"""Fates of a launch when a worker, a zygote or the head ends or stands still; attempts and their
zombies.

The second half of docs/reference/deaths.md: two nodes on this machine, rank 0 on `one`, rank 1 on a
second node that is a new one in each test. Whether a node has been missed is read from what it says
or what the head shows, never from the time that passed.
"""

from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, eventually, running, stand_still
from gangs import Gang, live

import troupe
from troupe import exceptions
from troupe.util.state import list_nodes

WORKER = Path(os.environ.get("TROUPE_BIN_DIR", "/nonexistent"), "troupe-worker")
FAULTS = pytest.mark.skipif(
    not WORKER.exists() or b"TROUPE_FAULTS" not in WORKER.read_bytes(),
    reason="needs a build with faults",
)


@dataclass
class Node:
    """A worker that joined for one test."""

    name: str
    pid: int
    folder: Path

    def log(self) -> str:
        return (self.folder / "worker.log").read_text()

    def seen(self) -> dict:
        return next(each for each in troupe.state.list_nodes() if each["name"] == self.name)

    def zygote(self) -> int:
        return zygotes(self.pid)[0]


def children(pid: int, word: str) -> list[int]:
    """Children of the process whose command holds `word`."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if word in command:
                found.append(int(child))
    return found


def zygotes(worker: int) -> list[int]:
    """The node's own zygote, or none: a process that was forked just now has its command for a
    moment, and began later."""

    def began(pid: int) -> int:
        try:
            return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        except OSError:
            return sys.maxsize

    return sorted(children(worker, "troupe._process.zygote"), key=began)[:1]


@pytest.fixture
def stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a FIFO that makes the loop of the next started worker wait, in a system call."""
    monkeypatch.setenv("TROUPE_FAULTS", "worker.tick=stall@1-")
    monkeypatch.setenv("TROUPE_STALL", str(tmp_path / "stall"))
    return tmp_path / "stall"


@pytest.fixture
def second(cluster: Home) -> Iterator[Node]:
    """A second node with 2 CPUs and a zygote that is ready; gone again afterwards."""
    address = troupe.init(ignore_reinit_error=True).address
    name = f"two-{uuid.uuid4().hex[:4]}"
    joined = cluster.json(
        "start",
        "--address",
        address,
        "--token-file",
        cluster.token(),
        "--num-cpus",
        "2",
        "--node-name",
        name,
    )
    node = Node(name, joined["pid"], next(cluster.path.glob(f"clusters/*/nodes/{name}")))
    eventually(lambda: node.seen()["zygote_ready"], what="its zygote")
    try:
        yield node
        os.kill(node.pid, signal.SIGTERM) if running(node.pid) else None
        eventually(lambda: not running(node.pid), what="the end of the second worker")
        eventually(
            lambda: troupe.available_resources() == troupe.cluster_resources(),
            what="the return of all resources",
        )
    finally:
        if running(node.pid):
            os.kill(node.pid, signal.SIGCONT)
            os.kill(node.pid, signal.SIGKILL)


def spread(folder: Path, **options: object) -> Gang:
    """Two ranks, one on each node."""
    folder.mkdir(exist_ok=True)
    gang = Gang(folder / "gang", 2, strategy="SPREAD", **options)
    assert len(set(gang.nodes)) == 2
    return gang


def rank_on(gang: Gang, node: Node) -> int:
    return gang.nodes.index(node.name)


def test_a_worker_is_killed(second: Node, tmp_path: Path) -> None:
    gang = spread(tmp_path)
    there = rank_on(gang, second)
    os.kill(second.pid, signal.SIGKILL)
    error = gang.failure(exceptions.LaunchError)
    assert isinstance(error, exceptions.NodeDiedError) and not isinstance(
        error, exceptions.NodeUnreachableError
    )
    assert (error.rank, error.host, error.exit_code, error.signal) == (there, second.name, 1, None)
    lines = str(error).splitlines()
    assert lines[0].startswith(f"rank {there} was lost with its node on {second.name} after ")
    assert lines[1:] == [
        f"  node {second.name} is lost: its worker ended",
        "  the other rank is stopped; nothing of the launch stays on any node",
        f"  logs: troupe logs {gang.handle.id[:4]} --rank {there}",
        "  try: max_attempts=2, which starts the launch again on the nodes that are left",
    ]
    eventually(lambda: not gang.alive(), what="the end of both ranks")
    eventually(
        lambda: gang.ends() == {there: ("failed", 1), 1 - there: ("cancelled", 1)},
        what="the ranks' ends",
    )


def starts_others(folder: str) -> Any:
    """A rank's life, with processes below it: executed in a session of their own, by a shell that
    goes on, forked alone."""
    import signal
    import subprocess

    shell = subprocess.Popen(
        "sleep 1000 & echo $!; exec sleep 1000", shell=True, stdout=subprocess.PIPE
    )
    assert shell.stdout is not None
    pids = [
        subprocess.Popen(["sleep", "1000"], start_new_session=True).pid,
        shell.pid,
        int(shell.stdout.readline()),
    ]
    pids.append(os.fork())
    if pids[-1] == 0:
        signal.pause()
    Path(folder, f"below-{os.environ['RANK']}").write_text(" ".join(map(str, pids)))
    return live(folder)


def test_a_killed_worker_takes_along_what_its_ranks_have_started(
    second: Node, tmp_path: Path
) -> None:
    gang = spread(tmp_path, function=starts_others)
    there = rank_on(gang, second)
    below = [int(each) for each in (tmp_path / f"gang/below-{there}").read_text().split()]
    assert len(below) == 4 and all(map(running, below))
    zygote = second.zygote()
    os.kill(second.pid, signal.SIGKILL)
    gang.failure(exceptions.NodeDiedError)
    eventually(
        lambda: not [pid for pid in (*below, *gang.pids, zygote) if running(pid)],
        what="the end of all that was below the worker",
    )


def test_a_zygote_is_killed_and_what_it_forked_goes_on(second: Node, tmp_path: Path) -> None:
    gang = spread(tmp_path / "before")
    before = second.zygote()
    os.kill(before, signal.SIGKILL)
    eventually(lambda: zygotes(second.pid) not in ([], [before]), what="another zygote")
    eventually(lambda: second.seen()["zygote_ready"], what="that it is ready")
    after = spread(tmp_path / "after")
    for each in (gang, after):
        each.tell(0, "'first'")
        each.tell(1, "'second'")
        assert each.handle.result(60) == ["first", "second"]


def test_a_worker_that_stands_still_for_less_than_its_lease(second: Node, tmp_path: Path) -> None:
    stopped = f"its worker (process {second.pid}) is stopped"
    for number in range(5):
        gang = spread(tmp_path / str(number))
        stand_still(second.pid)
        eventually(lambda: second.seen()["state"] in ("suspect", "dead"), what="suspicion")
        suspected = second.seen()["heard_s"]
        eventually(lambda: stopped in second.seen()["why"], what="what its worker does")
        os.kill(second.pid, signal.SIGCONT)
        if suspected < 4 and second.seen()["state"] != "dead":
            break
        # this process stood still itself, on a busy machine: it was longer than a lease
        gang.handle.cancel()
    eventually(
        lambda: (second.seen()["state"], second.seen()["why"]) == ("alive", ""),
        what="the end of it",
    )
    gang.tell(0, "'first'")
    gang.tell(1, "'second'")
    assert gang.handle.result(60) == ["first", "second"]


def test_a_worker_that_stands_still_for_longer_than_its_lease(
    second: Node, cluster: Home, tmp_path: Path
) -> None:
    gang = spread(tmp_path)
    there = rank_on(gang, second)
    stand_still(second.pid)
    error = gang.failure(exceptions.LaunchError)
    assert isinstance(error, exceptions.NodeUnreachableError) and (error.rank, error.host) == (
        there,
        second.name,
    )
    assert f"node {second.name} is lost: not heard of for " in str(
        error
    ) and ", nor does it answer one\n" in str(error)
    assert f": its worker (process {second.pid}) is stopped" in str(error)
    assert (
        f"  the other rank is stopped; what still runs on {second.name} ends when that node is "
        "heard of again" in str(error)
    )
    for shown in (cluster.run("status").stdout, cluster.run("list", "nodes").stdout):
        [row] = [line for line in shown.splitlines() if line.startswith(second.name)]
        assert (
            " dead " in row
            and " -/2 " in row
            and f"its worker (process {second.pid}) is stopped" in row
        ), shown
    [node] = [each for each in troupe.nodes() if each["NodeName"] == second.name]
    assert not node["alive"] and "is stopped" in node["DeathReasonMessage"]
    [node] = [each for each in list_nodes() if each["node_name"] == second.name]
    assert node.state == "DEAD" and "is stopped" in node.state_message
    eventually(lambda: gang.alive() == [there], what="the end of the rank that can be reached")
    os.kill(second.pid, signal.SIGCONT)
    eventually(lambda: not gang.alive(), what="the end of the zombie")
    eventually(lambda: second.seen()["state"] == "alive", what="the node's return")


@FAULTS
def test_a_worker_whose_loop_waits_for_the_system_is_not_lost_for_its_silence(
    stall: Path, second: Node, tmp_path: Path
) -> None:
    gang = spread(tmp_path)
    os.mkfifo(stall)
    why = f"its worker (process {second.pid}) waits for something in the system"
    eventually(lambda: why in second.seen()["why"], what="what its worker does")
    eventually(
        lambda: second.seen()["heard_s"] > 10 or second.seen()["state"] == "dead",
        what="more than two leases of silence",
    )
    seen = second.seen()
    assert seen["state"] == "suspect" and len(gang.alive()) == 2, seen
    open(stall.rename(tmp_path / "goes on"), "w").close()
    eventually(
        lambda: (second.seen()["state"], second.seen()["why"]) == ("alive", ""),
        what="the end of it",
    )
    gang.tell(0, "'first'")
    gang.tell(1, "'second'")
    assert gang.handle.result(60) == ["first", "second"]


def test_the_next_attempt_and_the_zombie_of_the_first(second: Node, tmp_path: Path) -> None:
    """The zombie has its word already: it returns a value of the old epoch when its node goes
    on."""
    gang = spread(tmp_path, max_attempts=2)
    there, old = rank_on(gang, second), list(gang.pids)
    with gang.listening(there) as zombie:
        stand_still(old[there])
        stand_still(second.pid)
        zombie.write("'of the first epoch'")
    gang.begun(2)
    assert gang.nodes == ["one", "one"]  # the node that cannot be reached is not used
    os.kill(old[there], signal.SIGCONT)
    os.kill(second.pid, signal.SIGCONT)
    eventually(lambda: not any(map(running, old)), what="the end of the first epoch's processes")
    assert not gang.handle.done() and len(gang.alive()) == 2
    gang.tell(0, "os.environ['TROUPE_EPOCH']")
    gang.tell(1, "os.environ['TORCHELASTIC_RESTART_COUNT']")
    assert gang.handle.result(60) == ["2", "1"]
    assert gang.handle.status()["epoch"] == 2


def test_an_attempt_after_a_killed_rank(second: Node, tmp_path: Path) -> None:
    gang = spread(tmp_path, max_attempts=2)
    old = list(gang.pids)
    stand_still(old[0])  # stands still, so that it could only be killed
    os.kill(old[1], signal.SIGKILL)
    gang.begun(2)
    eventually(lambda: not any(map(running, old)), what="the end of the first epoch's processes")
    gang.tell(1, "os._exit(3)")
    error = gang.failure(exceptions.LaunchError)
    assert (error.epoch, error.rank, error.exit_code) == (2, 1, 3) and "(epoch 2 of 2)" in str(
        error
    )


@pytest.mark.parametrize("longer", [False, True], ids=["less than a lease", "longer than a lease"])
def test_the_head_stands_still(cluster: Home, second: Node, tmp_path: Path, longer: bool) -> None:
    gang = spread(tmp_path)
    head = cluster.json("status")["pid"]
    stand_still(head)
    try:
        if longer:
            eventually(
                lambda: "the head has not answered for " in second.log(),
                what="the end of the session",
            )
        gang.tell(0, "'first'")  # the end is kept until the head can take it
        gang.failure(exceptions.GetTimeoutError, timeout=1)
    finally:
        os.kill(head, signal.SIGCONT)
    gang.tell(1, "'second'")
    assert gang.handle.result(60) == ["first", "second"]
    assert gang.handle.status()["epoch"] == 1
    eventually(
        lambda: all(
            each["state"] == "alive"
            for each in troupe.state.list_nodes()
            if each["name"] in gang.nodes
        ),
        what="both nodes",
    )
