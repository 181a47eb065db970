"""A tracking server for all tests of this folder, and the fixtures of tests/e2e."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_conftest import *  # noqa: F403
from servers import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """MLflow's own, on loopback."""
    made = Server(tmp_path_factory.mktemp("mlflow"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of MLflow's, nor of tracking, is set by who runs the tests."""
    import os

    for name in [
        name for name in os.environ if name.startswith("MLFLOW_") or name == "TROUPE_TRACKING"
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "1")
