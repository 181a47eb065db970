"""`import ray` means Troupe: for scripts that are written for Ray and are to stay so.

    troupe run-as-ray train.py --epochs 3

or, in a program of one's own, before anything imports ray:

    from troupe import ray_compat
    ray_compat.install()
    import ray                       # Troupe, by Ray's names

Actors, tasks and ranks that are started from such a process get it too, so a class that uses `ray` works
where it runs. What Ray has and Troupe has not raises an error that names it and says what to use; it never
falls through to an installed Ray. View: this process and those it starts.
"""
from __future__ import annotations

import sys


def install() -> None:
    """From now on `import ray` gives Troupe here, and in what this process starts. Idempotent.

    Raises RuntimeError where the real Ray was imported before: its objects are in use already.
    """
    from troupe.ray_compat._finder import Finder

    if is_installed():
        return
    if "ray" in sys.modules:
        raise RuntimeError("ray was imported before troupe.ray_compat.install(), from "
                           f"{getattr(sys.modules['ray'], '__file__', 'somewhere')}: call install() first")
    sys.meta_path.insert(0, Finder())


def is_installed() -> bool:
    """Whether `import ray` gives Troupe in this process."""
    return any(type(each).__module__ == "troupe.ray_compat._finder" for each in sys.meta_path)


__all__ = ["install", "is_installed"]
