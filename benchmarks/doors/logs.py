"""Costs of ranks' output on its way to the program that shows it: whether all of it arrives, and
who pays for a slow reader.

Four ranks write lines of 100 bytes, each so many a second, for so long. `file`: the caller's stdout
is a file, in which every line of each rank must be there once, in order; the head's processor time
is that of the same launch without a line, and of no launch. `slow reader`: the caller's stdout is a
pipe that is read at 100 lines a second; the ranks must be no slower than before, no process may
grow, what is not shown must be counted, and the files of the workers must have every line.

    python benchmarks/doors/logs.py [--rate 10000] [--seconds 10] [--keep]
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from contender import start_head, troupe_command  # noqa: E402
from footprint import cluster_processes, processor_s  # noqa: E402
from report import await_rest, keep  # noqa: E402

RANKS, LINE_BYTES = 4, 100
READ_A_SECOND = 100
CALLER = """
import json, os, resource, sys
from troupe.launch import distributed
rate, seconds = int(sys.argv[1]), float(sys.argv[2])

@distributed(processes=4, cpus_per_rank=1, remote=True)
def write():
    import os, sys, time
    rank, number, late = os.environ["RANK"], 0, 0.0
    begin = time.perf_counter()
    while number < rate * seconds:
        due = min(int((time.perf_counter() - begin) * rate) + 1, int(rate * seconds))
        sys.stdout.write("".join(f"{rank} {each} ".ljust(99, "x") + "\\n" for each in range(number, due)))
        number = due
        time.sleep(0.01)  # lint-ok: their pace
    sys.stdout.flush()
    took = time.perf_counter() - begin
    time.sleep(max(0.0, seconds - took) if not rate else 0.0)  # lint-ok: as long as the others
    return number, took

def anon_mib():
    return int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0]) / 1024

before = anon_mib()
handle = write.submit()
print(json.dumps({"launch": handle.id}), file=sys.stderr, flush=True)
handle.watch(quiet=True)
print(json.dumps({"ranks": handle.result(), "before_mib": before, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                  "after_mib": anon_mib(), "processor_s": sum(os.times()[:2])}), file=sys.stderr, flush=True)
"""
SILENT = CALLER.replace("while number < rate * seconds:", "while False:").replace(
    " if not rate else 0.0", ""
)
LINE = re.compile(r"\[(\d)\] (\d) (\d+) x+$")
GAP = re.compile(r"\[(\d)\] \.\.\. ([\d,]+) lines? \(")


def anon_mib(pid: int) -> float:
    return round(
        int(pathlib.Path(f"/proc/{pid}/status").read_text().split("RssAnon:")[1].split()[0]) / 1024,
        1,
    )


class Shown:
    """The output a caller showed, line by line."""

    def __init__(self) -> None:
        self.numbers: dict[str, list[int]] = collections.defaultdict(list)
        self.gaps: collections.Counter[str] = collections.Counter()
        self.others: list[str] = []

    def take(self, line: str) -> None:
        if found := LINE.match(line):
            self.numbers[found[1]].append(int(found[3]))
            if found[1] != found[2]:
                self.others.append(line)
        elif found := GAP.match(line):
            self.gaps[found[1]] += int(found[2].replace(",", ""))
        else:
            self.others.append(line)

    def verdict(self, written: int) -> dict:
        """Per-rank faults, summed: lines that are neither there nor counted, that are there twice,
        that are out of order."""
        rows = [self.numbers[str(rank)] for rank in range(RANKS)]
        return {
            "lines": sum(map(len, rows)),
            "counted_as_left_out": sum(self.gaps.values()),
            "missing": sum(
                written - len(set(row)) - self.gaps[str(rank)] for rank, row in enumerate(rows)
            ),
            "doubled": sum(len(row) - len(set(row)) for row in rows),
            "out_of_order": sum(a > b for row in rows for a, b in itertools.pairwise(row)),
            "other_lines": len(self.others),
        }


class Cluster:
    """A head and a worker of their own."""

    def __init__(self, home: str) -> None:
        self.address, _ = start_head(home, "--num-cpus", "8")
        programs = cluster_processes(home)
        self.head = next(pid for pid, name in programs.items() if name == "troupe-head")
        self.worker = next(pid for pid, name in programs.items() if name == "troupe-worker")

    def look(self) -> dict[str, float]:
        return {
            "head_s": processor_s(self.head),
            "worker_s": processor_s(self.worker),
            "at": time.perf_counter(),
            "head_mib": anon_mib(self.head),
            "worker_mib": anon_mib(self.worker),
        }

    def costs(self, before: dict[str, float]) -> dict[str, float]:
        now = self.look()
        took = now["at"] - before["at"]
        return {
            **{
                f"{each}_percent_of_a_cpu": round(
                    (now[f"{each}_s"] - before[f"{each}_s"]) / took * 100, 2
                )
                for each in ("head", "worker")
            },
            **{
                f"{each}_grew_mib": round(now[f"{each}_mib"] - before[f"{each}_mib"], 1)
                for each in ("head", "worker")
            },
        }


def caller(
    code: str, options: argparse.Namespace, address: str, stdout: object
) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(options.rate), str(options.seconds)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TROUPE_ADDRESS": address},
    )


def told(process: subprocess.Popen) -> dict:
    """The next of the documents that a caller writes to its stderr."""
    for line in process.stderr:
        if line.startswith("{"):
            return dict(json.loads(line))
    raise SystemExit(f"the caller ended with {process.wait()}")


def rows_of(document: dict, options: argparse.Namespace) -> dict:
    took = [seconds for _, seconds in document["ranks"]]
    return {
        "slowest_rank_s": round(max(took), 2),
        "asked_s": options.seconds,
        "caller_peak_mib": round(document["peak_mib"], 1),
        "caller_grew_mib": round(document["after_mib"] - document["before_mib"], 1),
        "caller_processor_s": round(document["processor_s"], 2),
    }


def to_a_file(cluster: Cluster, options: argparse.Namespace, code: str, written: int) -> dict:
    with tempfile.TemporaryFile("w+") as file:
        before = cluster.look()
        process = caller(code, options, cluster.address, file)
        told(process)
        document = told(process)
        process.wait()
        costs = cluster.costs(before)
        file.seek(0)
        shown = Shown()
        for line in file:
            shown.take(line.rstrip("\n"))
    return {**shown.verdict(written), **rows_of(document, options), **costs}


def slowly(cluster: Cluster, home: str, options: argparse.Namespace, written: int) -> dict:
    before = cluster.look()
    process = caller(CALLER, options, cluster.address, subprocess.PIPE)
    launch = told(process)["launch"]
    shown, over, most = Shown(), threading.Event(), {"head_grew_mib": 0.0, "worker_grew_mib": 0.0}

    def read() -> None:
        while line := process.stdout.readline():
            shown.take(line.rstrip("\n"))
            over.wait(1 / READ_A_SECOND)

    reader = threading.Thread(target=read)
    reader.start()
    while process.poll() is None and not over.wait(0.5):
        now = cluster.costs(before)
        most = {each: max(value, now[each]) for each, value in most.items()}
    document = told(process)
    over.set()  # the rest in the pipe is still read
    reader.join()
    files = {"lines_in_files": 0, "files_out_of_order": 0}
    for rank in range(RANKS):
        numbers = [
            int(line.split()[1])
            for line in troupe_command(home, "logs", launch, "--rank", str(rank)).splitlines()
        ]
        files["lines_in_files"] += len(numbers)
        files["files_out_of_order"] += numbers != list(range(written))
    return {
        "read_a_second": READ_A_SECOND,
        **shown.verdict(written),
        **rows_of(document, options),
        **most,
        **files,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=10_000, help="lines a second of each rank")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/logs.json")
    options = parser.parse_args()
    written = int(options.rate * options.seconds)
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as home:
        os.environ["TROUPE_HOME"] = home
        cluster = Cluster(home)
        try:
            to_a_file(cluster, argparse.Namespace(rate=100, seconds=0.5), CALLER, 50)
            await_rest()
            before = cluster.look()
            time.sleep(options.seconds)  # lint-ok: the time that is measured
            rows = {
                "no launch": {
                    "head_percent_of_a_cpu": cluster.costs(before)["head_percent_of_a_cpu"]
                }
            }
            silent = to_a_file(cluster, options, SILENT, 0)
            rows["a launch without a line"] = {
                "head_percent_of_a_cpu": silent["head_percent_of_a_cpu"]
            }
            rows["file"] = to_a_file(cluster, options, CALLER, written)
            rows["slow reader"] = slowly(cluster, home, options, written)
        finally:
            troupe_command(home, "stop", "--all")
    keep("logs", rows, options.keep)


if __name__ == "__main__":
    main()
