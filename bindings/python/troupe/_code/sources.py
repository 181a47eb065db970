"""The program's own modules, and what their sources name."""

from __future__ import annotations

import itertools
import os
import re
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

from troupe._code import user_main

_SOURCE_BYTES_MAX = 1 << 20
_MODULES_MAX = 2000
_FIRST_LOOK = 64  # modules at the end of sys.modules
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


def note_loaded() -> None:
    """Note what is loaded before processes are forked from this one: in each of them
    `modules_of_the_program` then looks at what was loaded there, and at what was the program's own
    here.

    To look at a module writes its reference count, which copies a page of a forked process: all
    those of torch cost a rank 15 ms of a processor at its end.
    """
    _before.own = [name for name, each in list(sys.modules.items()) if _is_own(each)]
    ours = [name for name in list(sys.modules) if name.startswith("troupe.")]  # none takes it out
    _before.last = ours[-1]


class _Before:
    """Names that `note_loaded` has noted."""

    last = ""  # the one of Troupe's own modules that was loaded last
    own: Sequence[str] = ()  # the names of the program's own


_before = _Before()


def modules_of_the_program() -> list[types.ModuleType]:
    """Return the loaded modules that belong to no library, of Python's or an installed one; the
    script's is among them, whether or not it has a file."""
    names = dict.fromkeys(["__main__", *_before.own, *_loaded_since()])
    return [each for each in map(sys.modules.get, names) if _is_own(each)]


def _loaded_since() -> list[str]:
    """Return the names of the modules that came after `note_loaded`, the oldest first; of all
    modules where that was not called."""
    count = _FIRST_LOOK
    while True:
        newest = list(itertools.islice(reversed(sys.modules), count))  # at once: others import
        if _before.last in newest:
            return newest[: newest.index(_before.last)][::-1]
        if len(newest) < count:
            return newest[::-1]
        count *= 4


def _is_own(module: Any) -> TypeGuard[types.ModuleType]:
    if not isinstance(module, types.ModuleType):
        return False
    if isinstance(module, user_main.Main):
        return True
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not is_of_a_library(file)


def is_of_a_library(file: str) -> bool:
    """Return True if the file belongs to Python's own library, an installed one, or Troupe, in this
    process or in another."""
    return (
        file.startswith((_HERE, _STANDARD, "<frozen "))
        or "site-packages" in file
        or "dist-packages" in file
    )
