"""The fixtures of tests/e2e, for launches over a real Ray cluster."""

from __future__ import annotations

import os

import pytest
from e2e_conftest import *  # noqa: F403
from e2e_conftest import Home


@pytest.fixture(scope="module", autouse=True)
def own_folder(shared_home: Home) -> None:
    """Temporary files of the module's cluster lie in a folder of its own, so that what is left of
    it is told from what others have there."""
    os.environ["TMPDIR"] = os.environ["XDG_RUNTIME_DIR"]


@pytest.fixture(autouse=True)
def nothing_of_rays_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of Ray's is set by who runs the tests."""
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
