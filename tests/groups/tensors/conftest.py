"""The fixtures of tests/e2e, for tensors that stay in their actors."""

from __future__ import annotations

from typing import Any

import pytest
from e2e_conftest import *  # noqa: F403
from e2e_conftest import Home

import troupe


@pytest.fixture
def two(idle: Home) -> Any:
    """Two actors whose processes are there."""
    from makers import LIMIT_S, Maker

    made = [troupe.remote(Maker).remote() for _ in range(2)]
    troupe.get([each.pid.remote() for each in made], timeout=LIMIT_S)
    return made
