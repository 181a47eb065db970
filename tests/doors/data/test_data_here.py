"""troupe.data in one process: what is read, mapped, shuffled, dealt and written, without a cluster.

Method: small files whose rows are known. With a cluster: test_data_cluster.py; errors:
test_data_errors.py; rules alone: tests/bindings/data.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from troupe import data


def ids(dataset: Any) -> list[int]:
    return [row["id"] for row in dataset.iter_rows()]


def read(folder: Path, blocks: int = 10) -> data.Dataset:
    """In blocks of a row group each."""
    return data.read_parquet(str(folder), override_num_blocks=blocks)


def test_rows_of_parquet_files_come_in_order(numbers: Path) -> None:
    ds = read(numbers)
    assert ds.count() == 200 and ids(ds) == list(range(200)) == ids(ds)
    assert ds.columns() == ["id", "x", "name"] and ds.schema().types == [
        pa.int64(),
        pa.float32(),
        pa.string(),
    ]
    assert (
        ds.take(2) == [{"id": 0, "x": 0.0, "name": "0"}, {"id": 1, "x": 0.5, "name": "1"}]
        and len(ds.take_all()) == 200
    )
    assert data.read_parquet([str(numbers / "part-1.parquet")], columns=["x"]).take(1) == [
        {"x": 50.0}
    ]
    paths = data.read_parquet(str(numbers), include_paths=True, columns=["id"]).take_all()
    assert {Path(row["path"]).name for row in paths} == {
        "part-0.parquet",
        "part-1.parquet",
    } and set(paths[0]) == {"id", "path"}


def test_functions_of_every_kind(numbers: Path) -> None:
    ds = read(numbers)
    assert ds.map(lambda row: {"twice": row["id"] * 2}).take(2) == [{"twice": 0}, {"twice": 2}]
    assert len(ds.flat_map(lambda row: [row] * (row["id"] % 3)).take_all()) == sum(
        each % 3 for each in range(200)
    )
    assert ids(ds.filter(lambda row: row["id"] % 50 == 0)) == [0, 50, 100, 150]
    assert ids(ds.filter(expr="id > 3 and name in ['5', '7'] or id == 199")) == [5, 7, 199]
    assert ds.add_column("y", lambda batch: batch["x"] + 1, batch_format="numpy").select_columns(
        ["y"]
    ).take(2) == [{"y": 1.0}, {"y": 1.5}]
    assert ds.drop_columns(["x"]).rename_columns({"name": "text"}).columns() == ["id", "text"]
    assert (
        ds.map_batches(
            lambda table: table.slice(0, 1), batch_format="pyarrow", batch_size=10
        ).count()
        == 20
    )

    def parts(
        batch: dict[str, np.ndarray], k: int, *, plus: int
    ) -> Iterator[dict[str, np.ndarray]]:
        for value in batch["id"]:
            yield {"z": np.full(2, value * k + plus)}

    assert ds.limit(2).map_batches(parts, fn_args=[10], fn_kwargs={"plus": 1}).take_all() == [
        {"z": 1},
        {"z": 1},
        {"z": 11},
        {"z": 11},
    ]

    class Adds:
        def __init__(self, k: int) -> None:
            self.k = k

        def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {"id": batch["id"] + self.k}

    assert ids(ds.map_batches(Adds, fn_constructor_args=(1000,), concurrency=2)) == list(
        range(1000, 1200)
    )


def test_batches_have_the_rows_asked_for_over_blocks(numbers: Path) -> None:
    ds = read(numbers)
    assert [len(batch["id"]) for batch in ds.iter_batches(batch_size=64)] == [64, 64, 64, 8]
    assert [len(batch["id"]) for batch in ds.iter_batches(batch_size=64, drop_last=True)] == [
        64,
        64,
        64,
    ]
    assert [
        batch.num_rows for batch in ds.iter_batches(batch_size=None, batch_format="pyarrow")
    ] == [20] * 10
    joined = np.concatenate([batch["id"] for batch in ds.iter_batches(batch_size=33)])
    assert joined.tolist() == list(range(200))
    epochs = ds.iter_batches(batch_size=50, local_shuffle_buffer_size=60, local_shuffle_seed=5)
    first, second = (np.concatenate([batch["id"] for batch in epochs]).tolist() for _ in range(2))
    assert first == second != sorted(first) and sorted(first) == list(range(200))


def test_tensors_may_be_written_to_and_change_nothing_else(numbers: Path) -> None:
    torch = pytest.importorskip("torch")
    held = read(numbers).select_columns(["id", "x"]).materialize()
    for ds in (held, read(numbers).select_columns(["id", "x"])):
        for _ in range(2):
            total = 0
            for batch in ds.iter_torch_batches(batch_size=30, dtypes={"x": torch.float64}):
                assert batch["id"].dtype == torch.int64 and batch["x"].dtype == torch.float64
                total += int(batch["id"].sum())
                batch["id"].zero_()
            assert total == sum(range(200))
    made = ds.iter_torch_batches(
        batch_size=100,
        collate_fn=lambda batch: torch.as_tensor(batch["id"].copy()),
        prefetch_batches=2,
    )
    assert [each.shape for each in made] == [(100,), (100,)]
    images = data.from_numpy(np.arange(24, dtype=np.uint8).reshape(4, 2, 3))
    (batch,) = images.iter_torch_batches()
    assert batch["data"].shape == (4, 2, 3) and images.take(1)[0]["data"].tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]


def test_a_shuffle_is_the_same_for_the_same_seed(numbers: Path) -> None:
    ds = read(numbers)
    first, again, other = (ids(ds.random_shuffle(seed=seed)) for seed in (1, 1, 2))
    assert (
        first == again != other
        and sorted(first) == sorted(other) == list(range(200))
        and first != list(range(200))
    )
    by_file = data.read_parquet(
        str(numbers), shuffle=data.FileShuffleConfig(seed=3), override_num_blocks=10
    )
    orders = {tuple(ids(by_file)) for _ in range(8)}
    assert orders == {tuple(range(200)), (*range(100, 200), *range(100))}


def test_limits_unions_and_blocks(numbers: Path) -> None:
    ds = read(numbers)
    assert ids(ds.limit(25)) == list(range(25)) and ids(
        ds.filter(lambda row: row["id"] > 90).limit(3)
    ) == [91, 92, 93]
    assert ids(
        ds.filter(lambda row: row["id"] > 90).limit(3).map(lambda row: {"id": -row["id"]})
    ) == [-91, -92, -93]
    assert ids(
        ds.limit(3)
        .union(
            ds.limit(2), data.from_items([{"id": 7, "x": 1.0, "name": "a"}]).map(lambda row: row)
        )
        .map(lambda row: row)
    ) == [0, 1, 2, 0, 1, 7]
    assert ds.repartition(3).materialize().num_blocks() == 3 and ids(ds.repartition(3)) == list(
        range(200)
    )
    sizes = [
        len(batch["id"])
        for batch in ds.repartition(target_num_rows_per_block=75).iter_batches(batch_size=None)
    ]
    assert sizes == [75, 75, 50]
    assert [part.count() for part in ds.split(3)] == [67, 67, 66] and [
        part.count() for part in ds.split(3, equal=True)
    ] == [66] * 3
    assert ids(ds.split(3)[1]) == list(range(67, 134))


@pytest.mark.parametrize(
    "make",
    [
        lambda ds: ds,
        lambda ds: ds.filter(lambda row: row["id"] % 7 != 0),
        lambda ds: ds.random_shuffle(seed=1),
    ],
    ids=["known", "filtered", "shuffled"],
)
def test_shares_are_equal_and_every_row_is_in_one(
    numbers: Path, make: Callable[[Any], Any]
) -> None:
    """Readers in threads, in two epochs; where rows are known, one after the other."""
    ds = make(read(numbers))
    shards = ds.streaming_split(3, equal=True)
    found: list[list[list[int]]] = [[], [], []]

    def go(index: int) -> None:
        for _ in range(2):
            found[index].append(ids(shards[index]))

    readers = [threading.Thread(target=go, args=(index,)) for index in range(3)]
    for each in readers:
        each.start()
    for each in readers:
        each.join(60)
    each_has = len(ids(ds)) // 3
    for epoch in range(2):
        mine = [found[index][epoch] for index in range(3)]
        assert [len(one) for one in mine] == [each_has] * 3 and len(
            {row for one in mine for row in one}
        ) == 3 * each_has
    if ds._node == read(numbers)._node:
        assert sorted(row for shard in ds.streaming_split(4) for row in ids(shard)) == list(
            range(200)
        )


def test_what_a_program_holds_becomes_rows(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    assert (
        data.from_items([1, 2]).take_all() == [{"item": 1}, {"item": 2}]
        and data.from_items([]).count() == 0
    )
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})
    ds = data.from_pandas(frame)
    assert ds.to_pandas().equals(frame) and ds.add_column(
        "c", lambda each: each["a"] * 2
    ).to_pandas()["c"].tolist() == [2, 4, 6]
    assert data.from_arrow(pa.table({"a": [1]})).take_all() == [{"a": 1}]
    ragged = data.from_items([{"image": np.zeros((size, 2))} for size in (1, 2)])
    assert [row["image"].shape for row in ragged.iter_rows()] == [(1, 2), (2, 2)]
    assert [row["image"].shape for row in ragged.map(lambda row: row).materialize().take_all()] == [
        (1, 2),
        (2, 2),
    ]
    assert data.range(3).take_all() == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert data.range_tensor(2, shape=(2, 2)).take(2)[1]["data"].tolist() == [[1, 1], [1, 1]]


def test_text_files_are_read_in_pieces(tmp_path: Path) -> None:
    """Pieces of a few bytes: every line is in one of them, whatever lies on the borders."""
    (tmp_path / "a.csv").write_text(
        "id,name\n" + "".join(f"{each},row {each}\n" for each in range(50))
    )
    (tmp_path / "b.csv").write_text("id,name\n50,last without an end")
    ds = data.read_csv([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], override_num_blocks=40)
    assert ids(ds) == list(range(51)) and ds.take_all()[-1]["name"] == "last without an end"
    (tmp_path / "c.jsonl").write_text(
        "".join(json.dumps({"id": each, "tags": ["t"] * (each % 3)}) + "\n" for each in range(50))
    )
    assert ids(data.read_json(str(tmp_path / "c.jsonl"), override_num_blocks=30)) == list(range(50))
    (tmp_path / "d.json").write_text(json.dumps([{"id": 1}, {"id": 2}]))
    assert ids(data.read_json(str(tmp_path / "d.json"))) == [1, 2]


def test_images_are_arrays(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for index in range(3):
        image.fromarray(np.full((4 + index, 5, 3), index, np.uint8)).save(tmp_path / f"{index}.png")
    assert [row["image"].shape for row in data.read_images(str(tmp_path)).iter_rows()] == [
        (4, 5, 3),
        (5, 5, 3),
        (6, 5, 3),
    ]
    sized = data.read_images(str(tmp_path), size=(8, 9), mode="L", include_paths=True)
    rows = sized.take_all()
    assert [row["image"].shape for row in rows] == [(8, 9)] * 3 and [
        Path(row["path"]).name for row in rows
    ] == ["0.png", "1.png", "2.png"]


def test_what_is_written_is_read_again(numbers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    data.from_numpy(np.arange(12).reshape(3, 2, 2)).write_parquet(str(folder / "tensors"))
    assert data.read_parquet(str(folder / "tensors")).take(3)[2]["data"].tolist() == [
        [8, 9],
        [10, 11],
    ]
    ds = read(numbers)
    ds.map(lambda row: row).write_parquet(
        str(folder / "rows"), min_rows_per_file=60, compression="zstd"
    )
    assert (
        ids(data.read_parquet(str(folder / "rows"))) == list(range(200))
        and len(list((folder / "rows").iterdir())) < 5
    )
    ds.add_column("part", lambda batch: batch["id"] // 100, batch_format="numpy").write_parquet(
        str(folder / "parts"), partition_cols=["part"]
    )
    again = data.read_parquet(str(folder / "parts"))
    assert {(row["part"], row["id"] // 100) for row in again.iter_rows()} == {("0", 0), ("1", 1)}
    ds.limit(1).write_parquet(str(folder / "rows"), mode="overwrite")
    assert data.read_parquet(str(folder / "rows")).count() == 1
    with pytest.raises(FileExistsError, match="the folder has 1 files"):
        ds.write_parquet(str(folder / "rows"), mode="error")


def test_what_is_not_asked_for_is_not_read(numbers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that is left ends; columns that are not selected, and what is behind a limit, are
    not read; nor is more than fits the budget."""
    from troupe.data import _stream
    from troupe.data._sources import parquet

    seen: list[Any] = []
    whole = parquet.ParquetReader.read
    monkeypatch.setattr(
        parquet.ParquetReader,
        "read",
        lambda reader, piece: (seen.append((reader.columns, piece.groups)), whole(reader, piece))[
            1
        ],
    )
    read(numbers).select_columns(["x"]).limit(30).count()
    assert not seen
    assert len(read(numbers).select_columns(["x"]).limit(30).take_all()) == 30
    assert [columns for columns, _ in seen] == [("x",), ("x",)]
    seen.clear()
    monkeypatch.setattr(
        _stream.Place, "budget", lambda place: 1
    )  # less than a block: each comes all the same
    rows = iter(read(numbers).iter_rows())
    assert next(rows)["id"] == 0 and len(seen) <= 1 + 2
    rows.close()


PEAK_OF_A_ROW_GROUP = """
import sys
import pyarrow as pa
import pyarrow.parquet as pq
from troupe import data

for _ in data.read_parquet(sys.argv[1]).iter_batches():
    pass
print(pa.default_memory_pool().max_memory())
"""


def test_a_row_group_is_decoded_a_few_columns_at_a_time(tmp_path: Path) -> None:
    """All at once take four times the block: encoded, unpacked and as values."""
    random = np.random.default_rng(0)
    table = pa.table(
        {f"c{index}": random.random((16 << 20) // 40, dtype=np.float32) for index in range(10)}
    )
    pq.write_table(table, tmp_path / "one.parquet", compression="snappy")
    names = ["c7", "c1", *(f"c{index}" for index in range(9, 1, -1) if index != 7)]
    (block,) = data.read_parquet(str(tmp_path), columns=names).iter_batches(
        batch_size=None, batch_format="pyarrow"
    )
    assert block.equals(table.select(names)), "the columns that were asked for, in that order"
    done = subprocess.run(
        [sys.executable, "-c", PEAK_OF_A_ROW_GROUP, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 2 * table.nbytes, f"bytes, of a block of {table.nbytes}"
