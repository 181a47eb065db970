"""Sweeps that are found by their names in a storage folder, and the results of one that nobody
runs."""

from __future__ import annotations

import os
from pathlib import Path

from troupe._base import checks as _checks
from troupe.tune._config import DEFAULT_STORAGE
from troupe.tune._journal.journal import FILE
from troupe.tune._results import ResultGrid
from troupe.tune._run.folder import absolute


def folders(storage: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders of all sweeps in a storage folder, in the order in which they began."""
    place = absolute(storage or DEFAULT_STORAGE)
    if not place.is_dir():
        return []
    found = [each for each in place.iterdir() if (each / FILE).exists()]
    return sorted(found, key=lambda each: ((each / FILE).stat().st_ctime, each.name))


def folder_of(name: str, storage: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the sweep with that name or, for a path, of the sweep there.

    Raises ValueError, with the nearest, where there is none.
    """
    if "/" in name:
        if (absolute(name) / FILE).exists():
            return absolute(name)
        raise ValueError(f"there is no sweep in {absolute(name)}")
    known = [each.name for each in folders(storage)]
    if name in known:
        return absolute(storage or DEFAULT_STORAGE) / name
    begins = [each for each in known if each.startswith(name)]
    if len(begins) == 1:
        return absolute(storage or DEFAULT_STORAGE) / begins[0]
    where = absolute(storage or DEFAULT_STORAGE)
    if begins:
        raise ValueError(
            f"several sweeps in {where} have a name that begins with {name!r}: {', '.join(begins)}"
        )
    raise ValueError(
        f"there is no sweep called {name!r} in {where}{_checks.or_nearest(name, known)}; "
        "--storage, or storage=, is the folder that the "
        "sweep's own is in"
    )


def results_of(path: Path) -> ResultGrid:
    """Return the results of a sweep that is over, from its journal.

    Raises BlockingIOError where an engine is at it.
    """
    from troupe.tune._run import fit

    return fit.results_of(path)
