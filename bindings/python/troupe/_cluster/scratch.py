"""Folders of clusters that end with a process: removed by it, or, where it was killed, by the next
one made.

View: one user on one host. Each folder has a file that its process holds locked as long as it
lives; what is not locked belongs to nobody any more.

    folder = _scratch.Folder("troupe-embedded-")
    (folder.path / "head.log").write_text("...")
    folder.remove()
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from troupe._cluster import folders as _folders

_OWNED = "owner.lock"
_YOUNG_S = 60.0  # the process may not have locked it yet, and its programs may still be ending


class Folder:
    """A new folder `path`, of mode 0700.

    Folders left behind under the same prefix go first. `within`: instead of the system's folder for
    such, where paths have to be short.
    """

    def __init__(self, prefix: str, *, within: str | None = None) -> None:
        _sweep(prefix, within or tempfile.gettempdir())
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
        try:
            self.path.chmod(0o700)  # the umask may have taken from it
            _folders.private(
                self.path, remedy="set TMPDIR to a folder that is yours, or that has the sticky bit"
            )
        except OSError:
            self.path.rmdir()
            raise
        self._lock = os.open(self.path / _OWNED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Removes it and all in it. Idempotent."""
        if self._lock < 0:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1


def folders(prefix: str) -> list[Path]:
    """The folders under this prefix that are this user's own, and whose process lives, the oldest
    first."""
    found: list[tuple[float, Path]] = []
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
                alone = (
                    status.st_uid == os.getuid()
                    and not status.st_mode & 0o077
                    and entry.is_dir(follow_symlinks=False)
                )
                if alone and is_owned(entry.path):
                    found.append((status.st_mtime, Path(entry.path)))
            except OSError:
                continue  # removed meanwhile
    return [path for _, path in sorted(found)]


def _sweep(prefix: str, within: str) -> None:
    with os.scandir(within) as entries:
        found = [entry for entry in entries if entry.name.startswith(prefix)]
    for entry in found:
        try:
            status = entry.stat(follow_symlinks=False)
            mine = entry.is_dir(follow_symlinks=False) and status.st_uid == os.getuid()
            if mine and time.time() - status.st_mtime > _YOUNG_S and not is_owned(entry.path):
                shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            continue  # removed meanwhile


def is_owned(folder: str | os.PathLike[str]) -> bool:
    """Return True if the process whose folder this is lives."""
    try:
        lock = os.open(os.path.join(folder, _OWNED), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
