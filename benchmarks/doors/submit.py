"""`troupe submit train.py` against `torchrun --standalone` of the same file, in one run,
alternately.

Two ranks form a Gloo group and do one all-reduce (jobs/torchrun_job.py). Timed is the whole
command, from its start to its exit: `warm` on a cluster that runs, `cold` with none, so that one is
started for the launch, and ends with it; `fresh` on the running one, with an interpreter for each
rank.

`--first-line`: another figure, of a command job (`troupe.azure`) of 2 processes, from its
submission to its first line (first_line.py).

    python benchmarks/doors/submit.py [--rounds 7] [--first-line] [--keep]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from contender import troupe_command  # noqa: E402
from report import await_rest, keep, settle, summary  # noqa: E402

JOB = str(pathlib.Path(__file__).resolve().parent.parent / "jobs/torchrun_job.py")
SUBMIT = ["-m", "troupe", "submit", "--quiet", "--nproc-per-node", "2"]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def timed(line: list[str], home: str) -> float:
    """Seconds from the start of `python LINE` to its end."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *line, JOB, "all_reduce"],
        capture_output=True,
        text=True,
        env={**os.environ, "TROUPE_HOME": home},
    )
    took = time.perf_counter() - begin
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(line)} ended with exit code {done.returncode}\n{done.stderr[-3000:]}"
        )
    return took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--first-line",
        action="store_true",
        help="a command job, from its submission to its first line",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="write benchmarks/results/submit.json, with --first-line first_line.json",
    )
    options = parser.parse_args()
    os.environ.pop("TROUPE_ADDRESS", None)
    if options.first_line:
        import first_line

        keep("first_line", first_line.rows(options.rounds), options.keep)
        return
    with (
        tempfile.TemporaryDirectory(prefix="troupe-bench-") as warm,
        tempfile.TemporaryDirectory(prefix="troupe-bench-") as cold,
    ):
        contenders = {
            "warm": (SUBMIT, warm),
            "fresh": ([*SUBMIT, "--fresh"], warm),
            "cold": (SUBMIT, cold),
            "torchrun": (TORCHRUN, cold),
        }
        troupe_command(warm, "start", "--head", "--port", "0", "--num-cpus", "4")
        times: dict[str, list[float]] = {name: [] for name in contenders}
        try:
            timed(*contenders["warm"])
            await_rest()
            for _ in range(options.rounds):
                for name, (line, home) in contenders.items():
                    settle()
                    times[name].append(timed(line, home))
        finally:
            troupe_command(warm, "stop", "--all")
    rows = {name: summary(taken) for name, taken in times.items()}
    for name in ("warm", "fresh", "cold"):
        rows[name]["times_faster_than_torchrun"] = round(
            rows["torchrun"]["median_ms"] / rows[name]["median_ms"], 1
        )
    keep("submit", rows, options.keep)


if __name__ == "__main__":
    main()
