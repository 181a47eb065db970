"""The fixtures of tests/e2e, for tests of the head's HTTP server: real heads and workers in a TROUPE_HOME of their own."""

from __future__ import annotations

from e2e_conftest import *  # noqa: F403
