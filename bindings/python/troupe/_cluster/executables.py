"""Finding and starting the two programs of a cluster: troupe-head and troupe-worker.

A program started here tells that it is ready, or why not, by one line of JSON on a pipe. It runs in
a session of its own and outlives the starter unless it was given a lifeline: a pipe whose end it
takes as its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from troupe import exceptions
from troupe._base import identity as _identity
from troupe._cluster import folders, variables

READY_TIMEOUT_S = 30.0
NODE_PYTHON_PATH = "TROUPE_NODE_PYTHONPATH"
"""Set for a process of the runtime's own that starts nodes: their PYTHONPATH, which is not its own.
"""
_TAIL_BYTES = 4096
PACKAGE = Path(
    os.path.abspath(__file__)
).parent.parent  # not resolved: in a build tree the sources are links


def find(name: str) -> str:
    """The path of `troupe-head` or `troupe-worker`.

    Looks in TROUPE_BIN_DIR, in the package, in a development build next to it, and on PATH. Raises
    FileNotFoundError saying where it looked.
    """
    places = [Path(os.environ["TROUPE_BIN_DIR"])] if os.environ.get("TROUPE_BIN_DIR") else []
    places += [PACKAGE / "bin", PACKAGE.parents[1] / "bin"]
    for place in places:
        if os.access(place / name, os.X_OK):
            return str(place / name)
    import shutil

    found = shutil.which(name)
    if found:
        return found
    raise FileNotFoundError(
        f"{name} was not found in {', '.join(map(str, places))} or on PATH\n"
        "  set TROUPE_BIN_DIR to the folder that has it, or install the package again"
    )


class Lifeline:
    """A pipe by whose end the programs that hold `read_end` know that this process has ended,
    however it ended.

    Nobody else holds the other end: children that are forked without an exec close theirs, so that
    none of them outlives this process as its owner.
    """

    def __init__(self) -> None:
        self.read_end, self._write_end = os.pipe()
        _lifelines.add(self)

    @property
    def is_closed(self) -> bool:
        """Return True after `close`, and in forked children."""
        return self._write_end < 0

    def close(self) -> None:
        """End it. Idempotent."""
        if self.is_closed:
            return
        os.close(self.read_end)
        os.close(self._write_end)
        self.read_end = self._write_end = -1


_lifelines: weakref.WeakSet[Lifeline] = weakref.WeakSet()


def _let_go_of_lifelines() -> None:
    for each in list(_lifelines):
        each.close()


os.register_at_fork(after_in_child=_let_go_of_lifelines)


@dataclass
class Started:
    """A program that is running: its process and what it said when it was ready."""

    process: subprocess.Popen[bytes]
    ready: dict[str, Any]

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid


def start(
    name: str,
    args: Sequence[str],
    *,
    log: Path,
    lifeline: int | None = None,
    timeout: float = READY_TIMEOUT_S,
) -> Started:
    """Starts a program, waits until it is ready, and returns it.

    `log` takes its output. `lifeline` is the read end of a pipe: the program ends when the pipe
    does. Raises what the program said (JoinError, ConnectionError, ...), or TroupeError with the
    last lines of its log when it ended without a word or is not ready after `timeout` seconds;
    nothing is left running.
    """
    read_end, write_end = os.pipe()
    passed = [write_end] + ([lifeline] if lifeline is not None else [])
    command = [find(name), *args, f"--ready_fd={write_end}"]
    if lifeline is not None:
        command.append(f"--lifeline_fd={lifeline}")
    more = variables.under(_identity.new_id(), os.environ) if name == "troupe-worker" else {}
    folders.private(log.parent, remedy="name another folder for its state", keep_readable=True)
    with open(log, "ab", opener=folders.open_private) as output:
        start_of_log = output.tell()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=passed,
                start_new_session=True,
                env={**environment(), **more},
            )
        finally:
            os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        try:
            ready = _read_ready(pipe, process, name, timeout)
        except BaseException:
            end([process])
            raise
    if ready is None:
        code = process.wait()
        raise exceptions.TroupeError(
            f"{name} ended with {code} before it was ready\n{tail(log, start_of_log)}"
        )
    if "error" in ready:
        process.wait()
        raise exceptions.from_code(int(ready.get("code", 0)), str(ready["error"]))
    return Started(process, ready)


def environment() -> dict[str, str]:
    """Return the environment of a node that this program starts, with the variables that make the
    worker use this Python and package."""
    env = variables.of_a_node()
    if NODE_PYTHON_PATH in env:
        env["PYTHONPATH"] = env.pop(NODE_PYTHON_PATH)
    package_root = str(PACKAGE.parent)
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    if package_root not in paths and "site-packages" not in package_root:
        env["PYTHONPATH"] = os.pathsep.join([package_root, *paths])
    return env


def _read_ready(
    pipe: IO[bytes], process: subprocess.Popen[bytes], name: str, timeout: float
) -> dict[str, Any] | None:
    """The JSON line, or None when the pipe ended without one."""
    deadline, data = time.monotonic() + timeout, b""
    while b"\n" not in data:
        readable, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise exceptions.GetTimeoutError(
                f"{name} (pid {process.pid}) was not ready after {timeout:g} s"
            )
        part = os.read(pipe.fileno(), 65536)
        if not part:
            break
        data += part
    try:
        value = json.loads(data) if data.strip() else None
    except ValueError:
        raise exceptions.TroupeError(
            f"{name} said something that is no JSON: {data[:200]!r}"
        ) from None
    return value if isinstance(value, dict) else None


def tail(log: Path, start_of_log: int = 0) -> str:
    """The last lines of a log, indented, from `start_of_log` on; a log that was cut since then,
    from its end."""
    try:
        with open(log, "rb") as file:
            size = log.stat().st_size
            file.seek(max(start_of_log if start_of_log <= size else 0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return f"  (no log at {log})"
    lines = text.rstrip().splitlines()[-12:]
    return "\n".join(
        ["  last lines of its log:", *("    " + line for line in lines), f"  log: {log}"]
    )


def end(processes: Sequence[subprocess.Popen[bytes]], grace: float = 5.0) -> None:
    """SIGTERM, then after `grace` seconds SIGKILL to the groups of those that are left; all are
    reaped."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    wait(processes, grace)
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait(processes: Sequence[subprocess.Popen[bytes]], timeout: float) -> bool:
    """Waits for the ends of processes, by event; whether all ended within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    for process in processes:
        if process.poll() is not None:
            continue
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            process.poll()
            continue
        try:
            select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        finally:
            os.close(descriptor)
        if process.poll() is None:
            return False
    return True
