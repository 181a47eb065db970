"""Stands on the import path of processes that a program of `troupe run-as-ray` starts: what they import as `ray` is Troupe."""
import importlib
import sys

from troupe import ray_compat

_found = sys.modules.pop(__name__)
try:
    ray_compat.install()
    importlib.import_module(__name__)  # which is what the import statement gives: it looks in sys.modules again
except BaseException:
    sys.modules[__name__] = _found
    raise
