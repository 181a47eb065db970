"""Parquet files that datasets write: columns without rows, and writes that fail.

Method: writes that a function, a type that Parquet lacks, or a name that is taken ends; the folder
is compared with what it was.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from troupe import data
from troupe.data import _write

EMPTY = pa.table({"x": pa.array([], pa.list_(pa.string())), "y": pa.array([], pa.int8())})


def schema_at(folder: Path) -> Any:
    schema = data.read_parquet(str(folder)).schema()
    return None if schema is None else dict(zip(schema.names, schema.types, strict=True))


def test_columns_without_rows_stay_columns(tmp_path: Path) -> None:
    types = {"x": pa.list_(pa.string()), "y": pa.int8()}
    data.from_arrow(EMPTY).write_parquet(str(tmp_path / "arrow"))
    assert schema_at(tmp_path / "arrow") == types
    ds = data.read_parquet(str(tmp_path / "arrow"))
    assert (
        ds.count() == 0
        and ds.take_all() == []
        and list(ds.iter_batches(batch_size=None)) == []
        and list(ds.to_pandas().columns) == ["x", "y"]
    )
    assert [list(shard.iter_rows()) for shard in ds.streaming_split(2, equal=True)] == [
        [],
        [],
    ] and [part.count() for part in ds.split(2)] == [0, 0]
    ds.rename_columns({"y": "z"}).filter(lambda row: True).materialize().write_parquet(
        str(tmp_path / "renamed")
    )
    assert schema_at(tmp_path / "renamed") == {"x": types["x"], "z": pa.int8()}
    some = data.from_arrow(pa.table({"x": [["a"]], "y": pa.array([1], pa.int8())}))
    assert ds.union(some).take_all() == some.union(ds).take_all() == [{"x": ["a"], "y": 1}]
    assert ds.map(lambda row: {"other": 1}).schema() is None, "no function is called for no rows"
    data.range(9).filter(lambda row: False).write_parquet(str(tmp_path / "filtered"))
    data.range(9).map_batches(lambda batch: {"k": batch["id"][:0] / 2}).write_parquet(
        str(tmp_path / "mapped")
    )
    assert (schema_at(tmp_path / "filtered"), schema_at(tmp_path / "mapped")) == (
        {"id": pa.int64()},
        {"k": pa.float64()},
    )
    pq.write_table(EMPTY, tmp_path / "two.parquet", row_group_size=1)
    pq.write_table(
        pa.table({"x": [["a"]], "y": pa.array([1], pa.int8())}), tmp_path / "one.parquet"
    )
    assert data.read_parquet(
        [str(tmp_path / "two.parquet"), str(tmp_path / "one.parquet")]
    ).take_all() == [{"x": ["a"], "y": 1}]


def test_a_column_without_values_in_some_files_is_read(tmp_path: Path) -> None:
    ds = data.range(3, override_num_blocks=3).map_batches(
        lambda batch: {
            "id": batch["id"],
            "tag": [["a"] if each == 1 else None for each in batch["id"]],
        }
    )
    ds.write_parquet(str(tmp_path))
    found = data.read_parquet(str(tmp_path))
    assert found.take_all() == [
        {"id": 0, "tag": None},
        {"id": 1, "tag": ["a"]},
        {"id": 2, "tag": None},
    ] and found.schema().types[1] == pa.list_(pa.string())


def fails_late(batch: dict[str, np.ndarray]) -> dict[str, Any]:
    if batch["id"][0] > 5:
        raise KeyError("late")
    return batch


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda ds: ds.map_batches(fails_late), "late"),
        (
            lambda ds: ds.map_batches(
                lambda table: table.append_column(
                    "r",
                    pa.RunEndEncodedArray.from_arrays(
                        pa.array([table.num_rows], pa.int32()), pa.array([1])
                    ),
                ),
                batch_format="pyarrow",
            ),
            "cannot be written",
        ),
        (
            lambda ds: ds.map_batches(
                lambda batch: {
                    "x": [np.zeros(1 + each // 5 * row) for row, each in enumerate(batch["id"])]
                }
            ),
            "repartition",
        ),
    ],
    ids=["function", "type", "shapes"],
)
def test_a_write_that_fails_leaves_the_folder_as_it_was(
    tmp_path: Path, make: Callable[[Any], Any], words: str, mode: str
) -> None:
    data.range(4).write_parquet(str(tmp_path))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(data.DataError, match=words):
        make(data.range(9, override_num_blocks=3)).write_parquet(str(tmp_path), mode=mode)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_files_that_have_their_names_already_go_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third of three cannot have its name; the two before had theirs already."""
    data.range(4).write_parquet(str(tmp_path))
    (old,) = tmp_path.iterdir()
    monkeypatch.setattr(_write.uuid, "uuid4", lambda: type("Id", (), {"hex": "f" * 32}))
    (tmp_path / "ffffffff_000002.parquet").mkdir()
    (tmp_path / "ffffffff_000002.parquet" / "taken").touch()
    with pytest.raises(data.DataError, match=r"ffffffff_000002.parquet cannot be written"):
        data.range(9, override_num_blocks=3).write_parquet(str(tmp_path), mode="overwrite")
    assert sorted(tmp_path.iterdir()) == sorted([old, tmp_path / "ffffffff_000002.parquet"])
    assert data.read_parquet(str(old)).count() == 4
