"""The pages of the front doors say what is so: each row of the vendors' guides is on one, with
tests that are there and of which one at least runs each time; each fault has its test; links lead
somewhere.

Method: the pages' tables and the tests' sources are read; nothing is run.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = (
    "guides/programs.md",
    "coming/serverless_gpu.md",
    "coming/databricks_air.md",
    "coming/torch_distributor.md",
    "coming/azure.md",
    "guides/sweeps_commands.md",
    "guides/display.md",
)
ROWS = {
    *(f"A{number}" for number in range(1, 19)),
    *(f"B{number}" for number in range(1, 8)),
    *(f"C{number}" for number in range(1, 10)),
    "D6",
}
LINES_OF_A_SCREEN = 50


def cells(text: str) -> Iterator[list[str]]:
    """Yield the cells of each row of each table, without its head."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if (
            line.startswith("|")
            and not line.startswith("|---")
            and not lines[number + 1 : number + 2] == ["|---|---|---|---|"]
        ):
            yield [each.strip() for each in line.strip("|").split("|")]


def rows_of(page: str) -> list[list[str]]:
    """(ids, what, example, tests) of its table."""
    text = (DOCS / page).read_text()
    return list(cells(text[text.index("\n## Row by row\n") :]))


def ids(cell: str) -> set[str]:
    """`A1, A3-A5` as the ids that it means."""
    found: set[str] = set()
    for first, last in re.findall(r"([A-D]\d+)(?:-[A-D](\d+))?", cell):
        found |= {
            f"{first[0]}{number}" for number in range(int(first[1:]), int(last or first[1:]) + 1)
        }
    return found


@functools.cache
def found_in(path: Path) -> dict[str, bool]:
    """The tests of a file or of a folder's files: whether each runs every time, not in a long run
    alone."""
    if path.is_dir():
        return {
            name: often
            for file in sorted(path.rglob("test_*.py"))
            for name, often in found_in(file).items()
        }
    tree = ast.parse(path.read_text())
    long = any(
        isinstance(each, ast.Assign)
        and "pytestmark" in ast.unparse(each.targets[0])
        and "mark.long" in ast.unparse(each.value)
        for each in tree.body
    )
    return {
        each.name: not long
        and not any("pytest.mark.long" == ast.unparse(mark) for mark in each.decorator_list)
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    }


def test_each_row_of_the_guides_is_on_a_page() -> None:
    assert {each for page in PAGES for row in rows_of(page) for each in ids(row[0])} == ROWS


@pytest.mark.parametrize("page", PAGES)
def test_each_row_has_tests_and_one_at_least_runs_each_time(page: str) -> None:
    for _, what, _, tests in rows_of(page):
        paths = re.findall(r"`(tests/[^`]+)`", tests)
        assert paths, f"{page}: no test of: {what}"
        found = {path: found_in(ROOT / path) for path in paths}
        assert all(found.values()), (page, what, found)
        assert any(often for each in found.values() for often in each.values()), (
            f"{page}: only long runs have tests of: {what}"
        )
        for path, word in re.findall(r"`(tests/[^`]+)` \(`(\w+)`\)", tests):
            assert any(word in name for name in found[path]) or word in path, (
                f"{page}: {path} has no test of {word}"
            )


def test_each_fault_has_its_test() -> None:
    page = (DOCS / "reference/front_door_faults.md").read_text()
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", page)
    assert len(named) > 15
    for file, test in named:
        assert test in found_in(ROOT / "tests" / "doors" / file), (file, test)
    for line in page.splitlines():
        assert not line.startswith("| ") or line.endswith((" the same |", "` |", " test |")), line


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    heads = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize(
    "page",
    [
        *sorted(DOCS.rglob("*.md")),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "tests/doors/README.md",
        ROOT / "tests/guides/README.md",
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)(?:#([^)\s]+))?\)", text):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{page.name}: {target} is not there"
        assert not anchor or anchor in anchors(there), (
            f"{page.name}: {target}#{anchor}: there are {sorted(anchors(there))}"
        )


def test_the_first_page_is_one_screen() -> None:
    assert len((DOCS / "guides/front_doors.md").read_text().splitlines()) <= LINES_OF_A_SCREEN
