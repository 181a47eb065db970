"""Fixtures of the end-to-end tests: real heads, workers and ranks in a TROUPE_HOME of their own.

Every test leaves nothing behind: `home` asserts at its end that no process it started is alive, by
the variable TROUPE_TEST_ID that all of them inherit, and that no socket of theirs is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import troupe

TIMEOUT_S = 60.0


def processes_of(test_id: str) -> dict[int, str]:
    """Living processes (pid -> command) that inherited this test's id, this one excepted."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            environment = Path("/proc", name, "environ").read_bytes()
            state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0]
            if (
                f"TROUPE_TEST_ID={test_id}".encode() in environment.split(b"\0")
                and state not in "ZX"
            ):
                found[int(name)] = (
                    Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode()
                )
        except (OSError, IndexError):
            continue
    return found


def eventually(
    condition: Callable[[], object], *, timeout: float = TIMEOUT_S, what: str = "it"
) -> object:
    """Waits until `condition()` is true and returns its value; fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout:g} s"
        time.sleep(0.02)  # lint-ok: polling other processes, up to a deadline


def torch_aborted_at_the_end(stderr: str) -> bool:
    """Return True if one of torch's processes aborted while its interpreter ended, by its stderr.

    A thread of torch that wants Python's lock then is ended by pthread_exit in the midst of C++:
    std::terminate. That says nothing of what the program did before.
    """
    return "terminate called without an active exception" in stderr


def _thread_states(pid: int) -> list[str]:
    """Return the state of each thread of a process, a letter of proc_pid_stat(5); none once it has
    been reaped."""
    states = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):  # a thread that has ended
                states.append(
                    Path(f"/proc/{pid}/task/{task}/stat").read_text().rsplit(")", 1)[1].split()[0]
                )
    return states


def running(pid: int) -> bool:
    """Return whether a process has not ended.

    One that nobody has reaped yet has ended; one of which only the first thread is over has not.
    """
    return any(state not in "ZX" for state in _thread_states(pid))


def stand_still(pid: int) -> None:
    """Stops a process, and returns once none of its threads runs: the signal alone takes its time,
    more on a busy machine."""
    os.kill(pid, signal.SIGSTOP)
    eventually(
        lambda: all(state == "T" for state in _thread_states(pid)),
        what=f"the stop of process {pid}",
    )


def all_returned(*, timeout: float) -> None:
    """Waits until all resources of the cluster this process is connected to are free."""
    import troupe

    eventually(
        lambda: troupe.available_resources() == troupe.cluster_resources(),
        timeout=timeout,
        what=f"the return of all resources ({troupe.available_resources()})",
    )


class Home:
    """A TROUPE_HOME, and the `troupe` command in it."""

    def __init__(self, path: Path, test_id: str) -> None:
        self.path = path
        self.test_id = test_id

    def run(
        self,
        *args: str,
        ok: bool = True,
        timeout: float = TIMEOUT_S,
        stdin: str | None = None,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess:
        """Runs `troupe ARGS`; with `ok` its exit code must be 0."""
        done = subprocess.run(
            [sys.executable, "-m", "troupe", *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            input=stdin,
            env={**os.environ, **(env or {})},
        )
        if ok:
            assert done.returncode == 0, (
                f"troupe {' '.join(args)} ended with {done.returncode}\n{done.stderr}"
            )
        return done

    def json(self, *args: str) -> dict:
        """Runs a command with --json and returns its document."""
        return json.loads(self.run(*args, "--json").stdout)

    def token(self, *args: str) -> str:
        """A new token in a file; the file's path."""
        path = self.path / f"token-{uuid.uuid4().hex[:6]}"
        path.touch(mode=0o600)
        path.write_text(self.run("token", "create", *args).stdout)
        return str(path)

    def processes(self) -> dict[int, str]:
        """Living processes of this test."""
        return processes_of(self.test_id)

    def python(
        self,
        code: str,
        *,
        timeout: float = 3 * TIMEOUT_S,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess:
        """Runs a program in a process of its own."""
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=cwd,
            env={**os.environ, **(env or {})},
        )


def parked(home: Home) -> set[int]:
    """Pids of the processes that a zygote forked ahead and that wait to become something."""
    return {
        pid for pid, command in home.processes().items() if command.strip("\0 ") == "troupe: parked"
    }


@contextlib.contextmanager
def _home(path: Path) -> Iterator[Home]:
    test_id = uuid.uuid4().hex
    saved = dict(os.environ)
    for name in ("TROUPE_ADDRESS", "TROUPE_CLUSTER", "TROUPE_TOKEN_FILE", "RAY_ADDRESS"):
        os.environ.pop(name, None)
    runtime = Path(f"/tmp/tt-{test_id[:8]}")  # short: the paths of sockets are limited to 108 bytes
    runtime.mkdir(mode=0o700)
    os.environ.update(TROUPE_HOME=str(path), TROUPE_TEST_ID=test_id, XDG_RUNTIME_DIR=str(runtime))
    here = Home(path, test_id)
    try:
        yield here
        import troupe
        from troupe._cluster import connect

        troupe.shutdown()
        connect.close_hidden()
        here.run("stop", "--all")
        eventually(
            lambda: not here.processes(),
            what=f"the end of every process of the test ({here.processes()})",
        )
        left = [str(each) for each in runtime.rglob("*") if each.is_socket()]
        assert not left, f"sockets are left: {left}"
    finally:
        for pid in here.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        shutil.rmtree(runtime, ignore_errors=True)
        os.environ.clear()
        os.environ.update(saved)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A TROUPE_HOME for one test."""
    with _home(tmp_path / "home") as made:
        yield made


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A TROUPE_HOME for a module's tests."""
    with _home(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(shared_home: Home) -> Iterator[Home]:
    """A head and one worker with 8 logical CPUs, this process connected to it."""
    import troupe

    started = shared_home.json(
        "start", "--head", "--port", "0", "--num-cpus", "8", "--node-name", "one"
    )
    troupe.init(started["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygote"
    )
    yield shared_home
    troupe.shutdown()


@pytest.fixture
def idle(cluster: Home) -> Iterator[Home]:
    """The cluster; asserts that all its resources are free again after the test."""
    yield cluster
    all_returned(timeout=TIMEOUT_S)


@pytest.fixture(scope="module")
def hosts(shared_home: Home) -> Iterator[dict[str, str]]:
    """Node ids by name, "a" and "b"; this process is connected as a driver."""
    head = shared_home.json("start", "--head", "--no-worker", "--port", "0")
    for name in ("a", "b"):
        shared_home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            shared_home.token(),
            "--node-name",
            name,
            "--num-cpus",
            "8",
            "--force-tcp",
        )
    troupe.init(head["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygotes"
    )
    yield {node["NodeName"]: node["NodeID"] for node in troupe.nodes()}
    troupe.shutdown()
