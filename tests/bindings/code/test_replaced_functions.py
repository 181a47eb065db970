"""Functions of other packages that are replaced by what wraps them: once by each wrapper, in the
package and where it is named again. And modules that are changed once they are imported."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from troupe._after_import import after_import, replace


def doubled(function: Any) -> Any:
    return lambda value: 2 * function(value)


def plus_one(function: Any) -> Any:
    return lambda value: function(value) + 1


def package() -> tuple[SimpleNamespace, SimpleNamespace]:
    """A package with a function, and another that has it too."""

    def same(value: int) -> int:
        """Return the value."""
        return value

    return SimpleNamespace(same=same), SimpleNamespace(same=same, other=same)


def test_wrappers_of_one_function_are_a_chain() -> None:
    module, again = package()
    replace("same", doubled, module, again)
    replace("same", plus_one, module, again)
    assert module.same(3) == again.same(3) == 7 and again.other(3) == 3
    assert module.same.__name__ == "same" and module.same.__doc__ == "Return the value."


def test_each_wrapper_is_there_once_however_often_it_is_put_there() -> None:
    module, again = package()
    for _ in range(3):
        for each in (doubled, plus_one):
            replace("same", each, module, again)
    assert module.same(3) == again.same(3) == 7


def test_what_a_package_has_not_is_left_alone() -> None:
    module, again = package()
    replace("absent", doubled, module, again)
    assert not hasattr(module, "absent") and not hasattr(again, "absent")


def test_a_module_is_changed_once_when_it_is_imported_and_not_when_a_program_asks_whether_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "troupe_looked_for.py").write_text("changed = 0\n")
    monkeypatch.syspath_prepend(tmp_path)

    def change(module: Any) -> None:
        module.changed += 1

    later = after_import({"troupe_looked_for": change})
    try:
        assert all(importlib.util.find_spec("troupe_looked_for") for _ in range(2))
        module = importlib.import_module("troupe_looked_for")
        assert module.changed == 1 and not later.waits()
        assert importlib.reload(module).changed == 0
    finally:
        later.forget()
