"""Ends a run of .ci/run: second runs of what failed, the verdict, what failing tests said, the
minutes.

    ci_verdict.py FOLDER SECONDS_LEFT      exit code 0 where the run is good

FOLDER has `parts`, a line `NAME SHARE SECONDS STATUS` for each part, and a folder for each with
what its suites left: NAME.status, NAME.out and, of tests, NAME.xml (scripts/setup.sh: suite).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import builds
import verdict as rules

LINES_MAX = 130
SECOND_RUN_S = 600


def labels_of(preset: str) -> dict[str, list[str]]:
    """The labels of a preset's tests, by name."""
    shown = subprocess.run(
        ["ctest", "--preset", preset, "--show-only=json-v1"],
        capture_output=True,
        text=True,
        check=False,
    )
    if shown.returncode:
        return {}
    found = {}
    for test in json.loads(shown.stdout[shown.stdout.index("{") :])["tests"]:
        found[test["name"]] = next(
            (each["value"] for each in test.get("properties", ()) if each["name"] == "LABELS"), []
        )
    return found


def read_suite(part: str, status: Path) -> rules.Suite:
    """A suite from its files; a report that is damaged is as none."""
    name = status.stem
    xml, printed = status.with_suffix(".xml"), status.with_suffix(".out")
    failures: list[rules.Failure] = []
    try:
        if rules.tool_of(name) == "pytest":
            failures = rules.of_pytest(name, xml.read_text())
        elif rules.tool_of(name) == "ctest":
            said = printed.read_text(errors="replace") if printed.exists() else ""
            failures = rules.of_ctest(name, xml.read_text(), said, {})
            if failures:
                failures = rules.of_ctest(
                    name, xml.read_text(), said, labels_of(rules.preset_of(name))
                )
    except (OSError, rules.ElementTree.ParseError) as error:
        print(f"{part}: the report of {name} cannot be read: {error}")
    return rules.Suite(part, name, int(status.read_text()), failures)


def run_again(failure: rules.Failure, log: Path, seconds: float) -> bool:
    """Runs one test alone; whether it passed."""
    preset = rules.preset_of(failure.suite) or "dev"
    command = [rules.python_of(failure.suite), "-m", "pytest", failure.test]
    if rules.tool_of(failure.suite) == "ctest":
        command = [
            "ctest",
            "--preset",
            preset,
            "--no-tests=error",
            "-R",
            f"^{re.escape(failure.test)}$",
        ]
    print(f"once more, alone: {failure.test}", flush=True)
    with log.open("ab") as file:
        try:
            return (
                subprocess.run(
                    command,
                    env=builds.environment(preset),
                    stdout=file,
                    stderr=file,
                    timeout=seconds,
                    check=False,
                ).returncode
                == 0
            )
        except subprocess.TimeoutExpired:
            return False


def main() -> int:
    folder, left_s = Path(sys.argv[1]), float(sys.argv[2])
    began = time.monotonic()
    lines = [line.split() for line in (folder / "parts").read_text().splitlines()]
    suites = [
        read_suite(part, status)
        for part, *_ in lines
        for status in sorted((folder / part).glob("*.status"))
    ]
    passed: dict[tuple[str, str], bool] = {}
    for failure in rules.second_runs(suites):
        left = left_s - (time.monotonic() - began)
        if left > 0:
            passed[failure.suite, failure.test] = run_again(
                failure, folder / "again.log", min(left, SECOND_RUN_S)
            )
    found = rules.decide({part: int(status) for part, _, _, status in lines}, suites, passed)
    for failure in found.flaky:
        print(f"\nflaky: {failure.test} failed once and passed alone; it said:\n{failure.words}")
    room = LINES_MAX // max(1, len(found.failed))
    for why, words in found.failed:
        said = words.splitlines()
        print("\n".join([f"\nFAILED: {why}", *said[-max(room, 8) :]]))
    for part, _, _, status in lines:  # a build, a fuzz target: what there is of it
        if status != "0" and not any(suite.part == part and suite.failures for suite in suites):
            print(
                f"\n{part}, the end of its log:",
                *(folder / f"{part}.log").read_text(errors="replace").splitlines()[-40:],
                sep="\n",
            )
    seconds = {part: float(each) for part, _, each, _ in lines} | {
        "second runs": time.monotonic() - began
    }
    print(
        "",
        *rules.minutes(
            seconds, {part: share for part, share, _, _ in lines} | {"second runs": "core"}
        ),
        sep="\n",
    )
    # Last of all the names: whoever is shown only the end of this has them.
    print(
        "",
        *(f"flaky: {failure.test}" for failure in found.flaky),
        *(f"FAILED: {why}" for why, _ in found.failed),
        sep="\n",
    )
    flaky = f", {len(found.flaky)} flaky" if found.flaky else ""
    print(f"continuous integration: {'passed' if found.ok else 'FAILED'}{flaky}")
    return 0 if found.ok else 1


if __name__ == "__main__":
    sys.exit(main())
