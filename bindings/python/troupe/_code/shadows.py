"""Modules of the program that stand before Python's own of the same name, such as a `random.py`
beside the script."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterable

from troupe._code import sources

_TOLD_MAX = 4
_FILE = re.compile(r'File "([^"\n]+)", line')


def found_in(path: Iterable[str]) -> list[str]:
    """Files and packages in these folders that have the name of one of Python's own modules, where
    these folders come first."""
    standard = os.path.realpath(sysconfig.get_path("stdlib"))
    found: list[str] = []
    for folder in path:
        folder = os.path.abspath(folder or os.getcwd())
        if os.path.realpath(folder) == standard:
            break
        try:
            entries = sorted(os.listdir(folder))
        except OSError:
            continue
        for entry in entries:
            name = entry.removesuffix(".py") if entry.endswith(".py") else entry
            full = os.path.join(folder, entry)
            if (
                name in sys.stdlib_module_names
                and name not in sys.builtin_module_names
                and (entry != name or os.path.isfile(os.path.join(full, "__init__.py")))
                and full not in found
            ):
                found.append(full)
    return found


def text_of(path: Iterable[str]) -> str:
    """Return a sentence about these files, with the remedy; "" if there are none."""
    return _sentence(found_in(path))


def _sentence(found: list[str]) -> str:
    if not found:
        return ""
    named = ", ".join(found[:_TOLD_MAX]) + (
        f" and {len(found) - _TOLD_MAX} more" if len(found) > _TOLD_MAX else ""
    )
    return (
        f"on the import path before Python's own of the same name, for libraries too: {named}\n"
        "  if that is the cause, another name ends it"
    )


def folders_in(traceback: str) -> list[str]:
    """Folders of the program's files that a traceback names."""
    files = dict.fromkeys(_FILE.findall(traceback))
    return list(
        dict.fromkeys(
            os.path.dirname(file)
            for file in files
            if os.path.isabs(file) and not sources.is_of_a_library(file)
        )
    )


def blamed(path: Iterable[str], told: str) -> str:
    """The sentence about those that an error's text speaks of, by their file or by their name; "":
    of none."""
    found = [
        each
        for each in found_in(path)
        if each in told or f"'{os.path.basename(each).removesuffix('.py')}'" in told
    ]
    return _sentence(found)
