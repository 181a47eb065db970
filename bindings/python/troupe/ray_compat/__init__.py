"""`import ray` means Troupe: for scripts that are written for Ray and are to stay so.

    troupe run-as-ray train.py --epochs 3

or, in a program of one's own, before anything imports ray:

    from troupe import ray_compat
    ray_compat.install()
    import ray                       # Troupe, by Ray's names

Actors, tasks and ranks that are started from such a process get it too, so a class that uses `ray`
works where it runs. What Ray has and Troupe has not raises an error that names it and says what to
use; it never falls through to an installed Ray. Such a program needs no `ray.init()`: its first
call makes a cluster of this machine and says so on stderr. View: this process and those it starts;
processes of multiprocessing too, and with `run-as-ray` every Python below it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "path")
"""To be on the import path of a Python whose `ray` is to be Troupe: it has a package `ray` that
calls install()."""


def install(*, starts: bool = True, when_imported: bool = False) -> None:
    """From now on `import ray` gives Troupe here, and in what this process starts.

    Idempotent.

    `starts`: a call that finds no cluster starts one, as with Ray; not in processes of a cluster,
    which are in it. `when_imported`: a process that never imports ray stays as it is, with Troupe's
    own words in errors and what else programs for Ray look for. Raises RuntimeError where the real
    Ray was imported before: its objects are in use already.
    """
    if is_installed():
        return
    if when_imported:
        sys.meta_path.insert(0, _WhenImported(starts))
        return
    from troupe._base import words as _words
    from troupe.ray_compat._finder import Finder
    from troupe.ray_compat._words import RaysWords

    if "ray" in sys.modules:
        raise RuntimeError(
            "ray was imported before troupe.ray_compat.install(), from "
            f"{getattr(sys.modules['ray'], '__file__', 'somewhere')}: call install() first"
        )
    sys.meta_path.insert(0, Finder())
    _words.current = RaysWords()
    if starts and os.environ.get("RAY_ENABLE_AUTO_CONNECT") != "0":
        from troupe._cluster import session
        from troupe.ray_compat import _starting

        session.starter = _starting.start
    bridge = sys.modules.get("troupe._base.bridge")
    if bridge is not None:  # else it looks itself, when it is loaded
        bridge.follow_ray()
    if FOLDER not in sys.path:  # processes of multiprocessing that are no forks get this path
        sys.path.insert(0, FOLDER)


def give_way() -> None:
    """From now on `import ray` gives what is installed here, and in what this process starts: for a
    process that has imported none yet, below one in which it is Troupe. Idempotent."""
    sys.meta_path[:] = [
        each for each in sys.meta_path if not type(each).__module__.startswith(__name__)
    ]
    sys.path[:] = [each for each in sys.path if each != FOLDER]
    for name, separator, gone in (
        ("PYTHONPATH", os.pathsep, FOLDER),
        ("TROUPE_STAND_INS", ",", "ray"),
    ):
        if gone in os.environ.get(name, "").split(separator):
            os.environ[name] = separator.join(
                each for each in os.environ[name].split(separator) if each != gone
            )


class _WhenImported:
    """An import hook that installs at the first import of ray, or of a module of it.

    It stays among the finders, as `_base.after_import`'s do.
    """

    def __init__(self, starts: bool) -> None:
        self._starts, self._waits = starts, True

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of `ray`; None for all other modules."""
        if not self._waits or name.partition(".")[0] != "ray":
            return None
        self._waits = False
        install(starts=self._starts)
        from troupe.ray_compat._finder import Finder

        return Finder().find_spec(name, path, target)


def is_installed() -> bool:
    """Return True if `import ray` gives Troupe in this process."""
    return any(type(each).__module__ == "troupe.ray_compat._finder" for each in list(sys.meta_path))


__all__ = ["give_way", "install", "is_installed"]
