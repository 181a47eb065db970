"""Tests of the loaded modules that are the program's own, in a process that was forked too."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from troupe._code import sources


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sources, "_before", sources._Before())
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def imported(tmp_path: Path) -> Callable[[str], object]:
    def import_(name: str) -> object:
        (tmp_path / f"{name}.py").write_text("value = 1\n")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    return import_


def own() -> list[str]:
    return [module.__name__ for module in sources.modules_of_the_program()]


def test_what_came_before_and_after_the_fork_is_found(
    imported: Callable[[str], object],
) -> None:
    imported("own_before")
    sources.note_loaded()
    imported("own_after")
    found = own()
    assert "own_before" in found
    assert "own_after" in found


def test_as_many_as_come_after_it_are_found(imported: Callable[[str], object]) -> None:
    sources.note_loaded()
    names = [f"own_{number}" for number in range(3 * sources._FIRST_LOOK)]
    for name in names:
        imported(name)
    assert [name for name in own() if name in set(names)] == names


def test_a_module_that_was_loaded_anew_is_the_new_one(imported: Callable[[str], object]) -> None:
    imported("own_before")
    sources.note_loaded()
    del sys.modules["own_before"]
    anew = imported("own_before")
    assert anew in sources.modules_of_the_program()


def test_libraries_are_looked_at_only_where_none_were_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    is_own = sources._is_own

    def noted(module: object) -> bool:
        looked.append(getattr(module, "__name__", ""))
        return is_own(module)

    sources.note_loaded()
    monkeypatch.setattr(sources, "_is_own", noted)
    sources.modules_of_the_program()
    assert os.__name__ not in looked
    monkeypatch.setattr(sources, "_before", sources._Before())
    sources.modules_of_the_program()
    assert os.__name__ in looked
