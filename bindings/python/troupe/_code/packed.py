"""The record of a folder of the cache as it was made, kept beside it, and the time of its last use.

`NAME.made` has size, times, inode and SHA-256 of every file. A file whose size, times and inode are
the same was not written to: its content is not read (16 us a file, so 0.2 s for the 14,000 of
torch; content would take 1 s for each 900 MB). Any other is read and compared by its digest.

`NAME.used` counts the time in which nobody asked by the kernel's clock of this start of the
machine, and adds up over starts: a wall clock that jumps makes nothing older.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from troupe._base import identity
from troupe._cluster import folders

NOT_MADE = "it was not made yet"
_BLOCK = 1 << 20


def note(folder: Path, digests: Mapping[str, str] = MappingProxyType({})) -> None:
    """Writes down what is in the folder now, all of it by digest; `digests` are known already."""
    files = {
        name: [*_traits(path), digests.get(name) or _digest(path)] for name, path in _files(folder)
    }
    write(beside(folder, "size"), {"bytes": sum(entry[0] for entry in files.values())})
    write(beside(folder, "made"), files)


def note_made(folder: Path) -> None:
    """Writes down that the folder is made, and nothing of what is in it: it is no copy of
    anything."""
    write(beside(folder, "made"), {})


def is_made(folder: Path) -> bool:
    """Return True if the folder was made completely."""
    return beside(folder, "made").exists()


def size_bytes(folder: Path) -> int:
    """Return the size of all files when the folder was made; 0 if it was not."""
    try:
        return int((read(beside(folder, "size")) or {})["bytes"])
    except (KeyError, TypeError, ValueError):
        return 0


def difference(folder: Path) -> str:
    """Return how the folder differs from its record, for people; "" if it does not.

    Files that were added do not count.
    """
    files = read(beside(folder, "made"))
    if files is None:
        return NOT_MADE
    renewed = False
    for name, (*traits, digest) in files.items():
        path = f"{folder}/{name}"
        try:
            now = _traits(path)
            if now == traits:
                continue
            if _digest(path) != digest:
                return f"{name} is not what it was made as"
            files[name] = [*now, digest]
            renewed = True
        except (OSError, ValueError):
            return f"{name} is no longer there, or cannot be read"
    if renewed:  # touched, or copied: the content is the same
        with contextlib.suppress(OSError):
            write(beside(folder, "made"), files)
    return ""


class Part(NamedTuple):
    """A file of a folder as it was made: its relative path, and its traits."""

    name: str
    traits: list[int]


def parts(folder: Path) -> dict[str, Part]:
    """Return the files that the folder was made of, by digest."""
    return {
        digest: Part(name, traits)
        for name, (*traits, digest) in (read(beside(folder, "made")) or {}).items()
    }


def copied(folder: Path, part: Part, target: Path) -> bool:
    """Copies a file that was not written to since; False: it was, or is gone, and what is in
    `target` is of no use."""
    source = f"{folder}/{part.name}"
    try:
        if _traits(source) != part.traits or not os.path.isfile(source):
            return False
        shutil.copyfile(source, target)
        return _traits(source) == part.traits
    except OSError:
        return False


def forget(folder: Path) -> None:
    """The folder counts as not made."""
    for kind in ("made", "used", "size"):
        beside(folder, kind).unlink(missing_ok=True)


def used_now(folder: Path) -> None:
    """Somebody asks for it.

    Where the disk is full that is not noted: what is there can be used all the same.
    """
    with contextlib.suppress(OSError):
        write(
            beside(folder, "used"),
            {"boot": identity.kernel_boot_id(), "at_s": _now(), "unused_s": 0.0},
        )


def unused_s(folder: Path) -> float:
    """For how long nobody has, as far as that was seen: what is not known begins to count now."""
    noted = read(beside(folder, "used")) or {}
    try:
        unused, at, same = (
            float(noted["unused_s"]),
            float(noted["at_s"]),
            noted["boot"] == identity.kernel_boot_id(),
        )
    except (KeyError, TypeError, ValueError):
        unused, at, same = 0.0, 0.0, False
    if same:
        return unused + max(0.0, _now() - at)
    with contextlib.suppress(OSError):
        write(
            beside(folder, "used"),
            {"boot": identity.kernel_boot_id(), "at_s": _now(), "unused_s": unused},
        )
    return unused


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def beside(folder: Path, kind: str) -> Path:
    """A file about a folder of the cache."""
    return folder.with_name(f"{folder.name}.{kind}")


def _files(folder: Path) -> list[tuple[str, str]]:
    found = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]
    return sorted((os.path.relpath(path, folder), path) for path in found)


def _traits(path: str) -> list[int]:
    """Return the values that change with every write to a file; the kernel itself keeps the time of
    the last change."""
    info = os.lstat(path)
    return [info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino]


def _digest(path: str) -> str:
    if stat.S_ISLNK(os.lstat(path).st_mode):
        return "link " + os.readlink(path)
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def read(path: Path) -> dict[str, Any] | None:
    """Return the mapping that `write` stored there; None if there is none, or it is damaged."""
    try:
        return mapping_in(path.read_bytes())
    except OSError:
        return None


def mapping_in(data: bytes) -> dict[str, Any] | None:
    """Return the JSON mapping in these bytes; None where they are damaged, or no mapping."""
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def write(path: Path, value: dict[str, Any]) -> None:
    """Keeps it there, whole or not at all. Raises OSError."""
    with folders.replacement(path) as fresh:
        fresh.write_text(json.dumps(value), encoding="utf-8")
