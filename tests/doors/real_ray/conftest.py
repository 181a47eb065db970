"""The fixtures of tests/e2e, for launches over a real Ray cluster."""
from __future__ import annotations

import pytest
from e2e_conftest import *  # noqa: F403


@pytest.fixture(autouse=True)
def nothing_of_rays_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of Ray's is set by who runs the tests."""
    import os

    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
