"""The files of a directory that travel, and their sizes: each is looked at, none is read.

View: the caller's process. What is over the limits is refused here, before anything was read or
sent, with what takes most of the room.
"""

from __future__ import annotations

import fnmatch
import heapq
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from troupe import exceptions
from troupe._code.capture import size_text

BYTES_MAX = 256 << 20
FILES_MAX = 100_000
ALWAYS_LEFT_OUT = (".git", "__pycache__", ".venv", "*.pyc")
_LOOKED_AT_MAX = 200_000
_WILD = re.compile(r"[*?\[]")
_NAMED_FILES_MAX, _NAMED_FOLDERS_MAX = 5, 3


class Look(NamedTuple):
    """The kernel's record of a file: a write changes its ctime, which no program can set."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int


LEAVE_OUT = "leave it out: runtime_env={'excludes': [...]}, of troupe submit --exclude"
"""What a door with a runtime_env says where a file or folder is in the way."""

Ignored = Callable[[str], bool]
"""Whether a path from the directory stays where it is; a folder's ends with a slash."""


def files_of(
    directory: str,
    excludes: Sequence[str],
    *,
    what: str,
    ignored: Ignored | None = None,
    remedy: str | None = None,
) -> dict[str, Look]:
    """The regular files below `directory`, by their paths from it; without what `excludes` match
    (names, or paths from it) and what is `ignored`.

    A link to a file is that file; a link to a folder is left out. `remedy` is what the caller's
    door has for what is too much or in the way; None: a runtime_env. Raises TooLargeError naming
    `what`, the largest files and folders; PermissionError for a folder that cannot be read.
    """
    found: dict[str, Look] = {}
    total = 0
    leaves_out = matcher((*ALWAYS_LEFT_OUT, *excludes))
    for path, look in _walk(directory, leaves_out, what, ignored, remedy or LEAVE_OUT):
        found[path] = look
        total += look.size
        if len(found) >= _LOOKED_AT_MAX:
            break
    if total > BYTES_MAX or len(found) > FILES_MAX:
        raise exceptions.TooLargeError(_too_much(what, directory, found, total, remedy))
    return found


def matcher(patterns: Sequence[str]) -> Callable[[str, str], bool]:
    """Return a predicate: True if a path from the directory, or the name at its end, matches one of
    the patterns.

    Names and ends of names, which most patterns are, are not looked for by regular expressions:
    that would be a third of the time for all.
    """
    stripped = [each.strip("/") for each in patterns]
    names = frozenset(each for each in stripped if not _WILD.search(each) and "/" not in each)
    ends = tuple(
        each[1:]
        for each in stripped
        if each.startswith("*") and not _WILD.search(each[1:]) and "/" not in each
    )
    rest = [each for each in stripped if each not in names and each[1:] not in ends]
    match = re.compile("|".join(map(fnmatch.translate, rest))).match if rest else None

    def matched(path: str, name: str) -> bool:
        return (
            name in names
            or name.endswith(ends)
            or (match is not None and (match(name) is not None or match(path) is not None))
        )

    return matched


def _walk(
    directory: str,
    excluded: Callable[[str, str], bool],
    what: str,
    ignored: Ignored | None,
    remedy: str,
) -> Iterator[tuple[str, Look]]:
    waiting = [""]
    while waiting:
        above = waiting.pop()
        try:
            with os.scandir(os.path.join(directory, above)) as entries:
                for entry in entries:
                    path = f"{above}/{entry.name}" if above else entry.name
                    if excluded(path, entry.name):
                        continue
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if ignored is not None and ignored(f"{path}/" if is_folder else path):
                        continue
                    if is_folder:
                        waiting.append(path)
                        continue
                    try:
                        about = entry.stat()
                    except OSError:  # a link to nothing, or gone since
                        continue
                    if stat.S_ISREG(about.st_mode):
                        yield (
                            path,
                            Look(
                                about.st_ino,
                                about.st_size,
                                about.st_mtime_ns,
                                about.st_ctime_ns,
                                about.st_mode & 0o777,
                            ),
                        )
        except (FileNotFoundError, NotADirectoryError):  # removed since it was seen
            if not above:
                raise
        except PermissionError as error:
            raise PermissionError(
                f"{what}: {os.path.join(directory, above)} cannot be read: {error.strerror}\n"
                f"  {remedy}"
            ) from None


def _too_much(
    what: str, directory: str, found: Mapping[str, Look], total: int, remedy: str | None
) -> str:
    least = "at least " if len(found) >= _LOOKED_AT_MAX else ""
    limit = f"over {BYTES_MAX >> 20} MiB" if total > BYTES_MAX else f"over {FILES_MAX:,} files"
    largest = heapq.nlargest(_NAMED_FILES_MAX, found, key=lambda path: found[path].size)
    files = ", ".join(
        f"{path} ({size_text(found[path].size)})" for path in largest if found[path].size
    )
    folders: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for path, look in found.items():
        if "/" in path:
            folders[path.split("/")[0]] += look.size
            counts[path.split("/")[0]] += 1
    by = folders if total > BYTES_MAX else counts
    most = [name for name, _ in by.most_common(_NAMED_FOLDERS_MAX)]
    named = ", ".join(
        f"{name}/ ({size_text(folders[name])} in {counts[name]:,} files)" for name in most
    )
    out = (
        most[0]
        if most and by[most[0]] * 2 > (total if total > BYTES_MAX else len(found))
        else largest[0]
    )
    return (
        f"{what}: {directory} has {limit}, the limit of what travels: {least}{size_text(total)} in "
        f"{least}{len(found):,} files; the largest: "
        f"{files}"
        + (f"; the largest folders: {named}" if named else "")
        + "\n  "
        + (
            remedy
            or (
                f"leave out what is not needed: runtime_env={{'excludes': [{out!r}]}}, or put data "
                "where all nodes read it"
            )
        )
    )
