"""A host's cache of directories, packages and installed requirements: each made once, named by its
contents.

View: one process. It lies in `cache()`, is compared with what it was when it was made before it is
used (`_code.packed`), and goes when nothing has used it for a week. Archives and single files
travel as zips, directories by `_code.trees`.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import sys
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._cluster import folders, home
from troupe._code import disk, packed

UNUSED_S = 7 * 86400.0
SWEEP_S = 3600.0
SENT, TREE = "sent-", "tree-"
"""How names in the cache begin: of what was sent of a directory, and of directories that came from
other hosts."""
_LIMIT, _BYTES_MAX = "TROUPE_CACHE_GIB", 32 << 30
ROOM = (
    f"free room there, or have less kept: {_LIMIT}, of the worker's environment, is the limit "
    "of what nobody uses"
)
_EPOCH = (1980, 1, 1, 0, 0, 0)
_AWAY = "away-"
_ABOUT = ("failed", "txt", "constraints.txt")
_making: dict[Path, int] = {}  # descriptors of locks
_in_use: list[int] = []  # descriptors that are locked as long as this process lives


class NotHereYet(exceptions.RuntimeEnvSetupError):
    """Raised where a process with a session could fetch the package from a worker, or make it."""


def need(session: Any, what: str) -> None:
    """Raises NotHereYet in a process without a session, which can make nothing."""
    if session is None:
        raise NotHereYet(f"{what} was not on this host yet")


def of_file(path: str, what: str) -> bytes:
    """An archive (.zip, .whl) as it is; a module's file as a zip.

    Raises TooLargeError naming `what`.
    """
    from troupe._code import listing

    size = os.path.getsize(path)
    if not path.endswith(".py"):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    if size > listing.BYTES_MAX:
        raise exceptions.TooLargeError(
            f"{what}: {path} holds {size / 2**20:.1f} MiB; {listing.BYTES_MAX >> 20} MiB is the "
            "limit"
        )
    if path.endswith(".py"):
        return zip_of_file(path, os.path.basename(path))
    with open(path, "rb") as file:
        return file.read()


def zip_of_file(path: str, name: str) -> bytes:
    """Return a file as a zip that contains it under that name."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as package:
        add(package, Path(path).read_bytes(), name, 0o644)
    return sink.getvalue()


def add(
    package: zipfile.ZipFile, data: bytes, name: str, mode: int, *, compressed: bool = True
) -> None:
    """Add a file to a zip, with equal bytes at any time."""
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    entry.external_attr = mode << 16
    package.writestr(entry, data)


def cache() -> Path:
    """This host's folder of packages and installed requirements, under TROUPE_HOME; this user's
    alone."""
    return folders.private(
        home.state_root() / "cache", remedy="remove it: what is in it is made anew"
    )


def made_once(name: str, make: Callable[[Path], Mapping[str, str] | None], what: str) -> Path:
    """The folder `name` of the cache, filled by `make(folder)` where no process of this host has
    done so, and as it was then. What `make` returns: SHA-256 of files, by their paths, that need
    not be read again for it. `what` is how errors call it.

    Its files are compared with what was made: one that was changed since has the folder made anew,
    beside the old one where a process uses that; files that were added are let be, for a working
    directory may be written to. Others that want it wait meanwhile. It stays as long as this
    process, or one that it forks, lives. What `make` raises is raised, with nothing left of the
    folder, and the next one tries again. Raises OutOfDiskError, an OSError, where there is no room
    for it.
    """
    folder = cache() / name
    with disk.writing(what, folder, remedy=ROOM):
        return _made_once(folder, make)


def _made_once(folder: Path, make: Callable[[Path], Mapping[str, str] | None]) -> Path:
    with _locked(packed.beside(folder, "lock"), fcntl.LOCK_SH):
        if not packed.difference(folder):
            return _use(folder)
    with _locked(packed.beside(folder, "lock"), fcntl.LOCK_EX) as lock:
        different = packed.difference(folder)
        if different:
            _forget_unused()
            if different is not packed.NOT_MADE:
                print(f"troupe: {folder} is made anew: {different}", file=sys.stderr, flush=True)
                _put_away(folder)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)  # the umask may have taken from it
            _making[folder] = lock
            try:
                packed.note(folder, make(folder) or {})
            except BaseException:
                shutil.rmtree(
                    folder, ignore_errors=True
                )  # on a full disk it would take the remaining room
                raise
            finally:
                del _making[folder]
            _forget_unused()
        return _use(folder)


def held(name: str, make: Callable[[Path], None], what: str) -> Path:
    """The folder `name` of the cache, filled by `make(folder)` where no process of this host has
    done so; from then on it is written to.

    Unlike what `made_once` makes it is nobody's copy: nothing in it is compared. It stays as long
    as this process, whatever that becomes by exec, and those that it forks live, and goes when none
    has asked for it for UNUSED_S. Others that want it wait meanwhile. What `make` raises is raised,
    with nothing left of the folder; `what` is how errors call it, OutOfDiskError too.
    """
    folder = cache() / name
    with (
        disk.writing(what, folder, remedy=ROOM),
        _locked(packed.beside(folder, "lock"), fcntl.LOCK_EX),
    ):
        if packed.difference(folder):
            _sweep()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)
            try:
                make(folder)
                packed.note_made(folder)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        _use(folder)
        os.set_inheritable(_in_use[-1], True)
        return folder


def find(name: str) -> Path | None:
    """A folder of the cache that was made, held from now on by this process; None: it is not there
    any more."""
    folder = cache() / name
    if not folder.is_dir():
        return None
    with _locked(packed.beside(folder, "lock"), fcntl.LOCK_SH):
        return None if packed.difference(folder) else _use(folder)


def locks_of(folder: Path) -> tuple[int, ...]:
    """Return the descriptor that locks a folder while this process makes it, for a program that
    writes to the folder and may outlive this process."""
    return (_making[folder],)


def _use(folder: Path) -> Path:
    """Nobody removes the folder from now on until this process, and those forked from it, have
    ended."""
    _in_use.append(_taken(packed.beside(folder, "use"), fcntl.LOCK_SH))
    packed.used_now(folder)
    return folder


def _put_away(folder: Path) -> None:
    """Gives its name free. Processes that are in it go on there; it is removed when none is."""
    away = folder.with_name(f"{_AWAY}{uuid.uuid4().hex}")
    packed.forget(folder)
    folder.rename(away)
    with contextlib.suppress(FileNotFoundError):
        packed.beside(folder, "use").rename(packed.beside(away, "use"))


def unpack(package: bytes, folder: Path, what: str) -> None:
    """The files of a zip that `zip_of` or anything else made.

    Raises OutOfDiskError, which calls it `what`, with nothing left of the folder.
    """
    with zipfile.ZipFile(io.BytesIO(package)) as opened:
        entries = opened.infolist()
        with disk.writing(
            what,
            folder,
            needed=sum(entry.file_size for entry in entries),
            remedy=ROOM,
            partial=folder,
        ):
            for entry in entries:
                path = opened.extract(entry, folder)  # zipfile keeps names inside the folder
                if not entry.is_dir():
                    os.chmod(path, entry.external_attr >> 16 & 0o777 | 0o600)


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[int]:
    lock = _taken(path, how)
    try:
        yield lock
    finally:
        os.close(lock)


def _taken(path: Path, how: int) -> int:
    """A descriptor that holds the file locked: the one of that name, not one that was removed
    meanwhile."""
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


def _sweep() -> None:
    """As `_forget_unused`, not more often than every SWEEP_S: jobs make a folder each."""
    stamp = cache() / "swept"
    if packed.unused_s(stamp) > SWEEP_S or not packed.beside(stamp, "used").exists():
        packed.used_now(stamp)
        _forget_unused()


def _forget_unused() -> None:
    """Removes what no process uses: left-overs of a making that was killed, what was put away, what
    nobody has asked for in UNUSED_S seconds, and over the limit of all together what was asked for
    longest ago. What a process uses, or makes just now, is locked and stays."""
    for file in (*cache().glob(f"{SENT}*.json"), *cache().glob(f"*{folders.UNFINISHED}")):
        with contextlib.suppress(FileNotFoundError):
            if (
                file.stat().st_mtime < time.time() - UNUSED_S
            ):  # a clock that jumped costs one reading of a directory
                file.unlink()
    kept = []
    for folder in [each for each in cache().iterdir() if each.is_dir() and not each.is_symlink()]:
        unused = packed.unused_s(folder)
        whole = packed.is_made(folder) and not folder.name.startswith(_AWAY)
        if not (whole and unused <= UNUSED_S) and _removed(folder):
            continue
        kept.append((unused, packed.size_bytes(folder), folder))
    total = sum(size for _, size, _ in kept)
    for _, size, folder in sorted(kept, reverse=True):
        if total <= bytes_max():
            return
        if size and _removed(folder):
            total -= size


def bytes_max() -> int:
    """How much the cache of this host holds: TROUPE_CACHE_GIB, by default 32 GiB."""
    try:
        return int(float(os.environ.get(_LIMIT, "")) * 2**30)
    except (ValueError, OverflowError):
        return _BYTES_MAX


def _removed(folder: Path) -> bool:
    """Removes it, unless a process makes or uses it."""
    at_once = fcntl.LOCK_EX | fcntl.LOCK_NB
    with (
        contextlib.suppress(OSError),
        _locked(packed.beside(folder, "lock"), at_once),
        _locked(packed.beside(folder, "use"), at_once),
    ):
        packed.forget(folder)
        shutil.rmtree(folder, ignore_errors=True)
        for kind in (*_ABOUT, "use", "lock"):
            packed.beside(folder, kind).unlink(missing_ok=True)
        return True
    return False


def latest(prefix: str, most: int) -> list[Path]:
    """Return up to `most` folders whose names begin with `prefix`, the most recently made ones.

    They may be changed, and go, at any time.
    """
    made = []
    for file in cache().glob(f"{prefix}*.made"):
        with contextlib.suppress(FileNotFoundError):
            made.append((file.stat().st_mtime_ns, file.with_suffix("")))
    return [folder for _, folder in sorted(made, reverse=True)[:most]]
