"""A rank that the kernel kills for want of memory: a node in a memory cgroup of its own.

Skipped, with the reason, where no such group can be made.
"""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Home, eventually
from gangs import Gang, running

import troupe
from troupe import exceptions

HEADROOM_BYTES = 256 << 20
# The kernel is to choose this one, and the pages are to be written to.
GROW = "[Path('/proc/self/oom_score_adj').write_text('1000'), [b'x' * (1 << 24) for _ in range(256)]]"


class MemoryGroup:
    """A memory cgroup of either version; OSError where it cannot be made."""

    def __init__(self) -> None:
        one, two = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
        first = (one / "memory.limit_in_bytes").exists()
        self.path = (one if first else two) / f"troupe-test-{uuid.uuid4().hex[:8]}"
        self._used, self._limit = ("memory.usage_in_bytes", "memory.limit_in_bytes") if first else ("memory.current", "memory.max")
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

    def close(self) -> None:
        eventually(lambda: not (self.path / "cgroup.procs").read_text(), what="the end of the group's processes")
        self.path.rmdir()


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    """One to start a node in."""
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


def test_a_rank_runs_out_of_memory(cluster: Home, group: MemoryGroup, tmp_path: Path) -> None:
    address = troupe.init(ignore_reinit_error=True).address
    command = [sys.executable, "-m", "troupe", "start", "--address", address, "--token-file", cluster.token(), "--num-cpus",
               "2", "--num-gpus", "2", "--node-name", "small", "--json"]
    inside = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group.path), *command]
    subprocess.run(inside, check=True, capture_output=True, timeout=60, env={**os.environ})
    node = next(each for each in troupe.state.list_nodes() if each["name"] == "small")
    try:
        eventually(lambda: next(each for each in troupe.state.list_nodes() if each["name"] == "small")["zygote_ready"],
                   what="its zygote")
        gang = Gang(tmp_path / "gang", 2, processes=None, gpus=2)
        group.leave_room_for(HEADROOM_BYTES)
        gang.tell(1, GROW)
        error = gang.failure(exceptions.LaunchError)
        assert isinstance(error, exceptions.OutOfMemoryError)
        assert (error.rank, error.host, error.signal, error.exit_code) == (1, "small", signal.SIGKILL, 137)
        text = str(error)
        assert "SIGKILL, out of memory (cgroup memory." in text and "try: less data held by each rank" in text
        assert gang.exit_codes() == [137, 137]
    finally:
        os.kill(node["pid"], signal.SIGTERM)
        eventually(lambda: not running(node["pid"]), what="the end of the node")
