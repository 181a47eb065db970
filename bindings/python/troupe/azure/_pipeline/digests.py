"""Digests of files and folders by their content, and the key by which equal steps are found."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import Any

_ALGORITHM = "sha256"


def of_path(path: str | os.PathLike[str]) -> str:
    """Return the digest of a file, or of a folder: of the names, kinds and contents of all in it,
    not of its times. A link counts as what it leads to.

    Raises OSError for what cannot be read, FileNotFoundError for a link that leads nowhere.
    """
    whole = hashlib.new(_ALGORITHM)
    _add(whole, os.fspath(path), "", ())
    return whole.hexdigest()


def _add(whole: Any, path: str, relative: str, above: tuple[tuple[int, int], ...]) -> None:
    about = os.stat(path)
    if stat.S_ISDIR(about.st_mode):
        me = (about.st_dev, about.st_ino)
        if me in above:
            raise OSError(f"{path} is a link to a folder that it lies in")
        _say(whole, "folder", relative, "")
        for name in sorted(os.listdir(path)):
            _add(whole, os.path.join(path, name), f"{relative}/{name}", (*above, me))
    elif stat.S_ISREG(about.st_mode):
        with open(path, "rb") as file:
            _say(
                whole,
                "program" if about.st_mode & stat.S_IXUSR else "file",
                relative,
                hashlib.file_digest(file, _ALGORITHM).hexdigest(),
            )
    else:
        raise OSError(f"{path} is neither a file nor a folder")


def _say(whole: Any, *words: str) -> None:
    whole.update(json.dumps([os.fsencode(each).hex() for each in words]).encode())


def of_value(value: Any) -> str:
    """Return the digest of what JSON has words for."""
    return hashlib.new(_ALGORITHM, json.dumps(value, sort_keys=True).encode()).hexdigest()
