"""The fixtures of tests/e2e, for tests of `troupe dashboard`: real heads and workers in a
TROUPE_HOME of their own."""

from __future__ import annotations

from e2e_conftest import *  # noqa: F403
