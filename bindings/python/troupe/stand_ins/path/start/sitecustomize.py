"""Run by every Python that a program of `troupe run-as` starts: `databricks.air`,
`pyspark.ml.torch` and `azure.ai.ml` are as in the program. And by every Python that a rank starts
or becomes: of a CPU rank NCCL is Gloo there, as in the rank (`troupe/_process/gloo_for_nccl.py`),
and databases of MLflow are opened by one process at a time (`troupe/_tracking/turns.py`). Threads
of torch abort neither at their end (`troupe/stand_ins/_late_threads.py`).

Packages below others' roots cannot stand on the import path themselves: what looks whether
`pyspark` is installed would find it. Nothing is imported here until a program asks for one of them,
for torch or for MLflow; then the environment's own sitecustomize has run.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys

TYPE_CHECKING = False  # typing is not imported for every Python
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
_CLAIMS = {
    "databricks": ("databricks.air",),
    "pyspark": ("pyspark.ml.torch", "pyspark.ml.deepspeed"),
    "azure": ("azure.ai.ml", "azure.identity"),
}
_changes = {
    "torch": lambda module: _of_troupe("stand_ins/_late_threads.py").watch(_PACKAGE),
}
"""Module of others -> what changes it right after its import."""
_changer = None


class _AtFirstUse:
    """Installs what Troupe stands in for when one of its modules is first asked for."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        """None, so that the finders that are then there answer."""
        if any(
            each.startswith(f"{name}.") or name == each or name.startswith(f"{each}.")
            for each in tuple(_wanted)
        ):
            # The finder stays: removing it would make an import in another thread miss the one
            # behind it
            _wanted.clear()
            from troupe import stand_ins

            stand_ins.install_named()
            for finder in list(sys.meta_path):
                found = finder.find_spec(name, path, target)
                if found is not None:
                    return found
        return None


class _ChangedAtImport:
    """Changes modules right after they are imported.

    It stays among the finders, as the other one does.
    """

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        """None for all other modules."""
        global _changer
        if name not in _changes:
            return None
        if _changer is None:
            _changer = _of_troupe("_base/after_import.py").AfterImport(_changes)
        return _changer.find_spec(name, path, target)


def _of_troupe(file: str) -> Any:
    """Return a module of the package by its file.

    This Python may have another version's package, or none.
    """
    path = os.path.join(_PACKAGE, *file.split("/"))
    name = "_troupe_" + os.path.basename(file).partition(".")[0].lstrip("_")
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = type(sys)(name)
    module.__file__ = path
    loader.exec_module(module)
    return module


_names = os.environ.get("TROUPE_STAND_INS", "").split(",")
_wanted = [claim for name, claims in _CLAIMS.items() if name in _names for claim in claims]
if _wanted:
    sys.meta_path.insert(0, _AtFirstUse)
if os.environ.get("TROUPE_GLOO_FOR_NCCL"):
    _changes["torch.distributed.distributed_c10d"] = lambda module: _of_troupe(
        "_process/gloo_for_nccl.py"
    ).wrap(module)
if os.environ.get("TROUPE_MLFLOW_LOCKS"):
    _changes["mlflow"] = lambda module: _of_troupe("_tracking/turns.py").take_turns(
        module, os.environ["TROUPE_MLFLOW_LOCKS"]
    )
sys.meta_path.insert(0, _ChangedAtImport)
_of_troupe("stand_ins/_next_start.py").run_next(_HERE)
