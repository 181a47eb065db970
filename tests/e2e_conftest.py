"""tests/e2e/conftest.py by a name of its own: of several files named conftest only one can be
imported by that name.

from e2e_conftest import *            # in another folder's conftest.py: the fixtures
from e2e_conftest import Home         # in its tests
"""

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    __name__, Path(__file__).parent / "e2e" / "conftest.py"
)
assert _spec is not None and _spec.loader is not None
sys.modules[__name__] = importlib.util.module_from_spec(
    _spec
)  # value that the import statement gives
_spec.loader.exec_module(sys.modules[__name__])
