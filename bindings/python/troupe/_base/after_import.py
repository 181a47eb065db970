"""Modules of others that are changed right after they are imported, whenever that is."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any


class AfterImport:
    """Meta-path finder that changes modules right after they have been executed.

    It stays among the finders when it has nothing left to change: an import in another thread that
    goes through them would miss the one behind it. A program that only asks whether a module is
    there (`importlib.util.find_spec`) leaves its change for the import to come.
    """

    def __init__(self, changes: dict[str, Callable[[Any], None]]) -> None:
        self._changes = changes
        self._asked: set[tuple[int, str]] = set()  # by which thread, of the finders behind this one

    def waits(self) -> bool:
        """Return True if a module is still to be imported."""
        return bool(self._changes)

    def forget(self) -> None:
        """Changes nothing any more."""
        self._changes.clear()
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        this = threading.get_ident(), name
        if name not in self._changes or this in self._asked:
            return None
        import importlib.util

        self._asked.add(this)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asked.discard(this)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            change = self._changes.pop(name, None)
            if change is not None:
                change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def after_import(changes: dict[str, Callable[[Any], None]]) -> AfterImport:
    """Changes these modules, now or when they are imported, unless what is returned is told to
    forget it."""
    for name, change in changes.items():
        if name in sys.modules:
            change(sys.modules[name])
    later = AfterImport(
        {name: change for name, change in changes.items() if name not in sys.modules}
    )
    if later.waits():
        sys.meta_path.insert(0, later)
    return later


def replace(name: str, made_of: Callable[[Any], Any], module: Any, *others: Any) -> None:
    """Put what `made_of` makes of this function of the module in its place, there and in the
    `others` that have it too.

    Once for each `made_of`, which is known by where it is defined: what several make of one
    function is a chain.
    """
    original = getattr(module, name, None)
    mark, marks = (
        f"{made_of.__module__}.{made_of.__qualname__}",
        getattr(original, "_troupe_marks", ()),
    )
    if original is None or mark in marks:
        return
    made = functools.wraps(original)(made_of(original))
    vars(made).update(_troupe_original=original, _troupe_marks=(*marks, mark))
    for each in (module, *others):
        if hasattr(each, name):
            setattr(each, name, made)
