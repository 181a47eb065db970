"""The fixtures of tests/e2e, for tensors that stay in their actors."""
from __future__ import annotations

from e2e_conftest import *  # noqa: F403
