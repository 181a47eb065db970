"""What a folder of the cache was when it was made, kept beside it, and how long nobody has asked for it.

`NAME.made` has size, times, inode and SHA-256 of every file. A file whose size, times and inode are the same was not
written to: its content is not read (16 us a file, so 0.2 s for the 14,000 of torch; content would take 1 s for each
900 MB). Any other is read and compared by its digest.

`NAME.used` counts the time in which nobody asked by the kernel's clock of this start of the machine, and adds up over
starts: a wall clock that jumps makes nothing older.
"""
from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from pathlib import Path
from typing import Any

NOT_MADE = "it was not made yet"
_BLOCK = 1 << 20


def note(folder: Path) -> None:
    """Writes down what is in the folder now, all of it by digest."""
    files = {name: [*_traits(path), _digest(path)] for name, path in _files(folder)}
    _write(_beside(folder, "made"), files)


def difference(folder: Path) -> str:
    """What of the folder is not as it was made, for people; "" where all is. Files that were added do not count."""
    files = _read(_beside(folder, "made"))
    if files is None:
        return NOT_MADE
    renewed = False
    for name, (*traits, digest) in files.items():
        path = folder / name
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
        _write(_beside(folder, "made"), files)
    return ""


def forget(folder: Path) -> None:
    """The folder counts as not made."""
    for kind in ("made", "used"):
        _beside(folder, kind).unlink(missing_ok=True)


def used_now(folder: Path) -> None:
    """Somebody asks for it."""
    _write(_beside(folder, "used"), {"boot": _boot(), "at_s": _now(), "unused_s": 0.0})


def unused_s(folder: Path) -> float:
    """For how long nobody has, as far as that was seen: what is not known begins to count now."""
    noted = _read(_beside(folder, "used")) or {}
    try:
        unused, at, same = float(noted["unused_s"]), float(noted["at_s"]), noted["boot"] == _boot()
    except (KeyError, TypeError, ValueError):
        unused, at, same = 0.0, 0.0, False
    if same:
        return unused + max(0.0, _now() - at)
    _write(_beside(folder, "used"), {"boot": _boot(), "at_s": _now(), "unused_s": unused})
    return unused


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _beside(folder: Path, kind: str) -> Path:
    return folder.with_name(f"{folder.name}.{kind}")


def _files(folder: Path) -> list[tuple[str, Path]]:
    found = [Path(root, name) for root, _, names in os.walk(folder) for name in names]
    return sorted((str(path.relative_to(folder)), path) for path in found)


def _traits(path: Path) -> list[int]:
    """What changes with every write to a file; the kernel keeps the time of the last change itself."""
    info = os.lstat(path)
    return [info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino]


def _digest(path: Path) -> str:
    if stat.S_ISLNK(os.lstat(path).st_mode):
        return "link " + os.readlink(path)
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _write(path: Path, value: dict[str, Any]) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(value), encoding="utf-8")
    fresh.replace(path)
