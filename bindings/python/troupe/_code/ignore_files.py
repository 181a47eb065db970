"""Paths of a directory that its `.gitignore` files leave out.

Patterns mean what they mean to git (https://git-scm.com/docs/gitignore), by pathspec: of a file the
lines of the nearest `.gitignore` count first, and those of folders above the directory up to the
one that has `.git` count too. Most lines are a name, or `*` and the end of one: these are compared
as texts, since pathspec takes 20 us for each path and 30 patterns.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from troupe import exceptions

IGNORE_FILE = ".gitignore"
_NAMED_MAX = 5
_PLAIN = re.compile(r"(?:\*|[^*?\[\]\\!/#\s])[^*?\[\]\\!/\s]*/?")
_SPECIAL = re.compile(r"([*?\[\]\\!# ])")

Line = tuple[str, str]
"""A line of an ignore file, and the folder of the file, from the outermost one that counts: "" or
with a slash at its end."""


class Rules:
    """The rules that hold in one folder: the lines of its ignore file and of those above; later
    ones win."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = tuple(lines)
        stripped = [line.rstrip() for line, _ in lines]
        plain = {line for line in stripped if _PLAIN.fullmatch(line)}
        self._names = {
            of: frozenset(
                each.rstrip("/")
                for each in plain
                if not each.startswith("*") and (of or not each.endswith("/"))
            )
            for of in (False, True)
        }
        self._ends = {
            of: tuple(
                each[1:].rstrip("/")
                for each in plain
                if each.startswith("*") and (of or not each.endswith("/"))
            )
            for of in (False, True)
        }
        rest = [line for line, short in zip(lines, stripped, strict=True) if short not in plain]
        self._rest = _specs(rest) if rest else None
        self._all = (
            _specs(lines) if plain and any(line.startswith("!") for line, _ in rest) else None
        )

    def ignore(self, path: str, name: str, is_folder: bool) -> bool:
        """Return True if the path, from the outermost folder that counts, is left out.

        What is above it is not.
        """
        by_name = name in self._names[is_folder] or name.endswith(self._ends[is_folder])
        specs = self._all if by_name else self._rest
        if self._rest is None or specs is None:
            return by_name
        return bool(specs[is_folder].match_file(path))

    def brought_back_below(self, folder: str) -> list[str]:
        """Return the lines after `!` whose path leads into the folder, a path from the outermost
        folder that counts.

        >>> names = "data/", "!data/keep.csv", "!keep.csv", "!d*/x/y"
        >>> Rules([(name, "") for name in names]).brought_back_below("data")
        ['!data/keep.csv', '!d*/x/y']
        """
        return [
            line
            for line, base in self.lines
            if line.startswith("!") and leads_below(base + line[1:].strip().lstrip("/"), folder)
        ]


def leads_below(pattern: str, folder: str) -> bool:
    """Return True if the pattern is a path of which the first parts are the folder's and more
    follow. A bare name leads nowhere in particular.

    >>> names = "data/a.csv", "d?ta/deep/*", "data", "data/", "other/a.csv", "a.csv", "**/a.csv"
    >>> [leads_below(each, "data") for each in names]
    [True, True, False, False, False, False, False]
    """
    parts, above = pattern.rstrip("/").split("/"), folder.split("/")
    return (
        len(parts) > len(above)
        and "**" not in parts[: len(above)]
        and all(map(fnmatch.fnmatchcase, above, parts))
    )


class Ignored:
    """A predicate of paths that are left out: `listing.files_of` asks it for each path, folders
    before their contents.

    `kept`: whether a path from the directory, or the name at its end, travels nevertheless, with
    all that is below it. `file`: the name of the ignore files; those above the directory count
    where it is `.gitignore`. `left`: the first few that were left out. `without_effect`: by
    pattern, those after `!`, of ignore files and of `wanted` (the patterns of `kept`), that name
    something below a folder which is left out, and that folder: as with git, it is not looked into.
    """

    def __init__(
        self,
        directory: str,
        kept: Callable[[str, str], bool] | None = None,
        file: str = IGNORE_FILE,
        wanted: Sequence[str] = (),
    ) -> None:
        self._directory, self._kept, self._file, self._wanted = directory, kept, file, wanted
        self._base, above = _above(directory) if file == IGNORE_FILE else ("", [])
        self._outside = Rules(above)
        self._of: dict[str, Rules] = {}  # by the folder's path from the directory
        self._brought_back: set[str] = set()
        self.left: list[str] = []
        self.without_effect: dict[str, str] = {}

    def __call__(self, path: str) -> bool:
        is_folder = path.endswith("/")
        path = path.rstrip("/")
        folder, _, name = path.rpartition("/")
        if folder in self._brought_back or (self._kept is not None and self._kept(path, name)):
            if is_folder:
                self._brought_back.add(path)
            return False
        rules = self._rules(folder)
        if not rules.ignore(self._base + path, name, is_folder):
            return False
        if is_folder:
            below = [
                *rules.brought_back_below(self._base + path),
                *(f"!{each}" for each in self._wanted if leads_below(each.lstrip("/"), path)),
            ]
            self.without_effect.update(dict.fromkeys(below, f"{path}/"))
        if len(self.left) <= _NAMED_MAX:
            self.left.append(f"{path}/" if is_folder else path)
        return True

    def _rules(self, folder: str) -> Rules:
        found = self._of.get(folder)
        if found is None:
            above = self._rules(folder.rpartition("/")[0]) if folder else self._outside
            own = _read(
                os.path.join(self._directory, folder, self._file),
                self._base + (f"{folder}/" if folder else ""),
            )
            found = self._of[folder] = Rules([*above.lines, *own]) if own else above
        return found


def shown(left: Sequence[str]) -> str:
    """For a person: what was left out, of Ignored.left."""
    return ", ".join([*left[:_NAMED_MAX], *(["..."] if len(left) > _NAMED_MAX else [])])


def _above(directory: str) -> tuple[str, list[Line]]:
    """The directory's path from the folder that has `.git`, with a slash at its end, and the lines
    from there down to it; ("", []) where it is that folder, or of no repository."""
    base, folder = "", directory
    while not os.path.exists(os.path.join(folder, ".git")):
        parent, name = os.path.split(folder)
        if parent == folder:
            return "", []
        base, folder = f"{name}/{base}", parent
    found, below = [], ""
    for name in base.split("/")[:-1]:
        found += _read(os.path.join(folder, below, IGNORE_FILE), below)
        below += f"{name}/"
    return base, found


def _read(file: str, base: str) -> list[Line]:
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            return [
                (line.rstrip("\r\n"), base)
                for line in lines
                if line.strip("!/ \t\r\n") and not line.startswith("#")
            ]
    except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError):
        return []


def _from_outside(line: Line) -> str:
    r"""The line as the ignore file of the outermost folder would have it.

    >>> [_from_outside((text, "a b/")) for text in ("*.log", "!/x", "y/z", "w/")]
    ['a\\ b/**/*.log', '!a\\ b/x', 'a\\ b/y/z', 'a\\ b/**/w/']
    """
    text, base = line
    if not base:
        return text
    sign, pattern = ("!", text[1:]) if text.startswith("!") else ("", text)
    anywhere = "/" not in pattern.rstrip().rstrip("/")
    return (
        sign + _SPECIAL.sub(r"\\\1", base) + ("**/" if anywhere else "") + pattern.removeprefix("/")
    )


def _specs(lines: Sequence[Line]) -> tuple[Any, Any]:
    """For files, and for folders, of which paths are asked without a slash at their end: with one
    pathspec could not tell a pattern of the folder itself from one of what it lies in, which counts
    less. Patterns of folders alone, `data/`, are then those of any path."""
    try:
        import pathspec
    except ImportError:
        raise exceptions.MissingPackageError(
            "a .gitignore is read by pathspec, which is not installed: pip install pathspec",
            name="pathspec",
        ) from None

    def read(texts: Sequence[str]) -> Any:
        found: list[Any] = []
        for text in texts:
            with contextlib.suppress(
                ValueError
            ):  # git passes over what is no pattern, so some are in files that work
                found += pathspec.GitIgnoreSpec.from_lines([text]).patterns
        return pathspec.GitIgnoreSpec(found)

    texts = [
        _from_outside(line).rstrip(" ") if line[0].rstrip().endswith("/") else _from_outside(line)
        for line in lines
    ]
    return read(texts), read([text.removesuffix("/") for text in texts])
