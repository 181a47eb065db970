"""Distribution of rows (troupe/data/_deal.py), by its numbers D1 to D4; and simplified plans
(troupe/data/_plan.py)."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="pip install '.[data]'")
from hypothesis import given, strategies as st

from troupe import data
from troupe.data import _deal, _plan
from troupe.data._sources import pieces

LENGTHS = st.lists(st.integers(0, 40), max_size=40)


def rows_of(parts: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    return [(block, row) for block, start, stop in parts for row in range(start, stop)]


@given(lengths=LENGTHS, n=st.integers(1, 9), equal=st.booleans())
def test_d1_d2_every_row_is_dealt_once_and_equally(lengths: list[int], n: int, equal: bool) -> None:
    shares = _deal.shares(list(enumerate(lengths)), n, equal=equal)
    dealt = [rows_of(share) for share in shares]
    together = [row for share in dealt for row in share]
    assert len(together) == len(set(together)) and len(dealt) == n
    assert all(share == sorted(share) for share in dealt)
    if equal:
        assert {len(share) for share in dealt} == {sum(lengths) // n}
    else:
        assert len(together) == sum(lengths)


@given(n=st.integers(1, 9), rounds=st.integers(1, 5), rows=st.integers(1, 50))
def test_d4_equal_blocks_stay_whole(n: int, rounds: int, rows: int) -> None:
    for index, share in enumerate(
        _deal.shares([(block, rows) for block in range(n * rounds)], n, equal=True)
    ):
        assert share == [(block, 0, rows) for block in range(index, n * rounds, n)]


@given(lengths=LENGTHS, n=st.integers(1, 9), rows=st.integers(1, 60))
def test_runs_and_chunks_have_all_rows_in_order(lengths: list[int], n: int, rows: int) -> None:
    blocks, total = list(enumerate(lengths)), sum(lengths)
    everything = [(block, row) for block, length in blocks for row in range(length)]
    runs = _deal.runs(blocks, _deal.even(total, n))
    assert [row for run in runs for row in rows_of(run)] == everything
    assert max(map(len, map(rows_of, runs))) - min(map(len, map(rows_of, runs))) <= 1
    chunks = [rows_of(chunk) for chunk in _deal.rechunked(iter(blocks), rows)]
    assert [row for chunk in chunks for row in chunk] == everything and all(
        len(chunk) == rows for chunk in chunks[:-1]
    )


@given(
    sizes=st.lists(st.integers(0, 50), max_size=30),
    target=st.integers(1, 100),
    size=st.integers(0, 1000),
)
def test_pieces_cover_all(sizes: list[int], target: int, size: int) -> None:
    runs = pieces.grouped(sizes, target)
    assert [index for first, end in runs for index in range(first, end)] == list(range(len(sizes)))
    assert all(end - first == 1 or sum(sizes[first:end]) <= target for first, end in runs)
    spans = pieces.ranges(size, target)
    assert (spans[0][0], spans[-1][1]) == (0, size) and all(
        stop - start <= target for start, stop in spans
    )
    assert all(before[1] == after[0] for before, after in zip(spans, spans[1:], strict=False))


def plan(ds: data.Dataset) -> _plan.Node:
    return _plan.simplified(ds._node)


def test_limits_go_below_functions_that_keep_rows() -> None:
    ds = data.range(100, override_num_blocks=10).map(lambda row: row).limit(15)
    node = plan(ds)
    assert isinstance(node, _plan.Apply) and [piece.rows for piece in node.child.pieces] == [10, 5]
    assert isinstance(plan(data.range(100).filter(lambda row: True).limit(15)), _plan.Limit)


def test_functions_are_one_stage_unless_they_need_other_processes() -> None:
    ds = data.range(10).map(lambda row: row).select_columns(["id"]).filter(lambda row: True)
    (stage,) = _plan.stages(*_plan.chain(plan(ds)))
    assert stage.reader is not None and len(stage.ops) == 3 and stage.compute.kind == "tasks"

    class Model:
        def __call__(self, batch: dict) -> dict:
            return batch

    def kinds(ds: data.Dataset) -> list[tuple[str, bool]]:
        return [
            (stage.compute.kind, stage.reader is not None)
            for stage in _plan.stages(*_plan.chain(plan(ds)))
        ]

    assert kinds(data.range(10).map_batches(Model)) == [("actors", True)]
    assert kinds(data.range(10).map_batches(Model, num_gpus=1)) == [
        ("any", True),
        ("actors", False),
    ]
    assert kinds(
        data.range(10)
        .map(lambda row: row)
        .map_batches(Model)
        .drop_columns(["x"])
        .map_batches(Model)
    ) == [("tasks", True), ("actors", False), ("actors", False)]
    assert kinds(data.range(10).map(lambda row: row, num_cpus=2).map(lambda row: row)) == [
        ("tasks", True),
        ("tasks", False),
    ]


def test_shares_that_a_reader_can_tell_by_itself() -> None:
    known = data.range(10)
    assert _plan.deals_alone(plan(known.map(lambda row: row)), equal=True)
    assert not _plan.deals_alone(plan(known.map_batches(lambda batch: batch)), equal=True)
    assert _plan.deals_alone(plan(known.map_batches(lambda batch: batch)), equal=False)
    assert not _plan.deals_alone(
        plan(known.random_shuffle()), equal=False
    ) and not _plan.deals_alone(plan(known.union(known)), equal=False)
