"""TROUPE_HOME: where the clusters of this user on this machine keep their state."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._cluster import folders

_REMEDY = (
    "set TROUPE_HOME to a folder on this machine that is yours, and that only you may write to"
)


def home() -> Path:
    """`$TROUPE_HOME`, by default ~/.troupe; made with mode 0700.

    Raises PermissionError for one that is not this user's alone.

    One that is there already may be readable by others: it may be kept for other things too. What
    this package makes in it is not.
    """
    given = os.environ.get("TROUPE_HOME")
    path = Path(given or Path.home() / ".troupe")
    try:
        return folders.private(path, remedy=_REMEDY, keep_readable=bool(given))
    except OSError as error:
        if error.strerror is None:
            raise
        said = "TROUPE_HOME" if given else "the default of TROUPE_HOME"
        raise type(error)(
            f"{path} ({said}) cannot be made: {error.strerror}\n"
            "  set TROUPE_HOME to a folder on this machine that you may write to"
        ) from None


def require_writable(root: Path) -> None:
    """Raises PermissionError when nothing can be kept in `root`, before anything is started."""
    if not os.access(root, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{root} cannot be written to by this user\n"
            "  set TROUPE_HOME to a folder on this machine that you may write to"
        )


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of `10.0.0.1:6400` or `[::1]:6400`. Raises ValueError for what is no address."""
    scheme, slashes, _ = address.partition("://")
    if slashes:
        raise ValueError(
            f"{address!r} is no address; leave out {scheme}://, and give the head's port: "
            "10.0.0.1:6400"
        )
    host, separator, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    if (
        not separator
        or not bare
        or re.fullmatch("[0-9]{1,5}", port) is None
        or (":" in bare and not bracketed)
    ):
        raise ValueError(f"{address!r} is no address; it looks like 10.0.0.1:6400")
    if not 0 < int(port) < 65536:
        raise ValueError(f"{address!r} is no address: ports go from 1 to 65535")
    return bare, int(port)


def state_root() -> Path:
    """Return the folder that contains `clusters/`: TROUPE_HOME, or a node-local folder if that is
    on a network file system.

    What is in it is this user's alone: itself and the folders in it are looked at before anything
    there is.
    """
    path = home()
    if _file_system_of(path) in _NETWORK_FILE_SYSTEMS:
        local = os.environ.get("XDG_STATE_HOME")
        path = folders.private(
            Path(local) / "troupe" if local else Path(f"/var/tmp/troupe-{os.getuid()}"),
            remedy=_REMEDY,
        )
    sealed = not path.stat().st_mode & 0o077
    for name in ("clusters", "cache", "logs", "jobs"):
        if os.path.lexists(path / name):
            folders.private(path / name, remedy=_REMEDY, tidy=sealed)
    return path


_NETWORK_FILE_SYSTEMS = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "lustre",
    "ceph",
    "gpfs",
    "beegfs",
    "fuse.sshfs",
    "glusterfs",
    "fuse.glusterfs",
    "afs",
    "9p",
}


def _file_system_of(path: Path) -> str:
    """The type of the file system `path` is on, as /proc/self/mounts names it."""
    best, kind = "", ""
    real = str(path.resolve())
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            _, mount, name = line.split(" ")[:3]
            mount = mount.replace("\\040", " ")
            if (real == mount or real.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(
                best
            ):
                best, kind = mount, name
    return kind


@dataclass(frozen=True)
class ClusterHome:
    """A cluster whose head's state is on this machine."""

    path: Path
    cluster_id: str
    address: str
    pid: int
    socket: str
    running: bool
    damage: exceptions.DamagedFileError | None = None
    """Why nothing but its id, its pid and whether it runs is known"""

    def require_whole(self) -> ClusterHome:
        """Return this cluster.

        Raises DamagedFileError if its head.json is damaged, so that nobody knows its address.
        """
        if self.damage is not None:
            raise self.damage
        return self


def is_running(pid: int, name: str = "") -> bool:
    """Return True if a process `pid` lives and, where `name` is given, is that program."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            head, _, tail = file.read().rpartition(")")
    except OSError:
        return False
    return tail.split()[0] not in ("Z", "X") and (not name or name[:15] in head)


def read_record(path: Path, repair: str, **kinds: type) -> dict[str, Any] | None:
    """Return the JSON object in a file of this home that is written whole or not at all; None where
    there is no such file.

    Args:
        repair: what to do where it is damaged, for the error.
        kinds: keys that the object has, each with the type of its value.

    Raises:
        DamagedFileError: if the file is not what was written.
        OSError: if the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        value = json.loads(data)
    except ValueError as error:
        at = getattr(error, "pos", getattr(error, "start", 0))
        raise exceptions.DamagedFileError(
            path, at, f"its {len(data)} bytes are no JSON", repair
        ) from None
    wrong = [
        name
        for name, kind in kinds.items()
        if not isinstance(value, dict) or not isinstance(value.get(name), kind)
    ]
    if wrong or not isinstance(value, dict):
        raise exceptions.DamagedFileError(
            path, 0, f"it does not say {' and '.join(wrong) or 'anything'}", repair
        )
    return value


def holder_of(lock: Path) -> int:
    """Return the pid of the process that has this file locked, as heads and workers have theirs as
    long as they live; 0: none has."""
    try:
        inode = lock.stat().st_ino
        with open("/proc/locks", encoding="ascii") as locks:
            rows = [line.split() for line in locks]
    except OSError:
        return 0
    return next(
        (
            int(row[4])
            for row in rows
            if row[1] == "FLOCK" and row[5].rpartition(":")[2] == str(inode)
        ),
        0,
    )


def remove_socket_of(record: Path) -> None:
    """Removes the sockets of the program that wrote `record`, if it is dead: one that was killed
    left them."""
    try:
        told = read_record(record, "", pid=int, socket=str)
    except (OSError, exceptions.DamagedFileError):
        return
    if told is None:
        return
    pid, socket = told["pid"], Path(told["socket"])
    if not socket.is_socket() or is_running(pid, "troupe-"):
        return
    if socket.parent.name == f"n-{pid}":  # a worker's own folder, with the sockets of its processes
        import shutil

        shutil.rmtree(socket.parent, ignore_errors=True)
    else:
        socket.unlink(missing_ok=True)


def clusters(*, running_only: bool = False) -> list[ClusterHome]:
    """Clusters with a head.json in this home, running ones first."""
    known = [cluster_of(path) for path in sorted((state_root() / "clusters").glob("*/head.json"))]
    found = [each for each in known if each is not None and (each.running or not running_only)]
    return sorted(found, key=lambda each: not each.running)


def cluster_of(path: Path) -> ClusterHome | None:
    """Return what a head.json tells, with `damage` where it is damaged; None where there is
    none."""
    try:
        record = read_record(path, "", cluster_id=str, address=str, pid=int, socket=str)
    except exceptions.DamagedFileError as error:
        name, pid = path.parent.name, holder_of(path.parent / "head" / "lock")
        running = pid > 0 and is_running(pid, "troupe-head")
        repair = (
            f"the head writes it when it starts: {'troupe stop, then ' * running}troupe start "
            f"--head --cluster {name[:8]} --listen ADDRESS --port PORT, "
            "where it listened before; --new makes another cluster"
        )
        return ClusterHome(
            path.parent,
            name,
            "",
            pid,
            "",
            running,
            exceptions.DamagedFileError(error.path, error.offset, error.why, repair),
        )
    if record is None:
        return None
    pid = record["pid"]
    return ClusterHome(
        path.parent,
        record["cluster_id"],
        record["address"],
        pid,
        record["socket"],
        pid > 0 and is_running(pid, "troupe-head"),
    )


def workers() -> list[tuple[Path, dict[str, Any]]]:
    """(folder, node.json) of every worker of this home whose process lives."""
    found = []
    for path in sorted((state_root() / "clusters").glob("*/nodes/*/node.json")):
        record = node_of(path)
        if record is not None and is_running(record["pid"], "troupe-worker"):
            found.append((path.parent, record))
    return found


def node_of(path: Path) -> dict[str, Any] | None:
    """Return what a node.json tells; of a damaged one the pid alone, which the worker's lock tells.

    None where there is none.
    """
    try:
        return read_record(path, "", pid=int)
    except exceptions.DamagedFileError:
        return {"pid": holder_of(path.with_name("lock"))}
