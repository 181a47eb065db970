"""Memory that runs out: a node in a memory cgroup of its own, and whom the kernel is told to take.

The former is skipped, with the reason, where no such group can be made.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Home, eventually, parked, running
from gangs import Gang
from test_deaths_nodes import zygotes

import troupe
from troupe import exceptions

HEADROOM_BYTES = 256 << 20
GROW = "[b'x' * (1 << 24) for _ in range(256)]"  # pages that are written to


class MemoryGroup:
    """A memory cgroup of either version; OSError where it cannot be made."""

    def __init__(self) -> None:
        one, two = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
        first = (one / "memory.limit_in_bytes").exists()
        self.path = (one if first else two) / f"troupe-test-{uuid.uuid4().hex[:8]}"
        self._used, self._limit = (
            ("memory.usage_in_bytes", "memory.limit_in_bytes")
            if first
            else ("memory.current", "memory.max")
        )
        if not first:
            if not (two / "cgroup.controllers").exists():
                raise OSError("no cgroup file system")
            (two / "cgroup.subtree_control").write_text("+memory")
        self.path.mkdir()

    def check(self) -> None:
        """Raises OSError where it has no limit to set."""
        (self.path / self._limit).write_text(str(1 << 40))

    def leave_room_for(self, size: int) -> None:
        """From now on its members may use `size` bytes more than they do."""
        (self.path / self._limit).write_text(str(int((self.path / self._used).read_text()) + size))

    def limit(self) -> int:
        """In bytes."""
        return int((self.path / self._limit).read_text())

    def close(self) -> None:
        eventually(
            lambda: not (self.path / "cgroup.procs").read_text(),
            what="the end of the group's processes",
        )
        self.path.rmdir()


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    """A memory cgroup to start a node in."""
    try:
        made = MemoryGroup()
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made here: {error}")
    try:
        try:
            made.check()
        except OSError as error:
            pytest.skip(f"the memory cgroup has no limit: {error}")
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def node_in(group: MemoryGroup, cluster: Home, name: str) -> Iterator[int]:
    """A node whose processes are in the group, with a zygote that is ready; its worker's pid."""
    address = troupe.init(ignore_reinit_error=True).address
    command = [
        sys.executable,
        "-m",
        "troupe",
        "start",
        "--address",
        address,
        "--token-file",
        cluster.token(),
        "--num-cpus",
        "3",
        "--num-gpus",
        "2",
        "--resources",
        '{"small": 1}',
        "--node-name",
        name,
        "--json",
    ]
    inside = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group.path), *command]
    subprocess.run(inside, check=True, capture_output=True, timeout=60, env={**os.environ})
    node = next(each for each in troupe.state.list_nodes() if each["name"] == name)
    try:
        eventually(
            lambda: next(each for each in troupe.state.list_nodes() if each["name"] == name)[
                "zygote_ready"
            ],
            what="its zygote",
        )
        yield node["pid"]
    finally:
        os.kill(node["pid"], signal.SIGTERM)
        eventually(lambda: not running(node["pid"]), what="the end of the node")


class Where:
    """Tells its process."""

    def pid(self) -> int:
        return os.getpid()


def test_a_rank_runs_out_of_memory_and_is_taken_itself(
    cluster: Home, group: MemoryGroup, tmp_path: Path
) -> None:
    with node_in(group, cluster, "small") as worker:
        actor = troupe.remote(Where).options(num_cpus=1, resources={"small": 1}).remote()
        bystander = troupe.get(actor.pid.remote(), timeout=60)
        [zygote] = zygotes(worker)
        gang = Gang(tmp_path / "gang", 2, processes=None, gpus=2)
        group.leave_room_for(HEADROOM_BYTES)
        gang.tell(1, GROW)
        error = gang.failure(exceptions.LaunchError)
        assert isinstance(error, exceptions.OutOfMemoryError)
        assert (error.rank, error.host, error.signal, error.exit_code) == (
            1,
            "small",
            signal.SIGKILL,
            137,
        )
        text = str(error)
        assert (
            "SIGKILL, out of memory (cgroup memory." in text
            and "try: less data held by each rank" in text
        )
        assert gang.exit_codes() == [137, 137]
        assert troupe.get(actor.pid.remote(), timeout=60) == bystander
        assert zygotes(worker) == [zygote]


def grow() -> None:
    """Hold more memory than there is."""
    eval(GROW)


class Grows(Where):
    """An actor that holds more memory than there is, when it is asked to."""

    def grow(self) -> None:
        grow()


def test_a_task_and_an_actor_that_run_out_of_memory_end_by_an_error_that_says_limit_and_use(
    cluster: Home, group: MemoryGroup
) -> None:
    with node_in(group, cluster, "tight"):
        place = {"num_cpus": 1, "resources": {"small": 0.1}}
        actor = troupe.remote(Grows).options(memory=64 << 20, **place).remote()
        troupe.get(actor.pid.remote(), timeout=60)
        group.leave_room_for(HEADROOM_BYTES)
        limit = group.limit()
        for call, kind, requested in (
            (actor.grow.remote(), exceptions.ActorDiedError, 64 << 20),
            (
                troupe.remote(grow).options(max_retries=0, **place).remote(),
                exceptions.WorkerCrashedError,
                0,
            ),
        ):
            with pytest.raises(exceptions.OutOfMemoryError) as caught:
                troupe.get(call, timeout=60)
            error = caught.value
            assert isinstance(error, kind)
            assert (error.limit, error.requested) == (
                limit,
                requested,
            ) and error.used > HEADROOM_BYTES // 2
            assert f", peak RSS {error.used / 2**20:.1f} MiB, limit {limit / 2**20:.1f} MiB" in str(
                error
            )
            assert ("memory= 64.0 MiB" in str(error)) == bool(
                requested
            ) and "\n  try: less data held by it" in str(error)
            again = pickle.loads(pickle.dumps(error))
            assert isinstance(again, kind) and (again.limit, again.used, again.requested) == (
                limit,
                error.used,
                requested,
            )


@pytest.mark.parametrize(
    ("word", "raises"),
    [
        (f"subprocess.run([sys.executable, '-c', {GROW!r}], check=True)", True),
        (
            f"os._exit(5) if subprocess.run([sys.executable, '-c', {GROW!r}]).returncode else 0",
            False,
        ),
    ],
    ids=["raises", "exits"],
)
def test_a_child_of_a_rank_runs_out_of_memory_and_the_error_says_so(
    cluster: Home, group: MemoryGroup, tmp_path: Path, word: str, raises: bool
) -> None:
    with node_in(group, cluster, f"small-{raises}"):
        gang = Gang(tmp_path / "gang", 2, processes=None, gpus=2)
        group.leave_room_for(
            4 * HEADROOM_BYTES
        )  # the node's own processes may still grow: it is the child that is to take it
        gang.tell(1, word)
        error = gang.failure(exceptions.LaunchError)
        assert (error.rank, error.signal) == (1, None) and not isinstance(
            error, exceptions.OutOfMemoryError
        )
        assert ("CalledProcessError" if raises else "exited with code 5") in str(error)
        assert "the kernel had killed a process here for want of memory (cgroup memory." in str(
            error
        )


def score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def test_who_runs_user_code_is_taken_before_what_others_need_and_first_who_uses_more_than_it_said(
    idle: Home, tmp_path: Path
) -> None:
    gang = Gang(tmp_path / "gang", 2)
    plain, modest = (
        troupe.remote(Where).remote(),
        troupe.remote(Where).options(memory=1 << 20).remote(),
    )
    pids = troupe.get([plain.pid.remote(), modest.pid.remote()], timeout=60)
    commands = idle.processes()
    [worker] = [pid for pid, command in commands.items() if "troupe-worker" in command]
    base = score(worker)
    needed = [
        pid
        for pid, command in commands.items()
        if "troupe._process.zygote" in command or command.startswith("troupe: store")
    ]
    assert len(needed) >= 2, commands
    assert {score(pid) - base for pid in needed} == {0}
    for pid in parked(idle):
        with contextlib.suppress(
            FileNotFoundError, ProcessLookupError
        ):  # a process that has become another program since, and has ended
            assert score(pid) == base or pid not in parked(idle)
    user = min(base + 500, 1000)
    assert [score(pid) for pid in [*gang.pids, pids[0]]] == [user] * 3
    eventually(
        lambda: score(pids[1]) == min(base + 900, 1000),
        what="the score of one that uses more than its memory=",
    )
    assert score(pids[0]) == user
    gang.tell(0, "int(Path('/proc/self/oom_score_adj').read_text())")
    gang.tell(1, "int(subprocess.check_output(['cat', '/proc/self/oom_score_adj']))")
    assert gang.handle.result(60) == [user, user]
    for each in (plain, modest):
        troupe.kill(each)
