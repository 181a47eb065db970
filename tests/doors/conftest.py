"""The fixtures of tests/e2e, for tests of the front doors: real heads, workers and programs in a TROUPE_HOME of their own."""
from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

# By its path: of several files named conftest only one can be imported by that name.
_spec = importlib.util.spec_from_file_location("e2e_conftest", Path(__file__).parents[1] / "e2e" / "conftest.py")
assert _spec is not None and _spec.loader is not None
_shared = sys.modules.setdefault(_spec.name, importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(_shared)
globals().update({name: value for name, value in vars(_shared).items() if not name.startswith("__")})
