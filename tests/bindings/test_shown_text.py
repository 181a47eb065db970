"""Ranks' output in a terminal and a notebook's cell: how wide, in whose colours, how much. Pure."""

from __future__ import annotations

import pytest

from troupe._cluster import cell_output
from troupe._cluster.cell_output import Cell
from troupe._cluster.terminal_text import cut, enclosed


@pytest.mark.parametrize(
    "row, columns, expected",
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("too long", 3, "too\x1b[0m"),
        ("界界界", 5, "界界\x1b[0m"),
        ("\x1b[31mred\x1b[0m and more", 5, "\x1b[31mred\x1b[0m a\x1b[0m"),
        ("a\tb", 3, "a b"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
    ],
)
def test_a_row_is_as_wide_as_the_terminal_at_most(row: str, columns: int, expected: str) -> None:
    assert cut(row, columns) == expected


@pytest.mark.parametrize(
    "line, style, expected, after",
    [
        ("plain", "", "plain", ""),
        ("\x1b[31mred\x1b[0m", "", "\x1b[31mred\x1b[0m", ""),
        ("\x1b[31mred", "", "\x1b[31mred\x1b[0m", "\x1b[31m"),
        ("on", "\x1b[31m", "\x1b[31mon\x1b[0m", "\x1b[31m"),
        ("end\x1b[m", "\x1b[31m", "\x1b[31mend\x1b[m", ""),
        ("\x1b[1mbold", "\x1b[31m", "\x1b[31m\x1b[1mbold\x1b[0m", "\x1b[31m\x1b[1m"),
    ],
)
def test_colours_end_with_their_line_and_go_on_in_the_streams_next(
    line: str, style: str, expected: str, after: str
) -> None:
    assert enclosed(line, style) == (expected, after)


def test_what_is_remembered_of_colours_is_bounded() -> None:
    style = ""
    for number in range(10_000):
        _, style = enclosed(f"\x1b[38;5;{number % 256}mx", style)
    assert len(style) < 1000


def test_a_cell_has_the_first_lines_and_says_what_it_left_out() -> None:
    cell = Cell()
    lines = [f"line {number}" for number in range(cell_output.LINES_MAX + 500)]
    assert (
        cell.take(lines[:10], "there") + cell.take(lines[10:], "there")
        == lines[: cell_output.LINES_MAX]
    )
    told, *latest = cell.text().splitlines()
    assert (
        told == f"... {500 - cell_output.LATEST_MAX} lines are left out here; all of it: there ..."
        and latest == lines[-cell_output.LATEST_MAX :]
    )


def test_a_cell_has_so_many_characters_and_short_last_lines() -> None:
    cell = Cell()
    assert len(cell.take(["x" * 1000] * 1000, "")) == cell_output.CHARS_MAX // 1000
    assert cell.take(["short"], "") == [], "what comes later is not shown before what is left out"
    assert max(map(len, cell.text().splitlines())) < 1000


def test_a_cell_that_shows_all_says_nothing() -> None:
    cell = Cell()
    assert cell.take(["a", "b"], "there") == ["a", "b"] and cell.text() == ""
