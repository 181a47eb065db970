"""Launches of this checkout against those of another one (an older commit, built), in pairs: what a
change has cost launches.

Each side has a cluster of its own, by a driver in a process of its own, warm. Of each pair the
sides take turns to begin; printed is the median over the pairs of this side's time by the other's,
and what two clusters of the same build differ by, in the same run.

    git worktree add ../before COMMIT && (cd ../before && ./test cpp NONE)
    python benchmarks/groups/launch_pairs.py --before ../before [--pairs 40] [--keep]
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent))
from report import keep, settle, summary  # noqa: E402

KINDS = {"nothing": 4, "all_reduce": 2}
"""What a launch does -> on how many ranks."""


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


def drive() -> None:
    """One side: for each line of stdin, a kind, a launch of it, and the seconds that it took on
    stdout."""
    import troupe
    from troupe.launch import distributed

    with troupe.init(num_cpus=8, log_to_driver=False):
        for line in sys.stdin:
            ranks = KINDS[line.strip()]
            job = distributed(processes=ranks, remote=True)(globals()[line.strip()])
            begin = time.perf_counter()
            assert job.distributed() == [1] * ranks
            print(time.perf_counter() - begin, flush=True)


class Side:
    """A checkout's driver."""

    def __init__(self, checkout: pathlib.Path, home: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(checkout / "build/dev/python"),
            "TROUPE_BIN_DIR": str(checkout / "build/dev/bin"),
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

    def launch(self, kind: str) -> float:
        assert self._driver.stdin is not None and self._driver.stdout is not None
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
            took = sides[side].launch(kind)
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
    parser.add_argument(
        "--before", type=pathlib.Path, help="the other checkout, built in build/dev"
    )
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
    if not (before / "build/dev/bin").is_dir():
        parser.error(f"--before {before}: nothing is built in build/dev there")
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
            sides = [Side(here, one), Side(other, two)]
            for kind, ranks in KINDS.items():
                rows[f"{name}: {ranks} ranks, {kind}"] = compare(kind, sides, options.pairs)
            for side in sides:
                side.end()
    keep("launch_pairs", rows, options.keep)


if __name__ == "__main__":
    main()
