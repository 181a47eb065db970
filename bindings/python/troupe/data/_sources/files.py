"""Files that a path stands for, and column values in their folders' names."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyarrow import fs

from troupe import _pickled, exceptions
from troupe.data._errors import DataError
from troupe.data._plan import Travels

_TYPES: dict[Any, Callable[[str], Any]] = {
    "string": str,
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: text.lower() == "true",
    str: str,
    int: int,
    float: float,
    bool: lambda text: text.lower() == "true",
}


@dataclass(frozen=True)
class Partitioning(Travels):
    """How folders' names are columns: style "hive" (`.../year=2024/...`) or "dir" (`.../2024/...`,
    with `field_names`).

    `base_dir`: what is above it says nothing. `field_types`: of columns, by name; all others are
    texts. As Ray's.
    """

    style: str
    base_dir: str | None = None
    field_names: Sequence[str] | None = None
    field_types: Mapping[str, Any] | None = field(default=None)
    filesystem: fs.FileSystem | None = None

    def __post_init__(self) -> None:
        if self.style not in ("hive", "dir"):
            raise ValueError(f"Partitioning(style={self.style!r}): 'hive' or 'dir'")
        if self.style == "dir" and not self.field_names:
            raise ValueError(
                "Partitioning('dir') needs field_names: the columns that folders' names are, from "
                "the outermost one"
            )

    def columns(self, path: str) -> dict[str, Any]:
        """Return the column values in the names of this file's folders."""
        folder = posixpath.dirname(path)
        base = (self.base_dir or "").rstrip("/")
        parts = [part for part in folder.removeprefix(base).split("/") if part]
        found: dict[str, str] = {}
        if self.style == "hive":
            found = dict(part.split("=", 1) for part in parts if "=" in part)
        elif self.field_names and len(parts) >= len(self.field_names):
            found = dict(
                zip(
                    self.field_names,
                    parts[-len(self.field_names) :] if not base else parts,
                    strict=False,
                )
            )
        kinds = self.field_types or {}
        return {name: _TYPES[kinds.get(name, "string")](text) for name, text in found.items()}


HIVE = Partitioning("hive")


@dataclass(frozen=True)
class Found:
    """Files, in order, with their bytes, and the file system that has them (None: this machine's).

    `pipes`: those that are pipes or devices.
    """

    files: tuple[tuple[str, int], ...]
    filesystem: Any
    pipes: tuple[str, ...] = ()


def find(
    what: str,
    paths: Any,
    filesystem: Any,
    extensions: Sequence[str] | None,
    *,
    skip: Any = None,
    missing_ok: bool = False,
    keep: Any = None,
) -> Found:
    """The files that `paths` (a file, a folder with all that is below it, a URI, or a list of
    these) mean, in the order given and by name.

    Names that begin with "." or "_" below a folder are none. `keep`: a function that is given the
    paths and returns those to read. Raises DataError, a FileNotFoundError too, for a path that
    matches nothing, and says what is there instead.
    """
    given = [paths] if isinstance(paths, str) or hasattr(paths, "__fspath__") else list(paths)
    if not given:
        raise ValueError(f"{what}(paths=[]): a path, or a list with one at least")
    endings = tuple("." + each.lower().lstrip(".") for each in extensions or ())
    skipped = set([skip] if isinstance(skip, str) else skip or ())
    found: list[tuple[str, int]] = []
    system = filesystem
    for each in given:
        system, path = _resolved(
            str(each.__fspath__() if hasattr(each, "__fspath__") else each), filesystem
        )
        found += _below(what, system, path, endings, missing_ok)
    if keep is not None:
        kept = set(keep([path for path, _ in found]))
        found = [one for one in found if one[0] in kept]
    files = tuple(one for one in found if one[0] not in skipped)
    if not files:
        raise _nothing(what, f"{given[0] if len(given) == 1 else given!r}: no file is left to read")
    local = isinstance(system, fs.LocalFileSystem)
    return Found(
        files,
        None if local else system,
        tuple(path for path, size in files if not size and local and is_pipe(path)),
    )


def is_pipe(path: str) -> bool:
    """Return True for what ends only when somebody ends it: a pipe, a socket, a terminal."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def no_pipes(what: str, found: Found) -> None:
    """Raise DataError for files that must be read at any place, if some are pipes."""
    for path in found.pipes:
        raise exceptions.with_type_of(
            DataError,
            ValueError(path),
            f"{what}: {path} is a pipe or a device, and such files are read at their ends first: "
            "write "
            "what comes out of it to a file",
            path=path,
        )


def _resolved(path: str, filesystem: Any) -> tuple[Any, str]:
    if filesystem is not None:
        return filesystem, path.split("://", 1)[-1]
    if "://" in path:
        found: tuple[Any, str] = fs.FileSystem.from_uri(path)
        return found
    return fs.LocalFileSystem(), posixpath.abspath(posixpath.expanduser(path))


def _below(
    what: str, system: Any, path: str, endings: tuple[str, ...], missing_ok: bool
) -> list[tuple[str, int]]:
    info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        if missing_ok:
            return []
        hint = (
            "\n  it is no pattern: pass the folder, or the list that glob.glob() makes of it"
            if any(sign in path for sign in "*?[")
            else ""
        )
        raise _nothing(what, f"{path}: there is no such file or folder{hint}")
    if info.type != fs.FileType.Directory:
        return [(path, info.size or 0)]
    inside = [
        one
        for one in system.get_file_info(fs.FileSelector(path, recursive=True))
        if one.type == fs.FileType.File
    ]
    seen = sorted(
        (one.path, one.size or 0)
        for one in inside
        if not any(
            part.startswith((".", "_"))
            for part in one.path.removeprefix(path).strip("/").split("/")
        )
    )
    files = [one for one in seen if not endings or one[0].lower().endswith(endings)]
    if not files and not missing_ok:
        other = (
            f" of {len(seen)} files, {posixpath.basename(seen[0][0])} the first"
            if seen
            else ": it is empty"
        )
        raise _nothing(
            what,
            f"{path}: no file of the folder ends with {' or '.join(endings) or 'anything'}{other}"
            + ("\n  file_extensions=None reads all of them" if seen else ""),
        )
    return files


def _nothing(what: str, text: str) -> exceptions.TroupeError:
    return exceptions.with_type_of(DataError, FileNotFoundError(text), f"{what}: {text}")


_pickled.named_in("troupe.data", Partitioning)
