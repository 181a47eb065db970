"""The fixtures of tests/e2e, for launches that go on without ranks that died."""

from __future__ import annotations

from e2e_conftest import *  # noqa: F403
