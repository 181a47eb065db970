"""The ssh clients that keep nodes of a cluster: their records, starting them and ending them.

An ssh client runs in a session of its own and outlives the process that started it. Its stdin is a
FIFO that it has open for reading and writing: only a process that opens the FIFO by its path ever
writes into it, and stdin ends with the client.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._base import identity, process_ends
from troupe._cluster import folders, home
from troupe._provision.hosts import Host

END_LINE = b"end\n"
"""Line of stdin, after the token, at which the far side ends its node. Any line does."""
KILL_GRACE_S = 5.0
_RECORD, _STDIN, _LOG = "record.json", "stdin", "ssh.log"
_REMEDY = "set TROUPE_HOME to another folder"
_REPAIR = "troupe down ends what runs; then remove the file"


@dataclass(frozen=True)
class Record:
    """Facts about an ssh client that was started.

    Attributes:
        host: name or address of the host.
        shown: the host with its user and port.
        pid: process of the client.
        start_ticks: start time of that process, which tells it from a later one with its pid.
        boot_id: the kernel's id of this boot.
        node: name of the node; "" until it has joined.
    """

    host: str
    shown: str
    pid: int
    start_ticks: int
    boot_id: str
    node: str = ""


@dataclass(frozen=True)
class Connection:
    """An ssh client by its folder and its record."""

    folder: Path
    record: Record

    @property
    def log(self) -> Path:
        """Return the file with the client's stderr."""
        return self.folder / _LOG

    def is_alive(self) -> bool:
        """Return True if the client has not ended."""
        record = self.record
        return (
            record.boot_id == identity.kernel_boot_id()
            and home.is_running(record.pid, "ssh")
            and _start_ticks(record.pid) == record.start_ticks
        )

    def write_record(self, **changed: Any) -> Connection:
        """Write the record, with these fields changed, and return the connection with it."""
        record = Record(**{**asdict(self.record), **changed})
        with folders.replacement(self.folder / _RECORD) as fresh:
            with open(fresh, "w", encoding="utf-8", opener=folders.open_private) as file:
                json.dump(asdict(record), file)
        return Connection(self.folder, record)

    def ask_to_end(self) -> bool:
        """Tell the far side to end its node; return False if the client cannot take the line."""
        try:
            descriptor = os.open(self.folder / _STDIN, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            return os.write(descriptor, END_LINE) == len(END_LINE)
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def forget(self) -> None:
        """Remove the folder of a client that has ended."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class Started:
    """An ssh client that was just started: its process, and its stdout to read."""

    connection: Connection
    process: subprocess.Popen[bytes]
    stdout: int

    def close(self) -> None:
        """Close this process's end of the client's stdout. Idempotent."""
        if self.stdout >= 0:
            os.close(self.stdout)
        self.stdout = -1


def folder_of(cluster_id: str) -> Path:
    """Return the folder of a cluster's ssh clients, made where it is missing."""
    root = home.state_root()
    home.require_writable(root)
    return folders.private(root / "clusters" / cluster_id / "ssh", remedy=_REMEDY)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other `troupe up` and `troupe down` of the cluster out; wait for one that is at work."""
    with open(folder / "lock", "w", opener=folders.open_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def known(folder: Path) -> dict[str, Connection]:
    """Return the connections of a cluster by the names of their folders, dead ones too.

    Raises:
        DamagedFileError: if a record is not what was written.
    """
    found = {}
    for path in sorted(folder.glob(f"*/{_RECORD}")):
        value = home.read_record(
            path, _REPAIR, host=str, shown=str, pid=int, start_ticks=int, boot_id=str, node=str
        )
        if value is not None:
            fields = {name: value[name] for name in Record.__dataclass_fields__}
            found[path.parent.name] = Connection(path.parent, Record(**fields))
    return found


def clusters() -> list[str]:
    """Return the ids of the clusters that have an ssh client that is alive."""
    folder = home.state_root() / "clusters"
    return [
        path.parent.name
        for path in sorted(folder.glob("*/ssh"))
        if any(each.is_alive() for each in known(path).values())
    ]


def start(folder: Path, host: Host, line: Sequence[str], token: str) -> Started:
    """Start the ssh client of a host, with the token as the first line of its stdin.

    Raises:
        FileNotFoundError: if there is no ssh client.
        PermissionError: if the folder of its record is not this user's alone.
    """
    own = folders.private(folder / host.folder_name, remedy=_REMEDY, tidy=True)
    (own / _STDIN).unlink(missing_ok=True)
    os.mkfifo(own / _STDIN, 0o600)
    stdin = os.open(own / _STDIN, os.O_RDWR)
    read_end, write_end = os.pipe()
    # Opened for reading too, so that the client's stdout never breaks once nobody reads it here.
    stdout = os.open(f"/proc/self/fd/{write_end}", os.O_RDWR)
    try:
        os.write(stdin, token.encode() + b"\n")
        with open(own / _LOG, "wb", opener=folders.open_private) as log:
            process = subprocess.Popen(
                list(line), stdin=stdin, stdout=stdout, stderr=log, start_new_session=True
            )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        for descriptor in (stdin, write_end, stdout):
            os.close(descriptor)
    ticks, boot = _start_ticks(process.pid), identity.kernel_boot_id()
    record = Record(host.host, host.shown, process.pid, ticks, boot)
    return Started(Connection(own, record).write_record(), process, read_end)


def end(connections: Sequence[Connection], timeout_s: float) -> list[Connection]:
    """End the nodes of connections, and their clients; return those that had to be cut off.

    A node has `timeout_s` seconds to end. After that its client is killed, which the far side
    notices as far as it can be reached.
    """
    watched = _watch(connections)
    try:
        for descriptor, each in list(watched.items()):
            if not each.ask_to_end():
                _signal(descriptor, signal.SIGTERM)
        process_ends.drop_ended(watched, timeout_s)
        cut_off = list(watched.values())
        for number in (signal.SIGTERM, signal.SIGKILL):
            for descriptor in watched:
                _signal(descriptor, number)
            process_ends.drop_ended(watched, KILL_GRACE_S)
    finally:
        for descriptor in watched:
            os.close(descriptor)
    for each in connections:
        if not each.is_alive():
            each.forget()
    return cut_off


def _watch(connections: Sequence[Connection]) -> dict[int, Connection]:
    """Return descriptors of the clients that are alive."""
    watched = {}
    for each in connections:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(each.record.pid)
            if each.is_alive():
                watched[descriptor] = each
            else:  # another process has the pid by now
                os.close(descriptor)
    return watched


def _signal(descriptor: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, number)


def require_ssh() -> str:
    """Return the path of the ssh client.

    Raises:
        MissingPackageError: if there is none.
    """
    found = shutil.which("ssh")
    if found is None:
        raise exceptions.MissingPackageError(
            "`troupe up` needs the command `ssh`, which is not on PATH: install OpenSSH's client "
            "(Debian: openssh-client)",
            name="ssh",
        )
    return found


def _start_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since the boot; 0 if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except OSError:
        return 0
