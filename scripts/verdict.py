"""Verdict on a run of continuous integration: which failures get a second run, and the result of
both runs.

Pure: texts in, values out. Rules: a test of pytest, or of ctest's with a label of
SECOND_RUN_LABELS, that failed is run once more, alone. It passed then: it is flaky, which is said
and is no failure, up to FLAKY_MAX of them. What can never be a slow moment is a failure at once: a
sanitizer's report, a broken invariant, a crash, and every test of another kind (lint, simulator,
property, model, fuzz), and pytest's tests with the marker `property`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

FLAKY_MAX = 3
SECOND_RUNS_MAX = 10
SECOND_RUN_LABELS = frozenset({"e2e", "actors"})
SHARES_MIN = {"core": 48, "doors": 12, "groups": 7, "sweeps": 8}
BUDGET_MIN = sum(SHARES_MIN.values())
WORDS_MAX = 4000  # characters of what one test said

_FATAL = (
    (r"(ERROR|SUMMARY|WARNING): \w*Sanitizer", "a sanitizer's report"),
    (r": runtime error: ", "a sanitizer's report"),
    (r"\binvariant broken: ", "a broken invariant"),
    (r"\bcore dumped\b|terminate called |\bworker 'gw\d+' crashed while running ", "a crash"),
)
_CRASHED = re.compile(
    "SEGFAULT|abort|Exception|ILLEGAL|NUMERICAL|Not Run|OTHER_FAULT", re.IGNORECASE
)
_FAILED_CODE = {
    "pytest": 1,
    "ctest": 8,
}  # how these end when tests have failed, and nothing else is wrong


@dataclass(frozen=True)
class Failure:
    """A test that failed, and what it said. `fatal`: why it gets no second run; "" where it may."""

    suite: str
    test: str
    words: str
    fatal: str = ""


@dataclass(frozen=True)
class Suite:
    """A call of a test program within a part: how it ended and which tests failed."""

    part: str
    name: str
    status: int
    failures: Sequence[Failure] = ()

    def unexplained(self) -> str:
        """Return the error beside the tests that failed; "" if there is none."""
        if self.status == 0 and not self.failures:
            return ""
        if self.status == _FAILED_CODE.get(tool_of(self.name)) and self.failures:
            return ""
        return (
            f"{self.part}: {self.name} ended with {self.status}, and "
            f"{len(self.failures) or 'none'} of its tests failed"
        )


@dataclass(frozen=True)
class Verdict:
    """`failed`: why the run failed, with the words; `flaky`: failed once and passed alone."""

    failed: list[tuple[str, str]] = field(default_factory=list)
    flaky: list[Failure] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.failed


def tool_of(suite: str) -> str:
    """`ctest` of ctest-asan."""
    return suite.partition("-")[0]


def preset_of(suite: str) -> str:
    """`asan` of ctest-asan; a part of it is ctest-dev.models."""
    return suite.partition("-")[2].partition(".")[0]


def python_of(suite: str) -> str:
    """The interpreter of a suite of pytest, as scripts/setup.sh (pytest_on) chooses it:
    pytest-dev.NAME has an environment of its own."""
    _, _, own = suite.partition(".")
    return f".venv-{own}/bin/python" if own else ".venv/bin/python"


def _cut(words: str) -> str:
    words = words.strip()
    return words if len(words) <= WORDS_MAX else "...\n" + words[-WORDS_MAX:]


def _fatal_words(words: str) -> str:
    return next((why for pattern, why in _FATAL if re.search(pattern, words)), "")


def of_pytest(suite: str, xml: str) -> list[Failure]:
    """Return the failures in pytest's report (junit_family=xunit1); a test that failed and its
    teardown too is one."""
    found: dict[str, Failure] = {}
    for case in ElementTree.fromstring(xml).iter("testcase"):
        said = [each for each in case if each.tag in ("failure", "error")]
        if not said:
            continue
        module = case.get("file", "").removesuffix(".py").replace("/", ".")
        inside = case.get("classname", "").removeprefix(module).strip(".")
        test = "::".join(
            filter(None, [case.get("file", ""), *inside.split("."), case.get("name", "")])
        )
        whole = "\n".join(
            filter(
                None,
                [each.text or each.get("message") for each in said]
                + [each.text for each in case if each.tag in ("system-out", "system-err")],
            )
        )
        marked = any(each.get("name") == "property" for each in case.iter("property"))
        fatal = _fatal_words(whole) or ("what it checks fails by no slow moment" if marked else "")
        before = found.get(test)
        found[test] = Failure(
            suite,
            test,
            _cut(f"{before.words}\n{whole}" if before else whole),
            fatal or (before.fatal if before else ""),
        )
    return list(found.values())


def of_ctest(
    suite: str, xml: str, printed: str, labels: Mapping[str, Iterable[str]]
) -> list[Failure]:
    """Return the failures in ctest's report, from its output (which says how a test ended) and the
    tests' labels."""
    ends = dict(
        re.findall(
            r"^\s+\d+ - (\S+) \((.*)\)\s*$", printed.rpartition("tests FAILED:")[2], re.MULTILINE
        )
    )
    found = []
    for case in ElementTree.fromstring(xml).iter("testcase"):
        if case.get("status") != "fail":
            continue
        test, end = case.get("name", ""), ends.get(case.get("name", ""), "Failed")
        words = next((each.text or "" for each in case if each.tag == "system-out"), "")
        fatal = _fatal_words(words) or ("a crash" if _CRASHED.search(end) else "")
        if not fatal and not SECOND_RUN_LABELS & set(labels.get(test, ())):
            fatal = "a test of its kind gets no second run"
        found.append(Failure(suite, test, _cut(f"{words}\n({end})"), fatal))
    return found


def second_runs(suites: Iterable[Suite]) -> list[Failure]:
    """Return the tests to run once more: all that may be, but none where they are many, which no
    slow moment explains."""
    wanted = [failure for suite in suites for failure in suite.failures if not failure.fatal]
    return wanted if len(wanted) <= SECOND_RUNS_MAX else []


def decide(
    parts: Mapping[str, int], suites: Sequence[Suite], passed_again: Mapping[tuple[str, str], bool]
) -> Verdict:
    """The verdict.

    `parts`: how each ended; `passed_again`: by (suite, test), of those that were run once more.
    """
    verdict = Verdict()
    for suite in suites:
        wrong = suite.unexplained()
        if wrong:
            verdict.failed.append((wrong, ""))
        for failure in suite.failures:
            name, again = (
                f"{failure.test} ({suite.part})",
                passed_again.get((failure.suite, failure.test)),
            )
            if failure.fatal:
                verdict.failed.append((f"{name}: {failure.fatal}", failure.words))
            elif again:
                verdict.flaky.append(failure)
            else:
                how = (
                    "failed twice"
                    if again is False
                    else (
                        "failed, and was not run once more: too many have failed, or no time is "
                        "left"
                    )
                )
                verdict.failed.append((f"{name}: {how}", failure.words))
    if len(verdict.flaky) > FLAKY_MAX:
        verdict.failed.append(
            (
                f"{len(verdict.flaky)} tests failed once and passed alone; more than {FLAKY_MAX} "
                "are a failure",
                "",
            )
        )
    for part, status in parts.items():
        if status and not any(
            suite.part == part and (suite.status or suite.failures) for suite in suites
        ):
            late = " (it ran out of time)" if status in (124, 137) else ""
            verdict.failed.append(
                (f"{part} ended with {status}{late}, and no test of it says why: its log does", "")
            )
        elif status in (124, 137):
            verdict.failed.append((f"{part} ran out of time", ""))
    return verdict


def minutes(seconds: Mapping[str, float], shares: Mapping[str, str]) -> list[str]:
    """A line of what each part took, one of each share, one of all.

    `shares`: to which each part belongs.
    """
    lines = ["minutes: " + ", ".join(f"{part} {each / 60:.1f}" for part, each in seconds.items())]
    for share, most in SHARES_MIN.items():
        took = sum(each for part, each in seconds.items() if shares.get(part) == share) / 60
        if took:
            over = (
                ": OVER ITS SHARE; what is beyond it belongs into a run of its own, its result kept"
                if took > most
                else ""
            )
            lines.append(f"{share}: {took:.1f} of its {most} minutes{over}")
    total = sum(seconds.values()) / 60
    return [
        *lines,
        f"in all: {total:.1f} of {BUDGET_MIN} "
        f"minutes{': OVER THE BUDGET' if total > BUDGET_MIN else ''}",
    ]
