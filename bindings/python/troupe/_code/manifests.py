"""The list of a directory's files as it travels, and what a host does with one that it did not
write: nothing of it is believed unchecked.

A manifest names files by path, mode, size and SHA-256 and says which pack has the content. Its own
name is the digest of all rows. A row that leaves its folder, a pack that is not there, or a name
that is not the rows' is an error before a file is written; content is compared with the digest that
it claims when it is written, because other directories of the host take it by that digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from troupe._code import listing

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Row(NamedTuple):
    """File of a manifest: its path from the directory, mode, size in bytes, SHA-256 in hex digits,
    and the number of its pack."""

    path: str
    mode: int
    size: int
    digest: str
    pack: int

    def write(self, folder: Path, data: bytes) -> None:
        """Write the file below `folder`.

        Raises:
            ValueError: if the content is not what the row claims.
            FileExistsError: if there is something at the path, also a link.
        """
        if len(data) != self.size or hashlib.sha256(data).hexdigest() != self.digest:
            raise ValueError(f"{self.path}: its content is not what the list of files says")
        with open(self.place(folder), "xb") as file:
            file.write(data)

    def place(self, folder: Path) -> Path:
        """Return where the file goes, with the folders above it made."""
        target = folder / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def set_mode(self, folder: Path) -> None:
        """Give the file its mode, always readable and writable for its owner.

        Never follows a link.
        """
        descriptor = os.open(folder / self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(descriptor, self.mode & 0o777 | 0o600)
        finally:
            os.close(descriptor)


class Manifest(NamedTuple):
    """The files of a directory, and the packs with their contents as (digest, size)."""

    rows: list[Row]
    packs: list[tuple[str, int]]


def name_of(rows: Sequence[Sequence[Any]]) -> str:
    """Return the name of a tree with these rows: which pack has a content does not count."""
    return hashlib.sha256(json.dumps([list(row[:4]) for row in rows]).encode()).hexdigest()


def is_digest(text: object) -> bool:
    """Return whether this is a SHA-256 in lower-case hex digits."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def read(data: bytes, tree: str) -> Manifest:
    """Return a manifest that came from elsewhere, checked.

    Args:
        data: The manifest as it travels.
        tree: The name that it was asked for by.

    Raises:
        ValueError: for what no caller sends: no JSON, a path that leaves the folder, a path that is
        there twice, a pack that is not there, more
            files or bytes than may travel, or rows that are not `tree`.
    """
    try:
        given = json.loads(data)
        packs = [(str(digest), int(size)) for digest, size in given["packs"]]
        rows = [Row(*row) for row in given["files"]]
    except (TypeError, KeyError, ValueError, RecursionError):
        raise ValueError("the list of files cannot be read") from None
    if not all(is_digest(digest) and size >= 0 for digest, size in packs):
        raise ValueError("the list of files names a pack that is none")
    for row in rows:
        _check(row, len(packs))
    if len(rows) > listing.FILES_MAX or sum(row.size for row in rows) > listing.BYTES_MAX:
        raise ValueError("the list of files has more than may travel")
    if len({row.path for row in rows}) != len(rows):
        raise ValueError("the list of files has a path twice")
    if name_of(rows) != tree:
        raise ValueError(f"the list of files is not that of {tree[:8]}")
    return Manifest(rows, packs)


def _check(row: Row, packs: int) -> None:
    numbers = (row.mode, row.size, row.pack)
    if not isinstance(row.path, str) or any(
        isinstance(each, bool) or not isinstance(each, int) or each < 0 for each in numbers
    ):
        raise ValueError("the list of files has a row that is none")
    if "\0" in row.path or any(part in ("", ".", "..") for part in row.path.split("/")):
        raise ValueError(f"{row.path!r} is no path inside a directory")
    if not is_digest(row.digest) or row.pack >= packs:
        raise ValueError(f"{row.path}: the list of files does not say where its content is")
