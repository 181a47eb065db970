"""Packages of other launchers that Troupe stands in for: for scripts that import them and are to
stay as they are.

    troupe run-as train.py --epochs 3

or, in a program of one's own, before anything imports them:

    from troupe import stand_ins
    stand_ins.install(["serverless_gpu", "ray"])
    from serverless_gpu import distributed           # Troupe's

Ranks, actors and tasks that are started from such a process get the same, and with `run-as` every
Python below it. A name that Troupe has not raises an error that says what to use; it never falls
through to an installed package. View: this process and those it starts.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable

RAY = "ray"
NAMES = ("serverless_gpu", "databricks", RAY, "pyspark", "azure")
VARIABLE = "TROUPE_STAND_INS"
"""Names that every Python below `troupe run-as` installs once it imports one of them."""
WHOLE = ("serverless_gpu", RAY)
"""Those of which the whole package is Troupe's; of the others, a part that lies below a package of
others'."""
_PATHS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "path")
START = os.path.join(_PATHS, "start")
"""The folder of a sitecustomize, to be the first of a Python's import path that has one."""


def check(names: Iterable[str]) -> tuple[str, ...]:
    """The names, in the order of NAMES. Raises ValueError for one that is none."""
    given = [each.strip() for each in names]
    unknown = [each for each in given if each not in NAMES]
    if unknown or not given:
        raise ValueError(
            f"{unknown[0] if unknown else 'nothing'!r} is no package that Troupe stands in for: "
            f"there are {', '.join(NAMES)}"
        )
    return tuple(each for each in NAMES if each in given)


def pass_on(names: Iterable[str]) -> None:
    """From now on these packages are Troupe's in every Python that this process starts, by its
    environment. Idempotent."""
    names = check(names)
    os.environ[VARIABLE] = ",".join(names)
    folders = [_folder(each) for each in names if each in WHOLE] + (
        [START] if any(each not in WHOLE for each in names) else []
    )
    before = [
        each
        for each in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if each and each not in folders
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *before])


def run_start_hook_below() -> None:
    """From now on every Python that this process starts, or becomes, runs
    `path/start/sitecustomize.py`, by its environment. Idempotent."""
    rest = [
        each
        for each in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if each and each != START
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join([START, *rest])


def passed_on() -> list[str]:
    """Return the names given to pass_on() in this process or one above it."""
    return [each for each in NAMES if each in os.environ.get(VARIABLE, "").split(",")]


def _folder(name: str) -> str:
    """Return the folder with a package of that name that calls enter()."""
    if name == RAY:
        from troupe import ray_compat

        return ray_compat.FOLDER
    return os.path.join(_PATHS, name)


def install(names: Iterable[str] = NAMES, *, starts: bool = True) -> None:
    """From now on these packages are Troupe's here, and in what this process starts.

    Idempotent.

    `starts`: as of `ray_compat.install`. Raises ValueError for a name that is none, RuntimeError
    where a package was imported before.
    """
    for name in check(names):
        if name == RAY:
            from troupe import ray_compat

            ray_compat.install(starts=starts)
        elif name not in installed():
            _install(name)


def _install(name: str) -> None:
    from troupe.stand_ins import _finder, _packages

    finder = _finder.Finder(_packages.MODULE_CLASSES[name])
    taken = next((each for each in list(sys.modules) if finder.package.is_claimed(each)), None)
    if taken is not None:
        raise RuntimeError(
            f"{taken} was imported before troupe.stand_ins.install(), from "
            f"{getattr(sys.modules[taken], '__file__', 'somewhere')}: call install() first"
        )
    _finder.add(finder)
    if (
        name in WHOLE and _folder(name) not in sys.path
    ):  # processes of multiprocessing that are no forks get this path
        sys.path.insert(0, _folder(name))


def installed() -> list[str]:
    """Return the packages that are Troupe's in this process."""
    from troupe import ray_compat

    there = {
        each.package.claims[0].partition(".")[0]
        for each in list(sys.meta_path)
        if type(each).__module__ == "troupe.stand_ins._finder" and hasattr(each, "package")
    }
    return [each for each in NAMES if each in there or each == RAY and ray_compat.is_installed()]


def install_named() -> None:
    """Installs what was passed on to this process. Idempotent."""
    named = passed_on()
    if named:
        install(named)


def enter(name: str) -> None:
    """Called by the package `name` of its folder, found first on the import path: makes it what
    install() makes it."""
    found = sys.modules.pop(name)
    try:
        install({name, *passed_on()})
        importlib.import_module(
            name
        )  # the import statement looks in sys.modules again, and finds it there
    except BaseException:
        sys.modules[name] = found
        raise


__all__ = [
    "NAMES",
    "check",
    "enter",
    "install",
    "install_named",
    "installed",
    "pass_on",
    "passed_on",
]
