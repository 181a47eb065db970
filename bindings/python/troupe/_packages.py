"""Directories as packages: zipped where they are, named by their digest, unpacked once per host.

View: one process. The zip of a directory is the same bytes for the same content, so that it travels and is
unpacked once. What a host has of packages and installed requirements lies in `cache()`, and goes when nothing
has used it for a week.
"""
from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from troupe import _home, exceptions

PACKAGE_BYTES_MAX = 256 << 20
UNUSED_S = 7 * 86400.0
_NEVER = (".git", "__pycache__", ".venv", "*.pyc")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_DONE = ".done"


def zip_of(directory: str, excludes: Sequence[str], *, inside: str = "", what: str) -> bytes:
    """A directory's files as a zip, below `inside`; without what `excludes` match (names, or paths from it).

    Raises TooLargeError over PACKAGE_BYTES_MAX, naming `what` and the largest file.
    """
    sink, total, largest = io.BytesIO(), 0, (0, "")
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as package:
        for path, relative in _files(directory, (*_NEVER, *excludes)):
            size = os.path.getsize(path)
            total, largest = total + size, max(largest, (size, relative))
            if total > PACKAGE_BYTES_MAX:
                raise exceptions.TooLargeError(
                    f"{what}: {directory} has over {PACKAGE_BYTES_MAX >> 20} MiB, the limit; the largest file so far is "
                    f"{largest[1]} ({largest[0] / 2**20:.1f} MiB)\n  leave out what is not needed: "
                    "runtime_env={'excludes': [...]}, or put data where all nodes read it")
            entry = zipfile.ZipInfo(os.path.join(inside, relative), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (os.stat(path).st_mode & 0o777) << 16
            with open(path, "rb") as file:
                package.writestr(entry, file.read())
    return sink.getvalue()


def _files(directory: str, excludes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(path, path from the directory) of the files that travel, in an order that is always the same."""
    for folder, names, files in os.walk(directory):
        relative = os.path.relpath(folder, directory)
        relative = "" if relative == "." else relative
        names[:] = sorted(name for name in names if not _excluded(os.path.join(relative, name), excludes))
        for name in sorted(files):
            path = os.path.join(folder, name)
            if not _excluded(os.path.join(relative, name), excludes) and os.path.isfile(path):
                yield path, os.path.join(relative, name)


def _excluded(relative: str, excludes: Sequence[str]) -> bool:
    name = os.path.basename(relative)
    return any(fnmatch(relative, pattern.strip("/")) or fnmatch(name, pattern.strip("/")) for pattern in excludes)


def cache() -> Path:
    """This host's folder of packages and installed requirements, under TROUPE_HOME."""
    folder = _home.state_root() / "cache"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, filled by `make(folder)` where no process of this host has done so.

    Others that want it wait meanwhile. What `make` raises is raised, and the next one tries again.
    """
    folder = cache() / name
    with _locked(folder.with_name(name + ".lock")):
        if not (folder / _DONE).exists():
            _forget_unused()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            make(folder)
            (folder / _DONE).touch()
        os.utime(folder / _DONE)
    return folder


def unpack(package: bytes, folder: Path) -> None:
    """The files of a zip that `zip_of` made."""
    with zipfile.ZipFile(io.BytesIO(package)) as opened:
        for entry in opened.infolist():
            path = opened.extract(entry, folder)  # zipfile keeps names inside the folder
            os.chmod(path, entry.external_attr >> 16 & 0o777 | 0o600)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _forget_unused() -> None:
    """Removes what nobody has asked for in UNUSED_S seconds."""
    for done in cache().glob(f"*/{_DONE}"):
        with contextlib.suppress(OSError):
            if time.time() - done.stat().st_mtime > UNUSED_S:
                shutil.rmtree(done.parent, ignore_errors=True)
                done.parent.with_name(done.parent.name + ".lock").unlink(missing_ok=True)
