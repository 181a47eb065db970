"""Modules that are loaded before a process knows its program, and which of them the program has its
own of.

A process that has a library in `sys.modules` never looks for the program's file of that name. Plain
Python would: the program's folder comes first. Such a process starts anew (`_process.bootstrap`),
in an interpreter that has loaded nothing yet.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import machinery

LIBRARIES = (
    "numpy",
    "numpy.random",
    "cloudpickle",
    "torch",
    "torch.distributed",
    "torch._dynamo",
    "torch.nn.parallel.distributed",
)
OFTEN_UNUSED = ("torch._dynamo",)
"""Modules that a rank without an optimizer or a compiler never asks for: two fifths of the time
that all imports take."""
STANDARD = ("traceback", "json", "logging", "selectors", "concurrent.futures", "inspect", "hashlib")
OWN_MODULES = (
    "troupe._base.bridge",
    "troupe._base.calls",
    "troupe._process.channel",
    "troupe._process.rank",
    "troupe._process.actor",
    "troupe._process.store_host",
    "troupe._process.driver",
    "troupe._process.program",
    "troupe._tracking.turns",
    "troupe._tracking.rule",
    "troupe.azure._rank",
    "troupe.launch",
    "troupe.launch._ports",
    "troupe._api.session",
    "troupe._tasks.objects",
    "troupe._code.capture",
    "troupe._code.cloudpickle",
    "troupe._code.program",
    "troupe._code.environment",
    "troupe._code.trees",
    "troupe._api.runtime_context",
    "troupe.state",
    "troupe.util",
    "troupe._actors.classes",
    "troupe._actors.constructor",
    "troupe._tasks.functions",
    "troupe._tasks.host",
    "troupe._tasks.interrupts",
    "troupe._tasks.leases",
    "troupe._tasks.remote",
    "troupe._cluster.connect",
    "troupe.launch._plain",
    "troupe.tune._run.host",
    *STANDARD,
)
"""Modules that ranks, actors, tasks and trials usually load: each process would load a module that
is missing here itself."""
_NOT_LIBRARIES = {*sys.stdlib_module_names, "troupe", "__main__", "__mp_main__"}


def preimport(names: Iterable[str]) -> list[str]:
    """Import what is installed of `names`, and return the names that now are imported."""
    found = []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        found.append(name)
    return found


def loaded_libraries(path: Iterable[str]) -> dict[str, str]:
    """Return the file of each library that this process has loaded from the folders of `path`, by
    its top-level name."""
    folders = {os.path.realpath(each) for each in path}
    found = {}
    for name, module in list(sys.modules.items()):
        file = os.path.realpath(getattr(module, "__file__", None) or "")
        folder = os.path.dirname(file)
        if (
            name not in _NOT_LIBRARIES
            and "." not in name
            and {folder, os.path.dirname(folder)} & folders
        ):
            found[name] = file
    return found


def replaced(libraries: dict[str, str], path: Sequence[str]) -> list[str]:
    """Return the names of the libraries in whose place a program with this import path has a module
    of its own."""
    return [
        name
        for name in _names_in(path) & libraries.keys()
        if _file_of(name, path) not in ("", libraries[name])
    ]


def _names_in(path: Sequence[str]) -> set[str]:
    names: set[str] = set()
    for folder in path:
        try:
            names.update(entry.partition(".")[0] for entry in os.listdir(folder))
        except OSError:  # the folder does not exist, or is an archive
            continue
    return names


def _file_of(name: str, path: Sequence[str]) -> str:
    """Return the file that `import name` would load from these folders; "" where they have none, as
    of a folder without an `__init__.py`."""
    spec = machinery.PathFinder.find_spec(name, list(path))
    return (
        os.path.realpath(spec.origin)
        if spec is not None and spec.loader is not None and spec.origin
        else ""
    )
