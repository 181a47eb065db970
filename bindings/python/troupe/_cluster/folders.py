"""Folders that are this user's alone: nothing that somebody else could have put there is read or
followed.

`runtime/os/directory.h` is the same for the head and the worker. The way to a folder is gone step
by step:

* a folder on the way that everybody may write to needs the sticky bit, as /tmp has it: without it
  others can put one of theirs in the place of the next;
* a symbolic link on the way must be of this user, or of root;
* what is missing is made, with mode 0700 whatever the umask is;
* the folder itself must be this user's. One that others may write to is refused where it has
  something in it, which may be theirs; else it is closed to others.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from troupe._base.identity import new_id

UNFINISHED = ".new"
"""End of the names of files that are being written, and take the place of others"""
_LINKS_MAX = 40  # as the kernel follows
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private(path: Path, *, remedy: str, keep_readable: bool = False, tidy: bool = False) -> Path:
    """`path`, made where it is missing.

    Raises PermissionError, with what is wrong and `remedy`, or what made it impossible.

    `keep_readable`: a folder that others may read, and that has something in it, stays as it is.
    `tidy`: it lies in a private one, so that nobody else can have written to it: whatever its mode,
    it is closed to others.
    """
    real = _walk(os.path.join(os.getcwd(), path), remedy)
    info = os.lstat(real)
    if info.st_uid != os.geteuid():
        raise PermissionError(
            f"{path} belongs to another user (uid {info.st_uid}): nothing in it is used\n  {remedy}"
        )
    if not info.st_mode & 0o077:
        return path
    filled = bool(os.listdir(real))
    if filled and info.st_mode & _OTHERS_WRITE and not tidy:
        raise PermissionError(
            f"others may write to {path} (mode {info.st_mode & 0o7777:04o}), so what is in it may "
            "not be this user's: "
            f"nothing in it is used\n  look at what is there, then: chmod 700 {path}; or {remedy}"
        )
    if not (filled and keep_readable):
        os.chmod(real, info.st_mode & 0o700)
    return path


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file for its owner alone, whatever the umask is and whatever its mode was: an opener
    for `open`. Follows no link at its end.

    with open(path, "a", opener=folders.open_private) as log: ...
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


@contextlib.contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Give a path beside `path`; what the block writes there takes the place of `path` in one step,
    once the block has ended well.

    No other thread, process or host is given the same path: process ids are equal in containers
    that share a disk. After a failure nothing is left.

        with folders.replacement(path) as fresh:
            fresh.write_text(text)
    """
    fresh = path.with_name(f"{path.name}.{new_id()[:16]}{UNFINISHED}")
    try:
        yield fresh
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _walk(path: str, remedy: str) -> str:
    """The folder without any link in its path; what is missing is made."""
    here, rest, links = "/", path.split("/"), 0
    trusted = {0, os.geteuid(), os.lstat("/").st_uid}
    while rest:
        name = rest.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        mode = os.lstat(here).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise PermissionError(
                f"everybody may write to {here} (mode {mode & 0o7777:04o}, no sticky bit), so "
                "anybody can put a folder "
                f"of theirs in the place of {path}\n  chmod +t {here} (or chmod o-w), or {remedy}"
            )
        step = os.path.join(here, name)
        info = _made(step)
        if stat.S_ISLNK(info.st_mode):
            links += 1
            if info.st_uid not in trusted:
                raise PermissionError(
                    f"{step} is a symbolic link of another user (uid {info.st_uid}) and is not "
                    f"followed\n  {remedy}"
                )
            if links > _LINKS_MAX:
                raise PermissionError(
                    f"{path} leads over more than {_LINKS_MAX} symbolic links\n  {remedy}"
                )
            target = os.readlink(step)
            here = "/" if target.startswith("/") else here
            rest[:0] = target.split("/")
        elif stat.S_ISDIR(info.st_mode):
            here = step
        else:
            raise NotADirectoryError(f"{step} is no folder\n  {remedy}")
    return here


def _made(step: str) -> os.stat_result:
    """Return the stat of `step`, creating a private folder if nothing is there."""
    try:
        return os.lstat(step)
    except FileNotFoundError:
        pass
    try:
        os.mkdir(step, 0o700)
    except FileExistsError:
        return os.lstat(step)  # another process was first
    os.chmod(step, 0o700)  # the umask took from it
    return os.lstat(step)
