"""The fixtures of tests/e2e, for tests of the front doors: real heads, workers and programs in a
TROUPE_HOME of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_conftest import *  # noqa: F403
from e2e_conftest import Home, all_returned


@pytest.fixture
def idle_gpus(gpus: Home) -> Iterator[Home]:
    """The module's own `gpus`; asserts that all its resources are free again after the test."""
    yield gpus
    all_returned(timeout=60)
