"""The user's script in processes of the runtime: what `__main__` is there, and the program's
arguments.

A launch's function comes by value from the caller's `__main__`, so that it is there without the
script being run again. What the code then pickles by plain pickle (multiprocessing, DataLoader,
torch.save, all_gather_object) is looked up in `sys.modules["__main__"]` by its name, and has to be
the very object. So `__main__` there is a module with the loaded code's own globals, the script's
`__file__` and `__spec__`; from these multiprocessing's spawn runs the script as it would for the
caller.

A rank or actor is of one pickle, whose globals are that module's dict. A process for tasks, and
calls' arguments, bring several, each with globals as they were when it was pickled: whose code runs
finds its own.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import pickle
import sys
import threading
import types
import weakref
from collections.abc import Mapping
from typing import Any

from troupe import _pickled

NAMES = ("__main__", "__mp_main__")
"""By the second one, multiprocessing's children know the script."""


class Main(types.ModuleType):
    """`__main__` of a process of the runtime."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        namespace = super().__getattribute__("__dict__")
        for space in _spaces_of_running_code(namespace):
            if name in space:
                return space[name]
        if name in namespace:
            return namespace[name]
        found = _came.get(name) or _class_that_came(name)
        if found is None:
            raise AttributeError(
                f"the script's {name} has not come to this process (pid {os.getpid()}): what runs "
                "here did not name it"
            )
        return found


def _spaces_of_running_code(own: dict[str, Any]) -> list[dict[str, Any]]:
    """Globals of code of the script that is running in this thread, the innermost first; without
    `own`."""
    found: list[dict[str, Any]] = []
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        space = frame.f_globals
        if (
            space is not own
            and space.get("__name__") in NAMES
            and all(space is not each for each in found)
        ):
            found.append(space)
        frame = frame.f_back
    return found


def _class_that_came(name: str) -> Any:
    """A class of the script that was pickled by value, as an argument perhaps, and so is in
    nobody's globals."""
    import cloudpickle

    for each in list(cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.values()):
        if each.__module__ in NAMES and each.__qualname__ == name:
            return each
    return None


def describe() -> dict[str, Any]:
    """The script of this process, for what it starts: its file, the name it was run by with -m, and
    the directory it was started in."""
    main = sys.modules.get("__main__")
    file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    process = sys.modules.get("multiprocessing.process")
    found: dict[str, Any] = {}
    if isinstance(file, str):
        found["file"] = os.path.abspath(file)
    if spec is not None and isinstance(main, types.ModuleType):
        found["module"] = spec.name
    directory = getattr(process, "ORIGINAL_DIR", None)
    if directory:
        found["directory"] = directory
    return found


def enter(script: Mapping[str, Any], arguments: list[str] | None) -> None:
    """Makes this process one of that script, before anything of the user's is loaded."""
    if arguments:
        sys.argv[:] = arguments
    main = Main("__main__")
    main.__dict__["__builtins__"] = builtins
    if "file" in script:
        main.__dict__["__file__"] = script["file"]
    if "module" in script:
        main.__dict__["__spec__"] = importlib.machinery.ModuleSpec(
            script["module"], None, origin=script.get("file")
        )
        main.__dict__["__package__"] = main.__dict__["__spec__"].parent
    _kept.append(sys.modules.get("__main__"))
    for name in NAMES:
        sys.modules[name] = main
    if "directory" in script:
        from multiprocessing import process

        process.ORIGINAL_DIR = script["directory"]  # type: ignore[attr-defined]


_kept: list[Any] = []
"""What `__main__` was before: its code runs on."""


class _Loading(threading.local):
    alone = False
    spaces: list[dict[str, Any]] | None = None


_loading = _Loading()
_came: weakref.WeakValueDictionary[str, types.FunctionType] = weakref.WeakValueDictionary()
"""Functions of the script that were pickled by value, by their names: of each the latest."""


def loads(data: bytes, *, alone: bool = False) -> Any:
    """Load a pickle of functions and classes; raises what unpickling raises.

    `alone`: it is what this process is for, so that its functions' globals are `__main__`'s; else
    they have their own, of which `__main__` shows the latest.
    """
    before = _loading.alone, _loading.spaces
    spaces: list[dict[str, Any]] = []
    _loading.alone, _loading.spaces = alone, spaces
    try:
        value = pickle.loads(data)
    finally:
        _loading.alone, _loading.spaces = before
    main = sys.modules.get("__main__")
    if isinstance(main, Main):
        for space in spaces:
            _show(space, main)
    return value


def made_function(code: types.CodeType, space: dict[str, Any], *rest: Any) -> types.FunctionType:
    """Rebuild a function that was pickled by value, with its globals still to come: for functions
    of the script, globals that `__main__` knows."""
    import cloudpickle

    main = sys.modules.get("__main__")
    if isinstance(main, Main) and space.get("__name__") in NAMES:
        if _loading.alone:
            _show(space, main)
            space = main.__dict__
        elif _loading.spaces is not None and all(space is not each for each in _loading.spaces):
            _loading.spaces.append(space)
        function = cloudpickle.cloudpickle._make_function(code, space, *rest)
        if code.co_qualname == code.co_name:
            _came[code.co_name] = function
        same: types.FunctionType = function
        return same
    found: types.FunctionType = cloudpickle.cloudpickle._make_function(code, space, *rest)
    return found


def _show(space: dict[str, Any], main: Main) -> None:
    main.__dict__.update({name: each for name, each in space.items() if not name.startswith("__")})


@_pickled.maker("function")
def _function(code: Any, space: dict[str, Any], *rest: Any) -> Any:
    """A function of the program's script that was pickled by value; cloudpickle fills its globals
    in afterwards."""
    return made_function(code, space, *rest)
