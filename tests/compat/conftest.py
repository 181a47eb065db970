"""The fixtures of tests/e2e, for programs written for Ray: real heads, workers and scripts in a
TROUPE_HOME of their own."""

from __future__ import annotations

from e2e_conftest import *  # noqa: F403
