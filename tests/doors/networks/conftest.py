"""The fixtures of tests/e2e, and the modules of tests/doors, for tests of networks."""

from __future__ import annotations

import sys
from pathlib import Path

from e2e_conftest import *  # noqa: F403

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
