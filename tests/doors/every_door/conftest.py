"""The fixtures of tests/e2e, the modules of tests/doors and of its command jobs, and a node with a
small disk."""

from __future__ import annotations

import sys
from pathlib import Path

from e2e_conftest import *

_DOORS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_DOORS), str(_DOORS / "command_jobs")]

from small_disks import small_node  # noqa: F401
