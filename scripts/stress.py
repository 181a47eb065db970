"""The program behind scripts/stress: runs tests again and again beside a busy loop on each core,
and prints a table of how they ended.

The table is pure (`Tally`): one row a test, those that failed first, then the slowest.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import builds

ROWS_MAX = 40
DEFAULT_RUNS = 20


@dataclass
class Tally:
    """How often each test passed, failed, was skipped, and how long it took."""

    seconds: dict[str, dict[int, float]] = field(default_factory=dict)  # by run
    failed: dict[str, list[int]] = field(default_factory=dict)  # in which runs
    skipped: set[str] = field(default_factory=set)

    def add(self, run: int, xml: str) -> list[str]:
        """Takes a report of pytest or ctest; the tests that failed in it."""
        failed = []
        for case in ElementTree.fromstring(xml).iter("testcase"):
            name = "::".join(filter(None, [case.get("file") or "", case.get("name") or ""]))
            if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
                self.skipped.add(name)
                continue
            took = self.seconds.setdefault(name, {})
            took[run] = took.get(run, 0.0) + float(case.get("time") or 0)
            bad = (
                case.find("failure") is not None
                or case.find("error") is not None
                or case.get("status") == "fail"
            )
            if bad and run not in self.failed.setdefault(name, []):
                self.failed[name].append(run)
                failed.append(name)
        return failed

    def table(self) -> str:
        """All tests, or of many those that failed and the slowest."""
        ran = sorted(
            self.seconds,
            key=lambda name: (-len(self.failed.get(name, ())), -max(self.seconds[name].values())),
        )
        shown = (
            ran
            if len(ran) <= ROWS_MAX
            else [
                *(name for name in ran if self.failed.get(name)),
                *(name for name in ran if not self.failed.get(name)),
            ][: max(ROWS_MAX, sum(map(bool, self.failed.values())))]
        )
        rows = [("runs", "failed", "median s", "most s", "test")]
        for name in shown:
            took, bad = self.seconds[name].values(), self.failed.get(name, [])
            rows.append(
                (
                    str(len(took)),
                    ",".join(map(str, bad)) if bad else "-",
                    f"{statistics.median(took):.1f}",
                    f"{max(took):.1f}",
                    name,
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = ["  ".join([*(row[i].rjust(widths[i]) for i in range(4)), row[4]]) for row in rows]
        good = sum(not self.failed.get(name) for name in ran)
        left = f", {len(ran) - len(shown)} more rows left out" if len(shown) < len(ran) else ""
        return "\n".join(
            [
                *lines,
                f"{good} of {len(ran)} tests passed every run; {len(self.skipped)} skipped{left}",
            ]
        )


@contextlib.contextmanager
def busy_cores() -> Iterator[None]:
    """A loop on each core that this process may use, for the time of the block."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in os.sched_getaffinity(0)
    ]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


def command_of(test: str, report: Path) -> list[str]:
    """Return the command that runs a test once: a pytest node id, file or folder, or a ctest
    name."""
    if Path(test.partition("::")[0]).exists():
        return [
            ".venv/bin/python",
            "-m",
            "pytest",
            "-o",
            "junit_family=xunit1",
            "--junit-xml",
            str(report),
            test,
        ]
    return [
        "ctest",
        "--preset",
        "dev",
        "--no-tests=error",
        "--output-junit",
        str(report),
        "-R",
        f"^{re.escape(test)}$",
    ]


def main() -> int:
    if len(sys.argv) not in (2, 3) or not (len(sys.argv) == 2 or sys.argv[2].isdigit()):
        print(
            f"usage: scripts/stress TEST [RUNS, {DEFAULT_RUNS}]\n  TEST: a pytest node id, file or "
            "folder, or the name of a ctest test",
            file=sys.stderr,
        )
        return 2
    test, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else DEFAULT_RUNS
    folder = Path("build/stress", re.sub(r"[^\w.-]+", "_", test))
    folder.mkdir(parents=True, exist_ok=True)
    tally, ended_badly = Tally(), 0
    with busy_cores():
        for run in range(1, runs + 1):
            report, log = (folder / f"{run}.xml").resolve(), folder / f"{run}.log"
            report.unlink(missing_ok=True)
            with log.open("wb") as file:
                code = subprocess.run(
                    command_of(test, report),
                    env=builds.environment(),
                    stdout=file,
                    stderr=file,
                    check=False,
                ).returncode
            failed = tally.add(run, report.read_text()) if report.exists() else []
            ended_badly += code != 0
            print(
                f"run {run}: {'passed' if code == 0 else f'ended with {code}, see {log}'}",
                *failed,
                sep="\n  ",
                flush=True,
            )
    print(tally.table())
    return 1 if ended_badly else 0


if __name__ == "__main__":
    sys.exit(main())
