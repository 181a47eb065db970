"""Rows of a stream: lines once and in order, of a progress bar its last state, in bounded memory,
however the bytes are cut.

Method: streams as tqdm, rich and plain programs write them, fed whole and byte by byte.
"""

from __future__ import annotations

import pytest

from troupe._cluster.output_rows import LINE_CHARS_MAX, ROWS_MAX, Rows

STREAMS = {
    "plain": ("one\n\ntwo\nthree", ["one", "", "two", "three"]),
    "line ends of DOS": ("one\r\ntwo\r\n", ["one", "two"]),
    "a bar": ("\r 0%\r50%\r100%\nafter\n", ["100%", "after"]),
    "a bar that leaves the cursor in front": ("0%\r50%\r100%\r\n", ["100%"]),
    "a bar without an end": ("\r0%\r10%\r90%", ["90%"]),
    "erased": ("\r\x1b[2K10%\r\x1b[2K20%\r\x1b[K30%\n", ["30%"]),
    "erased below": ("own\x1b[s\n\r\x1b[K10%\x1b[1A\x1b[s\n\r\x1b[K\x1b[1A", ["own"]),
    "colours and wide letters": ("\r\x1b[31mä\x1b[0m\r\x1b[32m界\x1b[0m\n", ["\x1b[32m界\x1b[0m"]),
}
NESTED = "".join(f"\router {i}\n\rinner {i}\x1b[A" for i in range(50)) + "\router done\n\n"


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("size", [1, 3, 1 << 20])
def test_r1_r2_lines_and_last_states(name: str, size: int) -> None:
    text, expected = STREAMS[name]
    data, rows, lines = text.encode(), Rows(), []
    for at in range(0, len(data), size):
        lines += rows.feed(data[at : at + size])
    assert lines + rows.feed(b"", ended=True) == expected


def test_r2_bars_below_each_other() -> None:
    rows, lines = Rows(), []
    for update in NESTED.encode().split(b"\r"):
        lines += rows.feed(b"\r" + update)
        assert len(rows.live()) <= 3
    assert (lines + rows.feed(b"", ended=True))[-2:] == ["outer done", "inner 49"] and len(
        lines
    ) <= 4, lines


def test_the_latest_state_is_there_meanwhile() -> None:
    rows = Rows()
    assert rows.feed(b"\r10%") == [] and rows.live() == ["10%"]
    assert rows.feed(b"\r20%\r") == [] and rows.live() == ["20%"]
    assert rows.feed(b"30%\nnext") == ["30%"] and rows.live() == ["next"]


@pytest.mark.parametrize(
    "piece", [b"x" * 1000, b"x\n\x1b[A\x1b[B", b"\r" + b"x" * 1000, b"\x1b[" + b"1" * 1000]
)
def test_r3_memory_is_bounded(piece: bytes) -> None:
    rows, lines = Rows(), []
    for _ in range(2000):
        lines += rows.feed(piece)
    assert max(map(len, lines), default=0) <= LINE_CHARS_MAX
    assert (
        len(rows._rows) <= ROWS_MAX
        and sum(map(len, rows._rows)) <= ROWS_MAX * LINE_CHARS_MAX
        and len(rows._rest) < 100
    )


def test_a_gap_of_a_size_cap_joins_no_lines_and_counts_what_is_left_of_one() -> None:
    rows = Rows()
    assert rows.feed(b"one\ntw") == ["one"]
    lines, whole = rows.after_gap(100, b"alf\nthree\nfo")
    assert lines == ["tw", "... 104 bytes of output were dropped here (size cap) ..."]
    assert rows.feed(whole) == ["three"] and rows.feed(b"ur\n", ended=True) == ["four"]
