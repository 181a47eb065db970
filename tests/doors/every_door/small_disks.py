"""File systems with little room, or that may not be written, each seen by one process and those
that it starts: mounts of a namespace of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

import troupe

LIMIT_S = 4 * TIMEOUT_S
NODE_BYTES = 24 << 20
_MOUNT = 'mount -t tmpfs -o mode=700,"$1" tmpfs "$0"; shift; '
_LEFT = '"$@"; code=$?; cd "$0"; find . -mindepth 1 | sort | sed "s/^/left: /"; exit $code'


def why_not() -> str:
    """Return the missing requirement for small disks; "" if there is none."""
    done = subprocess.run(
        [*_namespace(), "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    return (
        ""
        if done.returncode == 0
        else f"a mount namespace cannot be made here: {done.stderr.strip()}"
    )


def _namespace() -> list[str]:
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


needs_mounts = pytest.mark.skipif(bool(why_not()), reason=why_not() or "mounts")


def on_a_small_disk(
    folder: Path, line: Sequence[str], options: str = "size=1m", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    """Runs the line where `folder` is a file system with these options; behind its stdout, what it
    has left there, in lines that begin with `left: `."""
    folder.mkdir(exist_ok=True)
    words = [*_namespace(), "bash", "-c", _MOUNT + _LEFT, str(folder), options, *line]
    return subprocess.run(
        words, capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, **(env or {})}
    )


def left_of(done: subprocess.CompletedProcess) -> list[str]:
    """Return the files that a line has left on its small disk."""
    return [
        line.removeprefix("left: ")
        for line in done.stdout.splitlines()
        if line.startswith("left: ")
    ]


@pytest.fixture(scope="module")
def small_node(shared_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of one node, as of another host, that has NODE_BYTES for what jobs bring; this
    process is connected to it. The node's cache, as it is seen from here. The node's /mnt may not
    be written."""
    head = shared_home.json("start", "--head", "--no-worker", "--port", "0")
    cache = shared_home.path / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    start = [
        sys.executable,
        "-m",
        "troupe",
        "start",
        "--address",
        head["address"],
        "--token-file",
        shared_home.token(),
        "--node-name",
        "small",
        "--num-cpus",
        "4",
        "--force-tcp",
    ]
    done = subprocess.run(
        [
            *_namespace(),
            "bash",
            "-c",
            "mount -t tmpfs -o ro tmpfs /mnt; " + _MOUNT + 'exec "$@"',
            str(cache),
            f"size={NODE_BYTES}",
            *start,
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    troupe.init(head["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygote"
    )
    (pid,) = [each["pid"] for each in troupe.state.list_nodes()]
    yield Path(f"/proc/{pid}/root{cache}")
    troupe.shutdown()


def folders_in(cache: Path) -> list[str]:
    """Return the folders finished or begun there: no locks and records."""
    return sorted(each.name for each in cache.iterdir() if each.is_dir())
