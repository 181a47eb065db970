"""Values of every kind of column through functions in processes of the cluster, to files, and back.

Method: one table with the columns that NumPy and pandas cannot hold as they are; any tables,
without processes: tests/bindings/data/test_data_columns.py.
"""

from __future__ import annotations

import datetime
import decimal
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pyarrow as pa
import pytest
from e2e_conftest import Home

from troupe import data

cloudpickle.register_pickle_by_value(sys.modules[__name__])
_TIME = datetime.datetime(2020, 2, 3, 4, 5)
TABLE = pa.table(
    {
        "texts": pa.array([["cat", "dog"], ["bird"], None, []], pa.list_(pa.string())),
        "numbers": pa.array([[1, 2], [3], None, [None]], pa.list_(pa.int32())),
        "pairs": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.large_list(pa.int64())),
        "dicts": pa.array([[{"a": 1, "b": ["x"]}], [], [{"a": None, "b": None}], None]),
        "map": pa.array([[("k", 1)], [], None, [("l", None)]], pa.map_(pa.string(), pa.int64())),
        "big": pa.array([(1 << 53) + 1, None, 3, 4]),
        "flag": pa.array([True, None, False, True]),
        "part": pa.array([1.5, None, float("inf"), 0.0]),
        "zone": pa.array([_TIME, None, _TIME, _TIME], pa.timestamp("ms", "Europe/Oslo")),
        "nanos": pa.array([1, None, 3, 4], pa.timestamp("ns")),
        "word": pa.array(["a", None, "b", "a"]).dictionary_encode(),
        "cost": pa.array(
            [decimal.Decimal("1.50"), None, None, decimal.Decimal(2)], pa.decimal128(12, 4)
        ),
        "none": pa.nulls(4, pa.list_(pa.int8())),
    }
)


@pytest.mark.parametrize("batch_format", ["numpy", "pandas", "pyarrow"])
def test_a_function_that_leaves_rows_as_they_are_loses_nothing(
    idle: Home, tmp_path: Path, batch_format: str
) -> None:
    """Each row is a block, so that types do not depend on the rows that a block happens to have."""
    ds = data.from_arrow(TABLE, override_num_blocks=4).map_batches(
        lambda batch: batch, batch_format=batch_format
    )
    ds.write_parquet(str(tmp_path))
    found = data.read_parquet(str(tmp_path)).iter_batches(batch_size=None, batch_format="pyarrow")
    assert pa.concat_tables(found).equals(TABLE)


def test_a_function_that_picks_rows_keeps_lists(idle: Home) -> None:
    def odd(batch: dict[str, np.ndarray]) -> dict[str, Any]:
        keep = np.arange(len(batch["texts"])) % 2 == 1
        return {
            name: batch[name][keep]
            for name in ("texts", "dicts", "pairs", "map", "zone", "word", "cost")
        }

    rows = data.from_arrow(TABLE).map_batches(odd).take_all()
    assert rows == TABLE.take([1, 3]).select(list(rows[0])).to_pylist()
    made = (
        data.range(3)
        .map_batches(lambda batch: {"x": [np.arange(each) for each in batch["id"]]}, batch_size=2)
        .take_all()
    )
    assert [list(row["x"]) for row in made] == [[], [0], [0, 1]]
    kept = data.from_items([{"x": [1, 2]}, {"x": None}])
    assert [row["x"] for row in kept.map(lambda row: row).iter_rows()] == [
        [1, 2],
        None,
    ] and kept.take_batch(2)["x"][1] is None


def test_lists_of_one_length_are_tensors(idle: Home) -> None:
    torch = pytest.importorskip("torch")
    (batch,) = (
        data.from_arrow(TABLE)
        .select_columns(["pairs"])
        .map_batches(lambda batch: batch)
        .iter_torch_batches()
    )
    assert torch.equal(batch["pairs"], torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8]]))
    with pytest.raises(TypeError, match="'numbers' has values of type list<.*nulls among them"):
        list(data.from_arrow(TABLE).select_columns(["numbers"]).iter_torch_batches())
