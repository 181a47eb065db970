"""troupe.data: what is said of data and functions that are wrong.

Method: damaged and unlike files, functions that raise or return what is no batch; the text has the
file, the rows and the user's own line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from troupe import data


def said(work: Callable[[], Any], kind: type[BaseException], *words: str) -> str:
    """The text of the DataError, which is a `kind` too; it has all words."""
    with pytest.raises(kind) as raised:
        work()
    assert isinstance(raised.value, data.DataError), raised.value
    text = str(raised.value)
    for word in words:
        assert word in text, text
    return text


def test_a_damaged_file_is_named(numbers: Path, tmp_path: Path) -> None:
    """The file's end, which describes its contents, is damaged; then its contents are."""
    for name, cut in (
        ("end", lambda raw: raw[:-20]),
        ("middle", lambda raw: raw[:400] + bytes(len(raw) // 3) + raw[400 + len(raw) // 3 :]),
    ):
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(cut((numbers / "part-0.parquet").read_bytes()))
        said(
            lambda path=path: data.read_parquet(
                [str(numbers / "part-1.parquet"), str(path)]
            ).to_pandas(),
            Exception,
            f"{path} cannot be read",
            "leave it out (skip_paths=)",
        )
    (tmp_path / "image.png").write_bytes(b"no image")
    if pytest.importorskip("PIL"):
        said(
            data.read_images(str(tmp_path / "image.png")).take_all,
            Exception,
            f"{tmp_path / 'image.png'} cannot be read",
        )
    (tmp_path / "a.csv").write_text("id\n" + "1\n" * 10)
    (tmp_path / "b.csv").write_text("id\n" + "1\n" * 5 + "one\n")
    said(
        data.read_csv(str(tmp_path), file_extensions=["csv"]).take_all,
        Exception,
        "b.csv",
        "one",
        "convert_options=",
    )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("null.json", b"null\n", "it begins with null"),
        ("deep.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "more than 500 deep"),
        ("deep_array.json", b"[" * 100_000 + b"]" * 100_000, "RecursionError"),
        ("bad.json", b'{"x": "\xff"}\n', "UTF8"),
        ("array.json", b"[1, 2]", "a JSON array of objects"),
        ("numbers.json", b'[{"x": 1}, {"x": "a"}]', "column 'x' has values of int, str"),
        ("after_null.json", b"\xef\xbb\xbf\nnull\n{}", "it begins with null"),
        ("cut.json", b'{"x": 1}\n{"x":', "JSON parse error"),
        ("ragged.csv", b"x,y\n1\n", "Expected 2 columns, got 1"),
        ("packed.csv.gz", b"x\n1\n", "incorrect header check"),
    ],
)
def test_text_that_is_wrong_is_named(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    """Also what crashes pyarrow."""
    (tmp_path / name).write_bytes(content)
    read = data.read_csv if ".csv" in name else data.read_json
    said(read(str(tmp_path / name)).take_all, Exception, f"{tmp_path / name} cannot be read", words)


def test_a_pipe_says_what_it_waits_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    ds = data.read_csv(str(pipe))
    assert (
        f"read_csv: {pipe} is a pipe or a device: each time its rows are taken"
        in capfd.readouterr().err
    )
    for _ in range(2):
        writer = threading.Thread(target=pipe.write_text, args=("x\n1\n2\n",))
        writer.start()
        assert ds.take_all() == [{"x": 1}, {"x": 2}]
        writer.join(60)
    said(
        lambda: data.read_parquet(str(pipe), file_extensions=None),
        ValueError,
        f"{pipe} is a pipe or a device, and such files are read at their ends",
    )


def test_a_path_that_matches_nothing(numbers: Path, tmp_path: Path) -> None:
    said(
        lambda: data.read_parquet(str(tmp_path / "none")),
        FileNotFoundError,
        f"{tmp_path / 'none'}: there is no such file or folder",
    )
    said(lambda: data.read_parquet(f"{numbers}/*.parquet"), FileNotFoundError, "it is no pattern")
    said(
        lambda: data.read_csv(str(numbers), file_extensions=["csv"]),
        FileNotFoundError,
        "ends with .csv",
        "of 2 files, part-0.parquet the first",
        "file_extensions=None",
    )


def test_files_of_several_schemas(tmp_path: Path) -> None:
    for name, values in (("a", pa.array([1, 2])), ("b", pa.array([1.5]))):
        pq.write_table(
            pa.table({"id": [0] * len(values), "x": values}), tmp_path / f"{name}.parquet"
        )
    said(
        lambda: data.read_parquet(str(tmp_path)),
        ValueError,
        "b.parquet has another schema than",
        "column 'x' is double",
        "int64 in the latter",
        "columns=[...]",
    )
    assert data.read_parquet(str(tmp_path), columns=["id"]).count() == 3
    with pytest.raises(ValueError, match=r"columns=\[..., 'z'\]\).* has id, x"):
        data.read_parquet(str(tmp_path / "a.parquet"), columns=["z"])
    (tmp_path / "a.csv").write_text("id,x\n1,2\n")
    (tmp_path / "b.csv").write_text("id,y\n1,2\n")
    said(
        data.read_csv([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]).take_all,
        ValueError,
        "b.csv cannot be read",
        "it has the columns id, y, and",
        "a.csv has id, x",
    )


def test_a_function_that_raises_names_row_file_and_line(numbers: Path) -> None:
    ds = data.read_parquet(str(numbers), override_num_blocks=10)

    def fails(row: dict) -> dict:
        return {"y": 1 // (row["id"] - 57)}

    text = said(
        ds.map(fails).take_all,
        ZeroDivisionError,
        f"map(fails) failed on row 57 of {numbers}/part-0.parquet: ZeroDivisionError",
        __file__,
        'return {"y": 1 // (row["id"] - 57)}',
    )
    assert "troupe/data" not in text

    def fails_on(batch: dict) -> dict:
        if 157 in batch["id"]:
            raise KeyError("label")
        return batch

    said(
        ds.map_batches(fails_on, batch_size=5).take_all,
        KeyError,
        f"map_batches(fails_on) failed on rows 55 to 59 of {numbers}/part-1.parquet",
        "label",
    )
    said(
        ds.filter(lambda row: row["id"] > 1).map_batches(fails_on).take_all,
        KeyError,
        "rows 0 to 19 of what filter(<lambda>) gave for a block of",
    )
    with pytest.raises(data.DataError) as raised:
        data.range(10).map(lambda row: row["nothing"]).take_all()
    assert (raised.value.first_row, raised.value.path) == (0, "") and isinstance(
        raised.value, KeyError
    )
    before = []
    with pytest.raises(ZeroDivisionError):
        for row in ds.map(fails).iter_rows():
            before.append(row)
    assert len(before) == 40  # all blocks before the one that failed, whatever ran first


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "it returned None, where a batch is wanted"),
        ([1, 2], "it returned a list, where a batch is wanted"),
        ({"a": [1], "b": [1, 2]}, "its columns have several lengths: a: 1, b: 2"),
        ({"a": 3}, "column 'a' is a int, where an array or a list"),
        ({1: [2]}, "a column's name is 1"),
        ({"a": np.float32(1)}, "where an array or a list"),
        ({"a": [object()]}, "column 'a' has values of object"),
        ({"a": "text"}, "column 'a' is a str"),
    ],
)
def test_a_function_that_returns_no_batch(returned: Any, words: str) -> None:
    said(
        data.range(10).map_batches(lambda batch: returned).take_all,
        TypeError,
        "map_batches(<lambda>) failed on rows 0 to 9 of the dataset",
        words,
    )


def test_blocks_that_are_not_alike(numbers: Path) -> None:
    ds = data.read_parquet(str(numbers), override_num_blocks=10)
    said(
        ds.map_batches(lambda batch: {"y": batch["id"] if batch["id"][0] else batch["x"]}).take_all,
        TypeError,
        "several schemas",
        "y: float",
        "y: int64",
    )
    said(
        ds.select_columns(["x"]).map(lambda row: row).select_columns(["id"]).take_all,
        KeyError,
        "there is no column 'id' in",
        "which have x",
    )
    torch_words = "column 'name' has values of type string, which are no tensor"
    with pytest.raises(TypeError, match=torch_words):
        list(ds.iter_torch_batches())


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (
            lambda ds: ds.sort("id"),
            AttributeError,
            "is no query engine: use a query engine: polars or duckdb",
        ),
        (lambda ds: ds.groupby("id"), AttributeError, "polars or duckdb"),
        (lambda ds: ds.join(ds, "inner", 2), AttributeError, "polars or duckdb"),
        (lambda ds: ds.sum("id"), AttributeError, "adding up as they come"),
        (lambda ds: ds.nonsense, AttributeError, "has no attribute 'nonsense'"),
        (
            lambda ds: data.read_text("x"),
            AttributeError,
            "for ray.data.read_text, use ray.data.from_items()",
        ),
        (lambda ds: ds.map_batches(3), TypeError, "a function, or a class"),
        (lambda ds: ds.map_batches(dict, batch_size=0), ValueError, "of at least 1"),
        (lambda ds: ds.map_batches(len, batch_format="jax"), ValueError, "there are 'numpy'"),
        (lambda ds: ds.map(len, num_cpu=2), ValueError, "no such argument"),
        (
            lambda ds: ds.map(len, fn_constructor_args=(1,)),
            ValueError,
            "only a class has a constructor",
        ),
        (lambda ds: ds.map(int), TypeError, "needs __call__"),
        (lambda ds: ds.filter(), ValueError, "a function, or expr="),
        (lambda ds: ds.filter(expr="open('x')"), ValueError, "is not understood"),
        (lambda ds: ds.limit(-1), ValueError, "of at least 0"),
        (lambda ds: ds.streaming_split(0), ValueError, "of at least 1"),
        (lambda ds: ds.repartition(2, sort=True), ValueError, "is not a part of Troupe"),
        (
            lambda ds: ds.iter_batches(local_shuffle_seed=1),
            ValueError,
            "needs local_shuffle_buffer_size",
        ),
        (lambda ds: iter(ds), TypeError, "iter_rows()"),
        (lambda ds: ds.take_all(limit=3), ValueError, "more rows than that"),
        (lambda ds: ds.write_parquet("/x", mode="upsert"), ValueError, "there are append"),
        (lambda ds: data.read_parquet("/x", shuffle="rows"), (ValueError, FileNotFoundError), ""),
    ],
)
def test_what_can_never_be_right_is_refused(
    make: Callable[[Any], Any], kind: Any, words: str
) -> None:
    with pytest.raises(kind) as raised:
        make(data.range(10))
    assert words in str(raised.value), raised.value


def test_without_pyarrow_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    """Method: a folder in front on the import path has no pyarrow, by raising what Python
    raises."""
    code = (
        "import sys; sys.modules['pyarrow'] = None\nimport troupe, troupe.launch, "
        "troupe.train\nassert 'numpy' not in sys.modules\n"
        "import troupe.data"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith(
        "troupe.exceptions.MissingPackageError: troupe.data needs pyarrow, which is not installed "
        "here: pip install 'troupe[data]'"
    ), done.stderr
