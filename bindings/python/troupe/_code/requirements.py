"""pip requirements: in which forms they are given, how they travel, and what of them is shown.

View: the caller. What is malformed raises here, before anything starts; whether they can be had,
the node finds out (`_code.virtual_environments`). Lines may hold credentials: they travel where
variables do, and are shown by `shown` alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

OPTIONS = (
    "--index-url",
    "-i",
    "--extra-index-url",
    "--find-links",
    "-f",
    "--no-index",
    "--pre",
    "--no-binary",
    "--only-binary",
    "--prefer-binary",
    "--require-hashes",
    "--trusted-host",
)
"""What a requirements file may say beside requirements."""
CONSTRAINT = "constraint: "
"""How a line of a constraints file stands among the others."""
_INCLUDES, _CONSTRAINTS = ("-r", "--requirement"), ("-c", "--constraint")
_FILES_MAX = 20
_SHOWN_MAX = 8
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s'\"]+@")
_INSTEAD = {
    "-e": "a folder of the program is given as working_dir or py_modules",
    "--editable": "a folder of the program is given as working_dir or py_modules",
}
_OPTION = re.compile(r"(--[\w-]+|-\w)[\s=]*(.*)")
_OF_INDEXES = ("PIP_", "UV_")


def read(key: str, given: Any) -> list[str] | dict[str, Any]:
    """A requirements file, a list, or Ray's {"packages": [...], "pip_check": True}: its lines, with
    `packages` and `pip_check` where that is asked for.

    What it returns it also takes. Raises ValueError or TypeError naming the key.
    """
    check = False
    if isinstance(given, Mapping):
        others = set(given) - {"packages", f"{key}_check", f"{key}_version"}
        if others or "packages" not in given:
            raise ValueError(
                f"runtime_env['{key}'] as a dict has 'packages', a list"
                + (f"; it has no {sorted(others)[0]!r}" if others else "")
            )
        check = given.get(f"{key}_check", False)
        if not isinstance(check, bool):
            raise TypeError(
                f"runtime_env['{key}']['{key}_check'] must be True or False, not {check!r}"
            )
        given = given["packages"]
    if isinstance(given, (str, os.PathLike)):
        given = _lines_of(key, Path(given), [])
    if (
        not isinstance(given, (list, tuple))
        or not given
        or not all(isinstance(each, str) and each.strip() for each in given)
    ):
        raise TypeError(
            f"runtime_env['{key}'] must be a list of requirements, e.g. ['einops==0.8.0'], or a "
            "file of them"
        )
    lines = [line for each in given for line in _expanded(key, each.strip(), Path.cwd(), [])]
    found = [
        *(line for line in lines if line.startswith("-")),
        *sorted(line for line in lines if not line.startswith("-")),
    ]
    return {"packages": found, f"{key}_check": True} if check else found


def _lines_of(key: str, file: Path, above: Sequence[Path]) -> list[str]:
    if file in above or len(above) >= _FILES_MAX:
        raise ValueError(f"runtime_env['{key}']: {file} includes itself")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"runtime_env['{key}']: the file {file} cannot be read: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from None
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [
        line
        for each in lines
        for line in _expanded(
            key, re.sub(r"(^|\s)#.*$", "", each).strip(), file.parent, [*above, file]
        )
    ]


def _expanded(key: str, line: str, folder: Path, above: Sequence[Path]) -> list[str]:
    """The lines that a line stands for: of a file that it includes, all."""
    if not line:
        return []
    if not line.startswith("-"):
        return [_absolute(line)]
    option = _OPTION.match(line)
    name, value = option.groups() if option else (line, "")
    if name in _INCLUDES:
        return _lines_of(key, folder / value, above)
    if name in _CONSTRAINTS:
        return [
            each if each.startswith(CONSTRAINT) else CONSTRAINT + each
            for each in _lines_of(key, folder / value, above)
            if each[0] != "-"
        ]
    if name not in OPTIONS:
        raise ValueError(
            f"runtime_env['{key}'] takes no option {name}"
            + (
                f": {_INSTEAD[name]}"
                if name in _INSTEAD
                else f"; beside requirements it takes {', '.join(OPTIONS)}, -r and -c"
            )
        )
    return [f"{name} {_absolute(value)}".rstrip() if name in ("-f", "--find-links") else line]


def _absolute(path: str) -> str:
    """A path that is there as an absolute one; anything else as it is."""
    looks_like_one = os.sep in path or path.endswith((".whl", ".tar.gz", ".zip"))
    return (
        os.path.abspath(path)
        if looks_like_one and "://" not in path and " @ " not in path and os.path.exists(path)
        else path
    )


def travelling(asked: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    """The form that travels."""
    lines = asked if not isinstance(asked, Mapping) else asked["packages"]
    check = isinstance(asked, Mapping) and any(
        name.endswith("_check") and value for name, value in asked.items()
    )
    return {"lines": list(lines), "check": check}


def digest(pip: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    """Return a digest of the requirements: the lines, the files that they name, and the indexes of
    `variables`, without credentials."""
    indexes = {
        name: _CREDENTIALS.sub("", value)
        for name, value in variables.items()
        if name.startswith(_OF_INDEXES)
    }
    files = {line: _state_of(line) for line in pip["lines"] if os.path.isabs(line)}
    lines = [_CREDENTIALS.sub("", line) for line in pip["lines"]]
    return hashlib.sha256(
        json.dumps([lines, pip["check"], indexes, files], sort_keys=True).encode()
    ).hexdigest()


def _state_of(path: str) -> list[int]:
    """Return the state of an archive, or of all files of a project's folder."""
    from troupe._code import listing

    if os.path.isdir(path):
        looks = listing.files_of(
            path, ("build", "*.egg-info"), what=path, remedy="build a wheel of it, and name that"
        ).values()
        return [
            len(looks),
            sum(look.size for look in looks),
            max((look.mtime_ns for look in looks), default=0),
        ]
    try:
        about = os.stat(path)
    except OSError:
        return []
    return [about.st_size, about.st_mtime_ns]


def shown(text: str) -> str:
    """A text without the credentials of the addresses in it."""
    return _CREDENTIALS.sub("***@", text)


def names(pip: Mapping[str, Any]) -> str:
    """The requirements for people, without options: `einops==0.8.0 tiny and 3 more`."""
    found = [shown(line) for line in pip["lines"] if not line.startswith(("-", CONSTRAINT))]
    more = len(found) - _SHOWN_MAX
    return " ".join(found[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
