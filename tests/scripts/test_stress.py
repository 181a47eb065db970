"""The table of scripts/stress, of reports that pytest and ctest wrote (recorded/)."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import stress  # noqa: E402

RECORDED = Path(__file__).parent / "recorded"


def test_the_table_says_which_test_failed_in_which_runs() -> None:
    tally = stress.Tally()
    for run in (1, 2):
        failed = tally.add(run, (RECORDED / "pytest.xml").read_text())
        assert len(failed) == len(set(failed)) == 4, "a test and its teardown are one"
    rows = tally.table().splitlines()
    assert rows[0].split() == ["runs", "failed", "median", "s", "most", "s", "test"]
    assert any(
        row.split()[:2] == ["2", "1,2"] and row.endswith("test_toy.py::test_bad[b c]")
        for row in rows
    )
    assert any(row.split()[:2] == ["2", "-"] and row.endswith("test_good") for row in rows)
    assert rows[-1] == "2 of 6 tests passed every run; 1 skipped"


def test_the_table_takes_ctest_s_reports_too() -> None:
    tally = stress.Tally()
    assert len(tally.add(1, (RECORDED / "ctest.xml").read_text())) == 4
    assert tally.table().splitlines()[-1] == "1 of 5 tests passed every run; 0 skipped"


def test_of_many_tests_those_that_failed_and_the_slowest_are_shown() -> None:
    tally = stress.Tally()
    cases = "".join(f'<testcase name="t{i}" time="{i}"/>' for i in range(100))
    tally.add(
        1, f'<testsuite>{cases}<testcase name="bad" time="0"><failure/></testcase></testsuite>'
    )
    rows = tally.table().splitlines()
    assert rows[1].endswith("bad") and rows[2].endswith("t99") and len(rows) == 2 + stress.ROWS_MAX


def test_a_name_that_is_no_path_is_a_ctest_test() -> None:
    report = Path("/r.xml")
    assert stress.command_of("CallLine.Resumes/0", report)[0] == "ctest"
    assert "pytest" in stress.command_of(f"{__file__}::test_x", report)
