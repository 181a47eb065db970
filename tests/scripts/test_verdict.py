"""Handling of failures by .ci/run.

Method: reports that pytest and ctest wrote of small tests of their own (recorded/), and verdicts of
every combination of first and second run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import ci_verdict  # noqa: E402
import verdict as rules  # noqa: E402

RECORDED = Path(__file__).parent / "recorded"
LABELS = {
    "CallLine.Resumes": ["unit", "actors"],
    "Slot.Crashes": ["unit", "actors"],
    "Slot.Hangs": ["unit", "actors"],
    "lint.sizes": ["lint"],
}
TOY = "tests/e2e/test_toy.py"


def of_pytest() -> list[rules.Failure]:
    return rules.of_pytest("pytest", (RECORDED / "pytest.xml").read_text())


def of_ctest() -> dict[str, rules.Failure]:
    found = rules.of_ctest(
        "ctest-dev",
        (RECORDED / "ctest.xml").read_text(),
        (RECORDED / "ctest.out").read_text(),
        LABELS,
    )
    return {each.test: each for each in found}


def failure(test: str, fatal: str = "", suite: str = "pytest") -> rules.Failure:
    return rules.Failure(suite, test, f"words of {test}", fatal)


def verdict(
    failures: list[rules.Failure], again: dict[str, bool], status: int = 1
) -> rules.Verdict:
    suite = rules.Suite("tests", "pytest", status, failures)
    return rules.decide(
        {"tests": 1}, [suite], {("pytest", test): passed for test, passed in again.items()}
    )


def test_the_tests_that_pytest_reports_have_the_names_it_takes() -> None:
    assert [each.test for each in of_pytest()] == [
        f"{TOY}::test_bad[b c]",
        f"{TOY}::TestIn::test_m",
        f"{TOY}::test_teardown",
        f"{TOY}::test_both",
    ]
    assert "it did not happen within 60 s" in of_pytest()[0].words
    both = of_pytest()[3].words
    assert "assert 1 == 2" in both and "processes are left" in both, (
        "a test and its teardown are one failure"
    )
    assert not any(each.fatal for each in of_pytest())


def test_of_ctest_only_tests_with_a_label_for_it_get_a_second_run_and_crashes_never() -> None:
    found = of_ctest()
    assert {test: bool(each.fatal) for test, each in found.items()} == {
        "CallLine.Resumes": False,
        "Slot.Crashes": True,
        "Slot.Hangs": False,
        "lint.sizes": True,
    }
    assert (
        found["Slot.Crashes"].fatal == "a broken invariant"
        and "(Timeout)" in found["Slot.Hangs"].words
    )
    assert "call_line_test.cc:42: Failure" in found["CallLine.Resumes"].words


@pytest.mark.parametrize(
    "words",
    [
        "==1==ERROR: AddressSanitizer: heap-use-after-free",
        "x.cc:3:5: runtime error: signed integer overflow",
        "head.cc:7: invariant broken: epoch > 0",
        "WARNING: ThreadSanitizer: data race",
        "Aborted (core dumped)",
        "worker 'gw1' crashed while running 'tests/e2e/test_launch.py::test_results'",
    ],
)
def test_what_is_no_slow_moment_fails_at_once(words: str) -> None:
    xml = (
        '<testsuite><testcase file="t.py" classname="t" '
        f'name="test_a"><failure>{words}</failure></testcase></testsuite>'
    )
    (found,) = rules.of_pytest("pytest", xml)
    assert found.fatal and found.test == "t.py::test_a"
    assert not rules.second_runs([rules.Suite("tests", "pytest", 1, [found])])
    assert not verdict([found], {found.test: True}).ok


def test_a_test_of_a_property_fails_at_once() -> None:
    xml = (
        '<testsuite><testcase file="t.py" classname="t" name="test_a"><properties><property '
        'name="property" value="1"/>'
        "</properties><failure>lost</failure></testcase></testsuite>"
    )
    assert rules.of_pytest("pytest", xml)[0].fatal


def test_a_test_that_passes_alone_is_flaky_and_said_with_its_first_words() -> None:
    found = verdict([failure("a")], {"a": True})
    assert found.ok and [each.words for each in found.flaky] == ["words of a"]


def test_a_test_that_fails_twice_fails_the_run() -> None:
    found = verdict([failure("a"), failure("b")], {"a": True, "b": False})
    assert not found.ok and found.failed == [("b (tests): failed twice", "words of b")]


@pytest.mark.parametrize(("number", "good"), [(3, True), (4, False)])
def test_more_than_three_flaky_tests_fail_the_run(number: int, good: bool) -> None:
    names = [f"t{i}" for i in range(number)]
    assert verdict([failure(each) for each in names], dict.fromkeys(names, True)).ok is good


def test_many_failures_get_no_second_run_and_fail() -> None:
    many = [failure(f"t{i}") for i in range(rules.SECOND_RUNS_MAX + 1)]
    assert rules.second_runs([rules.Suite("tests", "pytest", 1, many)]) == []
    assert len(verdict(many, {}).failed) == len(many)


@pytest.mark.parametrize(
    ("status", "failures", "good"),
    [
        (0, [], True),
        (1, ["a"], True),
        (2, ["a"], False),
        (3, [], False),
        (1, [], False),
        (-9, ["a"], False),
    ],
)
def test_a_suite_that_ended_otherwise_than_by_failed_tests_fails_the_run(
    status: int, failures: list[str], good: bool
) -> None:
    """pytest that crashed, was interrupted or could not collect: its other tests never ran."""
    suite = rules.Suite("tests", "pytest", status, [failure(each) for each in failures])
    found = rules.decide({"tests": int(status != 0)}, [suite], {("pytest", "a"): True})
    assert found.ok is good


@pytest.mark.parametrize(("part", "good"), [(0, True), (1, False), (124, False)])
def test_a_part_that_failed_without_a_test_that_says_why_fails_the_run(
    part: int, good: bool
) -> None:
    suite = rules.Suite("fuzz", "fuzz", 0)
    assert rules.decide({"fuzz": part}, [suite], {}).ok is good


def test_a_part_out_of_time_fails_the_run_whatever_its_tests_said() -> None:
    suite = rules.Suite("tests", "ctest-dev", 8, [failure("a", suite="ctest-dev")])
    found = rules.decide({"tests": 124}, [suite], {("ctest-dev", "a"): True})
    assert [why for why, _ in found.failed] == ["tests ran out of time"]


def test_a_fuzz_target_or_the_simulator_fails_the_run_at_once() -> None:
    found = rules.decide({"fuzz": 1}, [rules.Suite("fuzz", "fuzz", 1)], {})
    assert not found.ok and "fuzz ended with 1" in found.failed[0][0]


def test_the_minutes_say_what_is_over_its_share() -> None:
    lines = rules.minutes(
        {"tests": 2640, "clang": 360, "fuzz": 60}, dict.fromkeys(("tests", "clang", "fuzz"), "core")
    )
    assert lines[0] == "minutes: tests 44.0, clang 6.0, fuzz 1.0"
    assert (
        lines[1].startswith("core: 51.0 of its 48 minutes: OVER ITS SHARE")
        and lines[2] == "in all: 51.0 of 75 minutes"
    )


def test_a_suite_with_an_environment_of_its_own_is_run_by_its_interpreter_both_times(
    tmp_path: Path,
) -> None:
    """By scripts/setup.sh the first time, by scripts/ci_verdict.py the second.

    Method: interpreters that print what they were called by.
    """
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "setup.sh").write_text((ROOT / "scripts" / "setup.sh").read_text())
    for venv in (".venv", ".venv-frameworks"):
        python = tmp_path / venv / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text('#!/bin/sh\necho "$0 $*"\n')
        python.chmod(0o700)
    for suite, python in (
        ("pytest", ".venv/bin/python"),
        ("pytest-release", ".venv/bin/python"),
        ("pytest-dev.frameworks", ".venv-frameworks/bin/python"),
    ):
        first = subprocess.run(
            [
                "bash",
                "-c",
                'source "$0/scripts/setup.sh"; pytest_on dev "$1" tests/a.py',
                str(tmp_path),
                suite,
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert first.startswith(f"{python} -m pytest ") and first.rstrip().endswith(
            " tests/a.py"
        ), first
        assert rules.python_of(suite) == python
        assert rules.tool_of(suite) == "pytest"


def test_the_second_run_of_a_frameworks_test_is_in_its_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = []

    def run(line: list[str], **options: object) -> subprocess.CompletedProcess:
        lines.append((line, options["env"]))
        return subprocess.CompletedProcess(line, 0)

    monkeypatch.setattr(ci_verdict.subprocess, "run", run)
    test = "tests/frameworks/test_frameworks.py::test_a7_forked[ddp]"
    assert ci_verdict.run_again(
        failure(test, suite="pytest-dev.frameworks"), tmp_path / "again.log", 60.0
    )
    ((line, environment),) = lines
    assert line == [".venv-frameworks/bin/python", "-m", "pytest", test]
    assert environment["PYTHONPATH"] == str(ROOT / "build" / "dev" / "python")
