"""Columns on their way through functions: what NumPy and pandas cannot hold is not lost where a
function leaves it as it was.

Method: any pyarrow table through the block functions and through datasets, in each format of
batches, compared with what pyarrow itself writes and reads. In processes of a cluster:
tests/doors/data/test_data_values.py.
"""

from __future__ import annotations

import datetime
import decimal
import io
import tempfile
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pip install '.[data]'")
pandas = pytest.importorskip("pandas")

import numpy as np  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from hypothesis import (  # noqa: E402
    HealthCheck,
    assume,
    given,
    settings,
    strategies as st,
)

from troupe import data  # noqa: E402
from troupe.data import _blocks, _columns, _handed  # noqa: E402
from troupe.data._blocks import NoBatch  # noqa: E402

_DAY = datetime.datetime(2020, 1, 1)
_LEAVES: list[tuple[Any, st.SearchStrategy]] = [
    *(
        (kind, st.integers(low, high))
        for kind, low, high in (
            (pa.int8(), -128, 127),
            (pa.uint8(), 0, 255),
            (pa.int64(), -(1 << 63), (1 << 63) - 1),
            (pa.uint64(), 0, (1 << 64) - 1),
        )
    ),
    (pa.float64(), st.floats()),
    (pa.float32(), st.floats(width=32)),
    (pa.bool_(), st.booleans()),
    (pa.null(), st.none()),
    *(
        (kind, st.text(st.characters(codec="utf-8"), max_size=4))
        for kind in (pa.string(), pa.large_string())
    ),
    *((kind, st.binary(max_size=4)) for kind in (pa.binary(), pa.large_binary())),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.dictionary(pa.int32(), pa.string()), st.sampled_from("abc")),
    (pa.decimal128(9, 2), st.integers(-9999, 9999).map(lambda n: decimal.Decimal(n) / 100)),
    (pa.date32(), st.integers(-9999, 9999).map(lambda n: _DAY.date() + datetime.timedelta(n))),
    (pa.date64(), st.integers(0, 9999).map(lambda n: _DAY.date() + datetime.timedelta(n))),
    *(
        (kind, st.integers(-(1 << 40), 1 << 40))
        for kind in (
            pa.timestamp("us"),
            pa.timestamp("ns"),
            pa.timestamp("ms", "Europe/Oslo"),
            pa.duration("ns"),
        )
    ),
    (pa.time64("us"), st.integers(0, 86_399_999_999)),
]


def _nested(inner: st.SearchStrategy) -> st.SearchStrategy:
    def lists(pair: tuple[Any, st.SearchStrategy]) -> st.SearchStrategy:
        kind, values = pair
        element = st.none() | values
        return st.sampled_from(
            [
                (pa.list_(kind), st.lists(element, max_size=3)),
                (pa.large_list(kind), st.lists(element, max_size=3)),
                (pa.list_(kind, 2), st.lists(element, min_size=2, max_size=2)),
                (
                    pa.map_(pa.string(), kind),
                    st.lists(st.tuples(st.text("ab", max_size=2), element), max_size=2),
                ),
            ]
        )

    def structs(pairs: list[tuple[Any, st.SearchStrategy]]) -> tuple[Any, st.SearchStrategy]:
        return (
            pa.struct([(f"f{index}", kind) for index, (kind, _) in enumerate(pairs)]),
            st.fixed_dictionaries(
                {f"f{index}": st.none() | values for index, (_, values) in enumerate(pairs)}
            ),
        )

    return inner.flatmap(lists) | st.lists(inner, min_size=1, max_size=2).map(structs)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Tables of any types that Parquet has, with nulls, empty values and no rows."""
    rows = draw(st.integers(0, 4))
    columns = {}
    for index in range(draw(st.integers(1, 3))):
        kind, values = draw(st.recursive(st.sampled_from(_LEAVES), _nested, max_leaves=3))
        nulls = draw(st.booleans())
        try:
            columns[f"c{index}"] = pa.array(
                draw(
                    st.lists(st.none() | values if nulls else values, min_size=rows, max_size=rows)
                ),
                kind,
            )
        except (pa.ArrowException, OverflowError):
            assume(False)
    return pa.table(columns)


def written_and_read(table: pa.Table) -> pa.Table:
    sink = io.BytesIO()
    try:
        pq.write_table(table, sink)
        sink.seek(0)
        return pq.read_table(sink)
    except (
        pa.ArrowException
    ):  # pyarrow's Parquet has no fixed-size lists of fixed-size lists with nulls, say
        assume(False)
        raise


def bits(table: pa.Table) -> tuple:
    """Return a value that is equal for equal tables: NaN equals NaN here."""
    return table.schema, [
        repr(
            column.to_pylist()
            if not pa.types.is_nested(column.type)
            else [each.as_py() for each in column]
        )
        for column in table.columns
    ]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables())
def test_a_function_that_leaves_a_batch_as_it_is_changes_nothing(table: pa.Table) -> None:
    expected = bits(written_and_read(table))
    for batch_format in _blocks.FORMATS:
        for zero_copy in (True, False):
            handed = _handed.HandedBatch(table, batch_format, zero_copy=zero_copy)
            found = handed.block_of(handed.batch)
            assert bits(written_and_read(found)) == expected and found.schema == table.schema, (
                batch_format
            )
            if table.num_rows:
                again = handed.block_of(
                    dict(handed.batch) if batch_format == "numpy" else handed.batch
                )
                assert bits(again) == bits(table), batch_format


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(), st.integers(1, 4), st.sampled_from(_blocks.FORMATS))
def test_datasets_write_and_read_what_they_were_given(
    table: pa.Table, blocks: int, batch_format: str
) -> None:
    """In this process, in several blocks; a table without rows as well."""
    expected = bits(written_and_read(table))
    with tempfile.TemporaryDirectory() as folder:
        ds = data.from_arrow(table, override_num_blocks=blocks)
        (
            ds.map_batches(lambda batch: batch, batch_format=batch_format) if table.num_rows else ds
        ).write_parquet(folder)
        again = data.read_parquet(folder)
        found = list(again.iter_batches(batch_size=None, batch_format="pyarrow"))
        assert (
            bits(
                pa.concat_tables(found).combine_chunks()
                if found
                else again.schema().base_schema.empty_table()
            )
            == expected
        )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(), st.data())
def test_rows_that_a_function_picks_have_their_values(
    table: pa.Table, chance: st.DataObject
) -> None:
    """No identity helps: arrays are others.

    Values are those that were picked, as NumPy has them.
    """
    keep = np.array(
        chance.draw(st.lists(st.booleans(), min_size=table.num_rows, max_size=table.num_rows)),
        dtype=bool,
    )
    handed = _handed.HandedBatch(table, "numpy")
    picked = {name: values[keep] for name, values in handed.batch.items()}
    try:
        found = handed.block_of(picked)
    except NoBatch:  # refused by name, and never written as something else
        return
    for name, values in _blocks.batch_of(found, "numpy").items():
        assert shown(values) == shown(picked[name]), name


def shown(value: Any) -> Any:
    """The values alone: pyarrow may make a number of the same value of another type, and a list of
    a tuple."""
    if isinstance(value, np.ndarray):
        return [shown(each) for each in (value if value.dtype == object else value.tolist())]
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(each) for each in value]
    if value is None or value is pandas.NaT:
        return None
    return "nan" if value != value else value


def column(values: Any) -> pa.Array:
    return _columns.column_of(values, "x")[0]


@pytest.mark.parametrize(
    ("values", "kind", "rows"),
    [
        (
            [np.array(["a", "b"], dtype=object), np.array(["c"], dtype=object)],
            pa.list_(pa.string()),
            [["a", "b"], ["c"]],
        ),
        ([np.array([1, 2]), None], pa.list_(pa.int64()), [[1, 2], None]),
        ([None, np.array([1.5]), np.array([])], pa.list_(pa.float64()), [None, [1.5], []]),
        ([np.array([]), np.array(["a"])], pa.list_(pa.string()), [[], ["a"]]),
        ([np.array(3), np.array(4)], pa.int64(), [3, 4]),
        (
            [np.array([{"a": 1}], dtype=object), None],
            pa.list_(pa.struct([("a", pa.int64())])),
            [[{"a": 1}], None],
        ),
        (
            [{"a": np.zeros((1, 2))}, None],
            pa.struct([("a", pa.list_(pa.list_(pa.float64())))]),
            [{"a": [[0.0, 0.0]]}, None],
        ),
        (np.array([["a", "b"]]), pa.list_(pa.string()), [["a", "b"]]),
        (np.array(["2020-01-01", "NaT"], "M8[D]"), pa.date32(), [_DAY.date(), None]),
        ([np.array(["2020-01-01"], "M8[D]"), None], pa.list_(pa.date32()), [[_DAY.date()], None]),
        ([], pa.null(), []),
    ],
)
def test_columns_of_lists_are_arrows_own(values: Any, kind: Any, rows: list[Any]) -> None:
    assert (column(values).type, column(values).to_pylist()) == (kind, rows)


@pytest.mark.parametrize(
    "values",
    [
        [np.zeros((1, 2)), np.ones((2, 2)), None],
        [np.zeros((2, 2)), None],
        np.zeros((2, 2), dtype=bool),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        [np.zeros((0, 2)), np.zeros((1, 2))],
        np.arange(4, dtype=np.float16).reshape(2, 2),
    ],
    ids=str,
)
def test_arrays_of_numbers_keep_their_shapes(values: Any) -> None:
    made, field = _columns.column_of(values, "x")
    found = _columns.numpy_of(made, field)
    assert [
        None if each is None else (each.shape, each.dtype, each.tolist()) for each in found
    ] == [None if each is None else (each.shape, each.dtype, each.tolist()) for each in values]


@pytest.mark.parametrize(
    "values",
    [
        [np.array([1j])],
        [object()],
        [np.array([object()])],
        np.array([1j]),
        [{"a": object()}],
        [np.array([1]), "a"],
    ],
    ids=[
        "complex",
        "object",
        "array of objects",
        "array of complex",
        "in a dict",
        "array and text",
    ],
)
def test_values_without_a_column_are_refused(values: Any) -> None:
    with pytest.raises(NoBatch, match="column 'x'"):
        column(values)


def test_tensors_with_nulls_are_no_zeros() -> None:
    torch = pytest.importorskip("torch")
    from troupe.data import _tensors

    kind = pa.fixed_shape_tensor(pa.int64(), (2,))
    table = pa.table(
        {"x": pa.ExtensionArray.from_storage(kind, pa.array([None, [1, 2]], kind.storage_type))}
    )
    assert [None if row["x"] is None else row["x"].tolist() for row in _blocks.rows_of(table)] == [
        None,
        [1, 2],
    ]
    handed = _handed.HandedBatch(table, "numpy")
    assert handed.block_of({"x": handed.batch["x"][[1, 0]]}).column("x").type == kind
    with pytest.raises(TypeError, match="nulls among them"):
        _tensors.Tensors(None).of(table, own=False)
    lists = pa.table({"x": pa.array([[1, 2], [3, 4]])}).slice(1)
    assert torch.equal(_tensors.Tensors(None).of(lists, own=False)["x"][0], torch.tensor([[3, 4]]))


def test_a_change_in_place_is_seen() -> None:
    """Also one deep in a value of a column that would come back as Arrow's own."""
    table = pa.table(
        {"a": [["x"], None], "b": pa.array([1, None]), "c": [{"d": [1.5]}, None], "e": ["t", None]}
    )
    handed = _handed.HandedBatch(table, "numpy")
    handed.batch["a"][0][0] = "y"
    handed.batch["b"][0] = 7
    handed.batch["c"][0]["d"] = [2.5]
    handed.batch["e"][1] = "u"
    assert handed.block_of(handed.batch).slice(0, 1).to_pylist() == [
        {"a": ["y"], "b": 7.0, "c": {"d": [2.5]}, "e": "t"}
    ]
    frame = _handed.HandedBatch(table, "pandas")
    frame.batch.loc[1, "b"] = 9
    found = frame.block_of(frame.batch)
    assert found.column("b").to_pylist() == [1, 9] and found.column("a").to_pylist() == [
        ["x"],
        None,
    ]


def test_blocks_of_arrays_whose_shapes_agree_by_chance_fit_together() -> None:
    def block(values: Any) -> pa.Table:
        return _blocks.table_of_columns({"x": values})

    for arrays in (
        ([np.array([1, 2])], [np.array([1]), np.array([2, 3])]),
        ([np.zeros((2, 2))], [np.zeros((1, 2)), np.zeros((2, 2))]),
        ([np.zeros((2, 2))], [np.zeros((1, 2))]),
        ([None], [np.zeros(2)]),
    ):
        for parts in (arrays, arrays[::-1]):
            found = _blocks.rows_of(_blocks.concat([block(part) for part in parts]))
            want = [each for part in parts for each in part]
            assert [np.shape(row["x"]) for row in found] == [np.shape(each) for each in want]


def test_rows_keep_nanoseconds_and_two_columns_of_one_name_are_refused() -> None:
    table = pa.table(
        {"t": pa.array([1, None], pa.timestamp("ns")), "s": pa.array(["a", "b"], pa.large_string())}
    )
    assert _blocks.table_of_rows(_blocks.rows_of(table), table.schema).equals(table)
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    for batch_format in ("numpy", "pandas"):
        with pytest.raises(NoBatch, match="2 columns named 'x'"):
            _blocks.batch_of(twice, batch_format)
