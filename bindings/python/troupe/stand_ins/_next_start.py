"""The step from a start hook of Troupe's to the `sitecustomize` behind it on the import path.

Each hook is a `sitecustomize` in a folder of its own, and Python runs only the first that it finds.
Loaded by its file: the Python may have another version's package, or none.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys


def run_next(here: str) -> None:
    """Run the next `sitecustomize` behind the folder `here`, and take `here` off the import path.

    Folders before `here` are not searched: their hooks have run, and ran this one. The module that
    runs takes the name, so that the program finds its environment's own under it.
    """
    places = [os.path.abspath(each or ".") for each in sys.path]
    behind = sys.path[places.index(here) + 1 :] if here in places else sys.path
    spec = importlib.machinery.PathFinder.find_spec(
        "sitecustomize", [each for each in behind if os.path.abspath(each or ".") != here]
    )
    sys.path[:] = [each for each, place in zip(sys.path, places, strict=True) if place != here]
    if spec is None or spec.loader is None:
        return
    module = type(sys)(spec.name)  # the hook's own names stay: functions of it are still to run
    module.__file__, module.__spec__, module.__loader__ = spec.origin, spec, spec.loader
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
