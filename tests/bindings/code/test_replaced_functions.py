"""Functions of other packages that are replaced by what wraps them: once by each wrapper, in the
package and where it is named again. And modules that are changed once they are imported."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from troupe import azure, stand_ins
from troupe._base.after_import import after_import, replace
from troupe._tracking.jobs import job_store


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


FINDERS = """
import sys
names = sorted(getattr(each, "__name__", type(each).__name__) for each in sys.meta_path)
own = [each for each in names if each in ("_ChangedAtImport", "AfterImport")]
print(own, sys.started, sys.modules["sitecustomize"].__file__, sys.path[0], sep="|")
"""


def test_start_hooks_each_run_once_in_any_order_before_the_environments_own(tmp_path: Path) -> None:
    """A Python's import path has the three hooks, then the environment's own sitecustomize."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.started = getattr(sys, 'started', 0) + 1\n"
    )
    trials = os.path.join(os.path.dirname(azure.__file__), "_trials", "hook")
    hooks = (stand_ins.START, os.path.abspath(trials), job_store.HOOK)
    settings = {
        "TROUPE_SWEEP_REPORTS": str(tmp_path),
        job_store.STORE: str(tmp_path),
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db",
    }
    for order in permutations(hooks):
        done = subprocess.run(
            [sys.executable, "-P", "-c", FINDERS],
            env={
                **os.environ,
                **settings,
                "PYTHONPATH": os.pathsep.join([*order, str(tmp_path)]),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        own, started, file, first = done.stdout.strip().split("|")
        assert own == "['AfterImport', 'AfterImport', '_ChangedAtImport']", (order, own)
        assert (started, file) == ("1", str(tmp_path / "sitecustomize.py")), (order, done.stdout)
        assert first == str(tmp_path) and not done.stderr, (order, done.stdout, done.stderr)
