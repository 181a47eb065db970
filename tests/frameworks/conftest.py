"""The fixtures of tests/e2e, and a cluster on which programs run as torchrun runs them: without
GPUs, one thread in each rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_conftest import *
from e2e_conftest import Home
from runs import VARIABLES


@pytest.fixture(scope="module")
def warm(shared_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of one node that is known to `troupe submit`; a folder for what programs and
    compilers leave."""
    folder = tmp_path_factory.mktemp("left")
    os.environ.update(
        VARIABLES, TMPDIR=str(folder), TORCH_EXTENSIONS_DIR=str(folder / "extensions")
    )
    os.environ["TROUPE_ADDRESS"] = shared_home.json(
        "start", "--head", "--port", "0", "--num-cpus", "8", "--num-gpus", "0"
    )["address"]
    yield folder
