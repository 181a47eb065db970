"""Inputs of a job as its commands find them on a node, by their mode: mounted read-only, copied, or
the place itself.

    mode                              inputs/NAME of the job's directory
    none, ro_mount, mount, eval_mount a read-only mount, seen by the job's commands alone; a copy where no mount is possible
    download, eval_download           a copy of the job's own
    rw_mount                          a link to the place itself

View: the first rank of a job on its node, which makes the job's directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from troupe._code import disk, packages

PROGRAM = os.fspath(Path(__file__).with_name("mounts.py"))
LIST = "mounts"
"""In the job's directory: the file that `mounts.py` reads."""
COPIED, IN_PLACE = ("download", "eval_download"), "rw_mount"
_TRY_S = 30.0
_NO_RANGES = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF)
_STEP_BYTES = 1 << 30


def place(folder: Path, sources: Mapping[str, tuple[str, str, str]], *, mounts: bool) -> None:
    """Make the inputs of a job.

    `sources`: by the input's name (path, mode, the file's name; "" for a folder).

    `mounts`: False where processes that no command has started need the inputs too; then nothing is
    mounted.

    Raises:
        OSError: for an input that cannot be read, or a disk that is full (OutOfDiskError).
    """
    asked = [
        source for source, mode, _ in sources.values() if mode != IN_PLACE and mode not in COPIED
    ]
    mounted = bool(asked) and mounts and may_mount(asked)
    listed = []
    for name, (source, mode, file) in sources.items():
        target = folder / "inputs" / name
        if file:
            target.mkdir()
            target /= file
        if mode == IN_PLACE:
            target.symlink_to(source)
        elif mounted and mode not in COPIED:
            target.touch() if file else target.mkdir()
            listed += [source, os.fspath(target.relative_to(folder))]
        else:
            copy(source, target, f"inputs: {name}")
    if listed:
        (folder / LIST).write_bytes(b"".join(os.fsencode(each) + b"\0" for each in listed))


def may_mount(sources: Iterable[str]) -> bool:
    """Return True if a process of this user may mount these read-only on this host.

    It is tried: for root in a thread, whose mount namespace ends with it; for other users in a
    process that ends, as a process with threads enters no user namespace.
    """
    if os.geteuid() == 0:
        return _may_mount_as_root(tuple(sources))
    try:
        return (
            subprocess.run(
                [sys.executable, "-I", "-S", PROGRAM, "--try", *sources],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_TRY_S,
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _may_mount_as_root(sources: tuple[str, ...]) -> bool:
    from troupe.azure._data import mounts  # loads ctypes

    succeeded = threading.Event()

    def attempt() -> None:
        with contextlib.suppress(OSError):
            mounts.enter_namespace()
            for each in sources:
                mounts.mount_read_only(each, each)
            succeeded.set()

    thread = threading.Thread(target=attempt, name="troupe-mounts", daemon=True)
    thread.start()
    thread.join(_TRY_S)
    return succeeded.is_set()


def mount_here(folder: Path) -> bool:
    """Mount the job's inputs for the program that this thread becomes by exec.

    Return False for a user other than root, whose commands run by `with_mounts`.

    A job without mounts needs nothing. Other threads of this process do not see the mounts.

    Raises:
        OSError: where an input cannot be mounted any more.
    """
    listed = folder / LIST
    if not listed.exists():
        return True
    if os.geteuid() != 0:
        return False
    from troupe.azure._data import mounts

    try:
        mounts.mount_all(os.fspath(listed))
    except OSError as error:
        raise type(error)(error.errno, mounts.describe(error)) from None
    return True


def with_mounts(folder: Path, text: str, shell: str) -> str:
    """Return the command line `text` as a shell runs it where the job's inputs are mounted; as it
    is for a job without mounts."""
    listed = folder / LIST
    if not listed.exists():
        return text
    return "exec " + shlex.join(
        [sys.executable, "-I", "-S", PROGRAM, os.fspath(listed), shell, "-c", text]
    )


def shown(path: Path) -> str:
    """Return the path as a command has it: of a link to where an input or output is, that place, so
    that programs see a folder and no link.

    A place whose path a shell would split stays behind its link.
    """
    if not path.is_symlink():
        return str(path)
    there = os.readlink(path)
    return there if shlex.quote(there) == there else str(path)


def copy(source: str, target: Path, what: str) -> None:
    """Copy a folder or a file, each file read once: whole, or not at all.

    No write to the copy reaches the source.

    A relative link to something in the folder stays a link; of another link the copy has what it
    leads to. What vanishes meanwhile, and what is no file or folder, is left out. Of a file that
    grows meanwhile the copy has what it had when it was opened. File systems that can share blocks
    do so (`copy_file_range`).

    Raises:
        OSError: for a file that cannot be read, naming `what`, or a disk that is full
        (OutOfDiskError).
    """
    size = disk.size_of(source) if os.path.isdir(source) else os.stat(source).st_size
    with disk.writing(what, target, needed=size, remedy=packages.ROOM, partial=target):
        if os.path.isdir(source):
            _Copy(os.path.realpath(source), what).folder(source, os.fspath(target), ())
        else:
            _copy_file(source, os.fspath(target), what)


class _Copy:
    """A copy of one folder."""

    def __init__(self, root: str, what: str) -> None:
        self._root, self._what = root, what

    def folder(self, source: str, target: str, above: tuple[str, ...]) -> None:
        """Copy `source` to `target`, which is not there yet.

        `above`: the real folders that it lies in, which a link may lead back to.
        """
        real = os.path.realpath(source)
        if real in above:
            return
        try:
            entries = sorted(os.scandir(source), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise _unreadable(error, self._what, source) from None
        os.mkdir(target)
        for entry in entries:
            there = os.path.join(target, entry.name)
            if entry.is_symlink() and self._is_inner(entry.path):
                os.symlink(os.readlink(entry.path), there)
            elif entry.is_dir():
                self.folder(entry.path, there, (*above, real))
            elif entry.is_file():
                _copy_file(entry.path, there, self._what)

    def _is_inner(self, link: str) -> bool:
        """Return True if the link leads to something in the folder from wherever the folder is."""
        text, here = (
            os.readlink(link),
            os.path.relpath(os.path.realpath(os.path.dirname(link)), self._root),
        )
        leaves = (
            os.path.isabs(text)
            or os.path.normpath(os.path.join(here, text)).split(os.sep)[0] == os.pardir
        )
        return not leaves and os.path.commonpath([self._root, os.path.realpath(link)]) == self._root


def _copy_file(source: str, target: str, what: str) -> None:
    """Copy a file with its rights and times, up to the size that it had when it was opened."""
    try:
        descriptor = os.open(
            source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        )  # a FIFO of that name must not be waited for
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ESTALE):
            return
        raise _unreadable(error, what, source) from None
    with open(descriptor, "rb", buffering=0) as read:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return
        with open(target, "xb", buffering=0) as written:
            _copy_bytes(read.fileno(), written.fileno(), about.st_size)
            os.fchmod(written.fileno(), about.st_mode & 0o777 | stat.S_IWUSR)
            os.utime(written.fileno(), ns=(about.st_atime_ns, about.st_mtime_ns))


def _copy_bytes(read: int, written: int, size: int) -> None:
    left, ranges = size, True
    while left > 0:
        try:
            done = (
                os.copy_file_range(read, written, min(left, _STEP_BYTES))
                if ranges
                else os.sendfile(written, read, None, min(left, _STEP_BYTES))
            )
        except OSError as error:
            if not ranges or error.errno not in _NO_RANGES:
                raise
            ranges = False
            continue
        if done == 0 and not ranges:
            return  # the file was made shorter meanwhile
        ranges = (
            ranges and done > 0
        )  # some file systems answer 0 at once for files that they make up as they are read
        left -= done


def _unreadable(error: OSError, what: str, path: str) -> OSError:
    return type(error)(f"{what}: {path} cannot be read on {os.uname().nodename}: {error.strerror}")
