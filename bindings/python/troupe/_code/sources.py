"""The program's own modules, and what their sources name."""

from __future__ import annotations

import os
import re
import sys
import types
from collections.abc import Iterable
from typing import Any

from troupe._code import user_main

_SOURCE_BYTES_MAX = 1 << 20
_MODULES_MAX = 2000
_QUOTED = re.compile(r"""["']([A-Za-z_][A-Za-z0-9_]{0,127})["']""")
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


def named_in_sources(names: Iterable[str], script: str = "") -> list[str]:
    """Return those of `names` that the source of the program's script, or of a module of its own
    that it has imported, contains. `script`: the file of another script."""
    wanted = set(names)
    found: set[str] = set()
    if wanted:
        for text in _text_of(script) if script else _sources():
            found |= wanted.intersection(_QUOTED.findall(text))
    return sorted(found)


def _sources() -> Iterable[str]:
    main = sys.modules.get("__main__")
    # The cells that a notebook's kernel has run
    cells = vars(main).get("In") if main is not None else None
    if isinstance(cells, list):
        yield "\n".join(each for each in cells if isinstance(each, str))
    for module in modules_of_the_program()[:_MODULES_MAX]:
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        yield from _text_of(file)


def _text_of(file: str) -> list[str]:
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            return [source.read(_SOURCE_BYTES_MAX)]
    except OSError:
        return []


def modules_of_the_program() -> list[types.ModuleType]:
    """The loaded ones that belong to no library, of Python's or an installed one; the script's is
    among them, whether or not it has a file."""
    modules = [each for each in list(sys.modules.values()) if isinstance(each, types.ModuleType)]
    return [
        each
        for each in modules
        if isinstance(each, user_main.Main) or _is_own(getattr(each, "__file__", None))
    ]


def _is_own(file: Any) -> bool:
    return isinstance(file, str) and not is_of_a_library(file)


def is_of_a_library(file: str) -> bool:
    """Return True if the file belongs to Python's own library, an installed one, or Troupe, in this
    process or in another."""
    return (
        file.startswith((_HERE, _STANDARD, "<frozen "))
        or "site-packages" in file
        or "dist-packages" in file
    )
