"""The fixtures of tests/e2e, and files of rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_conftest import *  # noqa: F403

pytest.importorskip("pyarrow", reason="pip install '.[data]'")


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two Parquet files with five row groups of 20 rows each: "id" is 0 up to 199, "x"
    its half, "name" its text."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("numbers")
    for part in range(2):
        ids = np.arange(100 * part, 100 * part + 100)
        table = pa.table(
            {"id": ids, "x": ids.astype(np.float32) / 2, "name": [str(each) for each in ids]}
        )
        pq.write_table(
            table, folder / f"part-{part}.parquet", row_group_size=20, compression="snappy"
        )
    return folder
