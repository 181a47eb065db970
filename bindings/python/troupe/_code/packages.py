"""Directories as packages: zipped where they are, named by their digest, unpacked once per host.

View: one process. The zip of a directory is the same bytes for the same content, so that it travels and is
unpacked once. What a host has of packages and installed requirements lies in `cache()`, is compared with what it was
when it was made before it is used (`_code.packed`), and goes when nothing has used it for a week.
"""
from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import sys
import uuid
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from troupe import exceptions
from troupe._cluster import folders, home
from troupe._code import packed

PACKAGE_BYTES_MAX = 256 << 20
UNUSED_S = 7 * 86400.0
_NEVER = (".git", "__pycache__", ".venv", "*.pyc")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_AWAY = "away-"
_in_use: list[int] = []  # descriptors that are locked as long as this process lives


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
            _add(package, path, os.path.join(inside, relative), os.stat(path).st_mode & 0o777)
    return sink.getvalue()


def of_file(path: str, what: str) -> bytes:
    """An archive (.zip, .whl) as it is; a module's file as a zip. Raises TooLargeError naming `what`."""
    size = os.path.getsize(path)
    if not path.endswith(".py"):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    if size > PACKAGE_BYTES_MAX:
        raise exceptions.TooLargeError(f"{what}: {path} holds {size / 2**20:.1f} MiB; {PACKAGE_BYTES_MAX >> 20} MiB is the limit")
    if path.endswith(".py"):
        return zip_of_file(path, os.path.basename(path))
    with open(path, "rb") as file:
        return file.read()


def zip_of_file(path: str, name: str) -> bytes:
    """One file as a zip, under that name."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as package:
        _add(package, path, name, 0o644)
    return sink.getvalue()


def _add(package: zipfile.ZipFile, path: str, name: str, mode: int) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = mode << 16
    with open(path, "rb") as file:
        package.writestr(entry, file.read())


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
    """This host's folder of packages and installed requirements, under TROUPE_HOME; this user's alone."""
    return folders.private(home.state_root() / "cache", remedy="remove it: what is in it is made anew")


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, filled by `make(folder)` where no process of this host has done so, and as it was then.

    Its files are compared with what was made: one that was changed since has the folder made anew, beside the old one where a process
    uses that; files that were added are let be, for a working directory may be written to. Others that want it wait meanwhile. It
    stays as long as this process, or one that it forks, lives. What `make` raises is raised, and the next one tries again.
    """
    folder = cache() / name
    with _locked(_beside(folder, "lock"), fcntl.LOCK_SH):
        if not packed.difference(folder):
            return _use(folder)
    with _locked(_beside(folder, "lock"), fcntl.LOCK_EX):
        different = packed.difference(folder)
        if different:
            _forget_unused()
            if different is not packed.NOT_MADE:
                print(f"troupe: {folder} is made anew: {different}", file=sys.stderr, flush=True)
                _put_away(folder)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)  # the umask may have taken from it
            make(folder)
            packed.note(folder)
        return _use(folder)


def _beside(folder: Path, kind: str) -> Path:
    return folder.with_name(f"{folder.name}.{kind}")


def _use(folder: Path) -> Path:
    """Nobody removes the folder from now on until this process, and those forked from it, have ended."""
    _in_use.append(_taken(_beside(folder, "use"), fcntl.LOCK_SH))
    packed.used_now(folder)
    return folder


def _put_away(folder: Path) -> None:
    """Gives its name free. Processes that are in it go on there; it is removed when none is."""
    away = folder.with_name(f"{_AWAY}{uuid.uuid4().hex}")
    packed.forget(folder)
    folder.rename(away)
    with contextlib.suppress(FileNotFoundError):
        _beside(folder, "use").rename(_beside(away, "use"))


def unpack(package: bytes, folder: Path) -> None:
    """The files of a zip that `zip_of` or anything else made."""
    with zipfile.ZipFile(io.BytesIO(package)) as opened:
        for entry in opened.infolist():
            path = opened.extract(entry, folder)  # zipfile keeps names inside the folder
            if not entry.is_dir():
                os.chmod(path, entry.external_attr >> 16 & 0o777 | 0o600)


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    lock = _taken(path, how)
    try:
        yield
    finally:
        os.close(lock)


def _taken(path: Path, how: int) -> int:
    """A descriptor that holds the file locked: the one of that name, not one that was removed meanwhile."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, how)
            if os.path.exists(path) and os.path.samestat(os.fstat(lock), os.lstat(path)):
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _forget_unused() -> None:
    """Removes what no process uses and nobody has asked for in UNUSED_S seconds, and what was put away."""
    at_once = fcntl.LOCK_EX | fcntl.LOCK_NB
    for folder in [each for each in cache().iterdir() if each.is_dir() and not each.is_symlink()]:
        away = folder.name.startswith(_AWAY)
        if not away and packed.unused_s(folder) <= UNUSED_S:
            continue
        with contextlib.suppress(OSError), _locked(_beside(folder, "lock"), at_once), _locked(_beside(folder, "use"), at_once):
            packed.forget(folder)
            shutil.rmtree(folder, ignore_errors=True)
            for kind in ("use", "lock"):
                _beside(folder, kind).unlink(missing_ok=True)
