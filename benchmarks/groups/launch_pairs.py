"""Launches, calls, tasks and command jobs of this checkout against those of another one (an older
commit, built), in pairs: what a change has cost them.

Each side has a cluster of its own, by a driver in a process of its own, warm. Of each pair the
sides take turns to begin; printed is the median over the pairs of this side's time by the other's,
and what two clusters of the same build differ by, in the same run.

    git worktree add ../before COMMIT && (cd ../before && ./test cpp NONE)
    python benchmarks/groups/launch_pairs.py --before ../before [--pairs 40] [--build release]
        [--only KIND ...] [--keep]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent))
from report import keep, settle, summary  # noqa: E402

CALLS = 2_000
TASKS = 1_000


def nothing() -> int:
    return 1


def all_reduce() -> int:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    value = torch.ones(1)
    dist.all_reduce(value)
    dist.destroy_process_group()
    return 1


class Answers:
    """An actor whose calls do nothing."""

    def answer(self) -> int:
        return 1


def launch(function: Callable[[], int], ranks: int) -> None:
    from troupe.launch import distributed

    job = distributed(processes=ranks, remote=True)(function)
    assert job.distributed() == [1] * ranks


@functools.cache
def actor() -> Any:
    import troupe

    return troupe.remote(Answers).remote()


@functools.cache
def task() -> Any:
    import troupe

    return troupe.remote(nothing)


def calls_after_each_other() -> None:
    import troupe

    for _ in range(CALLS):
        troupe.get(actor().answer.remote())


def calls_at_once() -> None:
    import troupe

    troupe.get([actor().answer.remote() for _ in range(10 * CALLS)])


def tasks_after_each_other() -> None:
    import troupe

    for _ in range(TASKS):
        troupe.get(task().remote())


def tasks_at_once() -> None:
    import troupe

    troupe.get([task().remote() for _ in range(10 * TASKS)])


def first_line() -> Any:
    """A command job of one node and two processes, to the first line that it prints; its handle."""
    from troupe.azure import MLClient, command

    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(
            code=os.environ["TROUPE_BENCH_CODE"],
            command="echo first",
            distribution={"type": "PyTorch", "process_count_per_instance": 2},
        )
    )
    handle = jobs.handle(jobs.info(job.name))
    assert next(handle.logs(follow=True)).endswith("first")
    return handle


KINDS: dict[str, Callable[[], Any]] = {
    "launch of 4 ranks, nothing": lambda: launch(nothing, 4),
    "launch of 2 ranks, all_reduce": lambda: launch(all_reduce, 2),
    f"{CALLS} calls after each other": calls_after_each_other,
    f"{10 * CALLS} calls at once": calls_at_once,
    f"{TASKS} tasks after each other": tasks_after_each_other,
    f"{10 * TASKS} tasks at once": tasks_at_once,
    "first line of a command job": first_line,
}


def drive() -> None:
    """Do what each line of stdin names, a kind, and write the seconds that took to stdout: one side
    of the pairs."""
    import troupe

    with tempfile.TemporaryDirectory() as code, troupe.init(num_cpus=8, log_to_driver=False):
        os.environ |= {"TROUPE_BENCH_CODE": code, "TROUPE_QUIET": "1"}
        for number in range(20):
            pathlib.Path(code, f"file{number}.py").write_text(f"x = {number}\n" * 100)
        for line in sys.stdin:
            begin = time.perf_counter()
            handle = KINDS[line.strip()]()
            took = time.perf_counter() - begin
            if handle is not None:
                handle.result()
            print(took, flush=True)


class Side:
    """The driver of a build."""

    def __init__(self, build: pathlib.Path, home: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(build / "python"),
            "TROUPE_BIN_DIR": str(build / "bin"),
            "TROUPE_HOME": home,
        }
        self._said = pathlib.Path(home, "driver.log")
        self._driver = subprocess.Popen(
            [sys.executable, str(HERE), "--drive"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said.open("w"),
            text=True,
            env=environment,
        )

    def time(self, kind: str) -> float:
        assert self._driver.stdin is not None and self._driver.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # the process has ended, and its log says why
            print(kind, file=self._driver.stdin, flush=True)
        line = self._driver.stdout.readline()
        if not line:
            raise SystemExit(self._said.read_text())
        return float(line)

    def end(self) -> None:
        self._driver.communicate()


def compare(kind: str, sides: list[Side], pairs: int) -> dict:
    times: list[list[float]] = [[], []]
    for pair in range(pairs + 2):
        for side in (0, 1) if pair % 2 else (1, 0):
            settle(0.25)
            took = sides[side].time(kind)
            if pair >= 2:  # the first ones warm both sides
                times[side].append(took)
    ratios = [here / before for here, before in zip(*times)]
    return {
        "here": summary(times[0]),
        "before": summary(times[1]),
        "median_of_paired_ratios": round(statistics.median(ratios), 3),
        "middle_half_of_ratios": [
            round(each, 3) for each in statistics.quantiles(ratios, n=4)[::2]
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--before", type=pathlib.Path, help="the other checkout, built as this one")
    parser.add_argument("--build", default="dev", help="the preset that both were built by")
    parser.add_argument("--only", nargs="*", default=[], help="words in the names of kinds")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument(
        "--keep", action="store_true", help="write benchmarks/results/launch_pairs.json"
    )
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        return drive()
    here = HERE.parent.parent.parent
    before = (options.before or here).resolve()
    if not (before / "build" / options.build / "bin").is_dir():
        parser.error(f"--before {before}: nothing is built in build/{options.build} there")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=before,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    rows: dict = {"before": commit}
    for name, other in (("this build and the one before", before), ("this build and itself", here)):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            sides = [
                Side(checkout / "build" / options.build, home)
                for checkout, home in ((here, one), (other, two))
            ]
            for kind in KINDS:
                if not options.only or any(word in kind for word in options.only):
                    row = compare(kind, sides, options.pairs)
                    rows[f"{name}: {kind}"] = row
                    print(f"{name}: {kind}: {row['median_of_paired_ratios']}", flush=True)
            for side in sides:
                side.end()
    keep("launch_pairs", rows, options.keep)


if __name__ == "__main__":
    main()
