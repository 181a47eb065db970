"""A job's code as it travels: its folder, or one file, without what `.amlignore` or `.gitignore`
name; by its content."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._code import disk, ignore_files, listing, packages, runtime_env, trees
from troupe._code.capture import size_text

IGNORE_FILE = ".amlignore"
_REMEDY = "name what is not needed in .amlignore, or give data as an input: Input(path=...)"


def check(code: Any, base: str) -> str | None:
    """The absolute path of a job's code; None: it has none.

    Raises FileNotFoundError and ValueError.
    """
    if code is None:
        return None
    if not isinstance(code, str | os.PathLike) or not os.fspath(code):
        raise TypeError(f"code must be the path of a folder or a file, not {code!r}")
    text = os.fspath(code)
    scheme, separator, _ = text.partition(":")
    if separator and (text[len(scheme) :].startswith("://") or scheme in ("azureml", "git+https")):
        raise ValueError(
            f"code is {text!r}; here it is a folder of this machine: clone it, and give its path"
        )
    path = os.path.abspath(os.path.join(base, os.path.expanduser(text)))
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"there is no code folder {text}" + ("" if os.path.isabs(text) else f" in {base}")
        )
    return path


def package(path: str, session: Any) -> dict[str, Any]:
    """Store a folder or file with a worker, by its content, and return its location.

    Of a folder only what was changed since the last time is read and sent.

    Raises TooLargeError with the largest file.
    """
    if os.path.isfile(path):
        return file(path, "code", session, _REMEDY)
    return trees.sent(
        path, (), inside="", what="code", session=session, ignored=rules(path), remedy=_REMEDY
    )


def file(path: str, what: str, session: Any, remedy: str) -> dict[str, Any]:
    """Store one file with a worker and return its location. Raises TooLargeError that names `what`
    and the `remedy`."""
    about = os.stat(path)
    if about.st_size > listing.BYTES_MAX:
        raise exceptions.TooLargeError(
            f"{what}: {path} has {size_text(about.st_size)}; {size_text(listing.BYTES_MAX)} is the "
            f"limit of what travels\n  {remedy}"
        )
    return runtime_env.package_of(
        (path, about.st_mtime_ns, about.st_size),
        session,
        lambda: packages.zip_of_file(path, os.path.basename(path)),
    )


def rules(folder: str) -> ignore_files.Ignored:
    """Return the rules of the files to leave out: the folder's `.amlignore`, else its `.gitignore`
    files."""
    named = os.path.isfile(os.path.join(folder, IGNORE_FILE))
    return ignore_files.Ignored(folder, file=IGNORE_FILE if named else ignore_files.IGNORE_FILE)


def keep(code: str, target: Path, what: str) -> Path:
    """Copy the code for jobs that begin later; what vanishes meanwhile is left out.

    Raises TooLargeError, OutOfDiskError, an OSError, naming `what`.
    """
    with disk.writing(what, target.parent, remedy="make room there"):
        target.mkdir()
        if os.path.isfile(code):
            return Path(shutil.copy2(code, target))
        for name in listing.files_of(code, (), what="code", ignored=rules(code), remedy=_REMEDY):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copy2(os.path.join(code, name), target / name)
            except FileNotFoundError:
                if os.path.lexists(os.path.join(code, name)):
                    raise
    return target
