"""Files that are written for a user, where there may be no room or no right to: they come whole or
not at all, and the error says what is missing.

View: the process that writes, on whichever host. What another program writes, it says itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._code.capture import size_text

FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_TARGET_ERRORS = (errno.EIO, errno.EFBIG, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG)
_IN_TEXT = re.compile(r"\[Errno (\d+)\]")


@contextlib.contextmanager
def writing(
    what: str,
    path: str | os.PathLike[str],
    *,
    needed: int | None = None,
    remedy: str = "",
    partial: Path | None = None,
) -> Iterator[None]:
    """Inside it `what` is written to `path`.

    An OSError of that becomes one that names both, the host, and where the disk is full how many
    bytes are needed (`needed`, where that is known) and free; `remedy`, what to do, ends it.
    `partial` is removed first.

    Raises OutOfDiskError for a full disk and TroupeError for one that may not be written, both of
    the OSError's own type and with its errno. All else goes through as it is: what could not be
    read, a lost connection.

        remedy = "give another download_path"
        with writing("output 'model' of job a", folder, needed=5 << 20, remedy=remedy):
            ...
    """
    try:
        yield
    except BaseException as error:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
        number = (
            _number(error)
            if isinstance(error, OSError) and not isinstance(error, exceptions.TroupeError)
            else 0
        )
        if number not in FULL and not (
            number in (*_REFUSED, *_TARGET_ERRORS) and _is_below(error, path)
        ):
            raise
        base = exceptions.OutOfDiskError if number in FULL else exceptions.TroupeError
        like = OSError(number, os.strerror(number))
        text = (
            f"{what} cannot be written to {os.fspath(path)} on {os.uname().nodename}: "
            f"{os.strerror(number)}"
        )
        lines = [_lack(number, path, needed), remedy]
        raise exceptions.with_type_of(
            base, like, "\n  ".join([text, *filter(None, lines)])
        ) from None


def _number(error: OSError) -> int:
    """Return the errno of an error; of an error that lists many files, the first one's."""
    if error.errno is not None:
        return error.errno
    said = _IN_TEXT.search(str(error)) if isinstance(error, shutil.Error) else None
    return int(said[1]) if said else 0


def _is_below(error: Any, path: str | os.PathLike[str]) -> bool:
    """Return True if the error concerns a written path; a source may be unreadable instead."""
    if isinstance(error, shutil.Error):
        return True
    names = [
        os.fsdecode(each)
        for each in (error.filename, error.filename2)
        if isinstance(each, str | bytes | os.PathLike)
    ]
    return not names or any(_within(os.path.abspath(each), os.path.abspath(path)) for each in names)


def _within(one: str, other: str) -> bool:
    """Return True if one path is the other, is in it, or is above it: a folder that could not be
    made is above the files to write."""
    return os.path.commonpath([one, other]) in (one, other)


def _lack(number: int, path: str | os.PathLike[str], needed: int | None) -> str:
    """Return the sentence about what a full file system lacks."""
    if number not in FULL:
        return ""
    needs = "" if needed is None else f"it needs {size_text(needed)}, and "
    there = os.path.abspath(path)
    while not os.path.exists(there):
        there = os.path.dirname(there)
    if number == errno.EDQUOT:
        return f"{needs}this user's quota there is used up"
    return needs + room(os.statvfs(there))


def room(system: Any) -> str:
    """Return the free space of a file system (of os.statvfs), for people.

    Pure.

    >>> import types
    >>> blocks = dict(f_bavail=256, f_blocks=1024, f_frsize=4096, f_files=10, f_favail=3)
    >>> room(types.SimpleNamespace(**blocks))
    '1.0 MiB of 4.0 MiB is free there'
    """
    free, total = system.f_bavail * system.f_frsize, system.f_blocks * system.f_frsize
    words = f"{size_text(free)} of {size_text(total)} is free there"
    if system.f_files and not system.f_favail:
        words += f", and no file more can be made: all {system.f_files} inodes are used"
    return words


def free_in(text: str, *paths: str | os.PathLike[str]) -> str:
    """A line for people on what is free at these paths, where `text`, which another program has
    said, complains of a full disk; else ""."""
    if os.strerror(errno.ENOSPC) not in text:
        return ""
    return "; ".join(
        f"{os.fspath(path)} on {os.uname().nodename}: {room(os.statvfs(path))}"
        for path in dict.fromkeys(paths)
    )


@contextlib.contextmanager
def arriving(
    folder: Path, what: str, *, needed: int | None = None, remedy: str = ""
) -> Iterator[Path]:
    """A new folder inside `folder`, which is made where it is not there.

    What is put there is in `folder`, over what has the same names, once the block has ended well;
    else nothing of it is, and folders that were made for it are gone. Raises as `writing`.

        with arriving(Path("model"), "output 'model'", needed=size) as made:
            (made / "weights.bin").write_bytes(data)
    """
    with writing(what, folder, needed=needed, remedy=remedy):
        new = _made(folder)
        staging = None
        try:
            staging = Path(tempfile.mkdtemp(prefix=".arriving-", dir=folder))
            yield staging
            _move(staging, folder, what)
            staging.rmdir()
        except BaseException:
            if staging is not None:
                shutil.rmtree(staging, ignore_errors=True)
            for each in new:
                with contextlib.suppress(OSError):
                    each.rmdir()
            raise


def _made(folder: Path) -> list[Path]:
    """Makes it; what was not there, the innermost first."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except BaseException:
        for each in new:
            with contextlib.suppress(OSError):
                each.rmdir()
        raise
    return new


def _move(staging: Path, folder: Path, what: str) -> None:
    """All files of the one into the other, each by a rename.

    Raises IsADirectoryError, NotADirectoryError before any is moved.
    """
    folders = [Path(inside).relative_to(staging) for inside, _, _ in os.walk(staging)]
    files = [
        Path(inside, name).relative_to(staging)
        for inside, _, names in os.walk(staging)
        for name in names
    ]
    for each in files:
        if (folder / each).is_dir():
            raise IsADirectoryError(
                f"{what}: {folder / each} is a folder here, and a file there: remove or rename it"
            )
    for each in folders:
        if (folder / each).exists() and not (folder / each).is_dir():
            raise NotADirectoryError(
                f"{what}: {folder / each} is a file here, and a folder there: remove or rename it"
            )
        (folder / each).mkdir(exist_ok=True)
    for each in files:
        (staging / each).replace(folder / each)
    for each in reversed(folders[1:]):
        (staging / each).rmdir()


def copy_tree(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    what: str,
    *,
    symlinks: bool = False,
    remedy: str = "",
    copy: Callable[[str, str], object] = shutil.copy2,
) -> None:
    """The folder whole at `target`, which is not there yet, or not at all.

    Raises as `writing`, and what cannot be read.
    """
    there = Path(target)
    with writing(what, there, needed=size_of(source), remedy=remedy, partial=there):
        shutil.copytree(source, there, symlinks=symlinks, copy_function=copy)


def size_of(folder: str | os.PathLike[str]) -> int:
    """Bytes of the files in a folder, as far as they can be looked at."""
    found = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found += os.lstat(os.path.join(inside, name)).st_size
    return found
