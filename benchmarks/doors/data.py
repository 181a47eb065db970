"""Reading Parquet into torch batches, and dealing rows to four readers: troupe.data against
ray.data, in one run, alternately.

Files of 10 float32 columns, snappy, in row groups of 16 MB, in the page cache. Each side is a
process with a cluster of two CPUs of its own that has read all once. Rows:

  read    an epoch of iter_torch_batches(batch_size=4096), each column of each batch summed, from the second batch on
  map     the same behind map_batches of a function that doubles all columns
  split   an epoch of four processes that go through streaming_split(4, equal=True) like that, from the call to the last one's end

Of each side: seconds, the processors' seconds of those of its processes that are there at the end
(which others on the machine change less), and by how much the memory of all its processes (their
proportional shares) grew at most beyond what it was after imports, for which a few numbers go
through both sides' processes first. `--large` reads that many MiB too, for memory alone.

    python benchmarks/doors/data.py --ray PYTHON [--mib 1024] [--large 4096] [--rounds 5] [--rows read,map,split] [--folder DIR] [--keep]

PYTHON has ray[data] and torch.
"""

import argparse
import contextlib
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from contender import Contender  # noqa: E402
from report import await_rest, keep, settle  # noqa: E402

MARK = "TROUPE_BENCH_MARK"
GROUP_ROWS = (16 << 20) // 40
GROUPS_OF_A_FILE = 16
ROWS = ("read", "map", "split")

SCRIPT = """
import json, os, sys, time

told = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
side, folder, large = sys.argv[1:]
import torch
if side == "ray":
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # a busy machine takes longer than Ray waits
    import logging, ray, ray.data as data
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    data.DataContext.get_current().enable_progress_bars = False
    runtime = ray
else:
    import troupe as runtime
    from troupe import data
    runtime.init(num_cpus=2)


def epoch(source):
    batches = iter(source.iter_torch_batches(batch_size=4096))
    rows, begin = len(next(batches)["c0"]), time.perf_counter()
    for batch in batches:
        for column in batch.values():
            column.sum()
        rows += len(batch["c0"])
    return rows, time.perf_counter() - begin


@runtime.remote(num_cpus=0)
class Reader:
    def take(self, shard):
        self.shard = shard

    def epoch(self):
        return epoch(self.shard)[0]


def double(batch):
    return {name: column * 2 for name, column in batch.items()}


readers = []


def go(what):
    if what == "imports":  # a little through tasks that run side by side: all processes are there afterwards, with what they import
        for _ in data.range(4096, override_num_blocks=16).map_batches(double).iter_torch_batches():
            pass
        return 0, 0.0
    ds = data.read_parquet(large if what.startswith("large") else folder)
    if what == "split":
        if not readers:
            readers.extend(Reader.remote() for _ in range(4))
            runtime.get([each.take.remote(shard) for each, shard in zip(readers, ds.streaming_split(4, equal=True))])
            runtime.get([each.epoch.remote() for each in readers])
        begin = time.perf_counter()
        return sum(runtime.get([each.epoch.remote() for each in readers])), time.perf_counter() - begin
    return epoch(ds.map_batches(double) if what.endswith("map") else ds)


print("ready", file=told, flush=True)
for line in sys.stdin:
    rows, seconds = go(line.strip())
    print(seconds, file=told, flush=True)
"""


def make(folder: pathlib.Path, mib: int) -> str:
    """Files of so many MiB, if they are not there yet."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = folder / f"{mib}"
    groups = mib // 16
    if not folder.exists():
        folder.mkdir(parents=True)
        random = np.random.default_rng(0)
        for first in range(0, groups, GROUPS_OF_A_FILE):
            with contextlib.ExitStack() as stack:
                writer = None
                for _ in range(first, min(groups, first + GROUPS_OF_A_FILE)):
                    table = pa.table(
                        {
                            f"c{index}": random.random(GROUP_ROWS, dtype=np.float32)
                            for index in range(10)
                        }
                    )
                    writer = writer or stack.enter_context(
                        pq.ParquetWriter(
                            folder / f"{first:04}.parquet", table.schema, compression="snappy"
                        )
                    )
                    writer.write_table(table, row_group_size=GROUP_ROWS)
    for path in folder.iterdir():  # into the page cache
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass
    return str(folder)


class Side:
    """A contender, and what all of its processes use."""

    def __init__(self, name: str, python: str, *arguments: str) -> None:
        self._mark = f"{MARK}={name}-{uuid.uuid4().hex}"
        os.environ.update([self._mark.split("=")])
        self._contender = Contender(python, SCRIPT, name, *arguments)
        self._imported_mib = 0.0
        os.environ.pop(MARK)

    def _processes(self) -> list[str]:
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if self._mark.encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(
                    b"\0"
                ):
                    found.append(pid)
        return found

    def cpu_s(self) -> float:
        ticks = 0
        for pid in self._processes():
            with contextlib.suppress(OSError):
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> float:
        kib = 0
        for pid in self._processes():
            with contextlib.suppress(OSError, ValueError, IndexError):
                rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                kib += int(rollup.partition("\nPss:")[2].split()[0])
        return kib / 1024

    def round(self, what: str) -> tuple[float, float]:
        """(seconds, processors' seconds)"""
        before = self.cpu_s()
        seconds = self._contender.round(what)
        return seconds, self.cpu_s() - before

    def import_all(self) -> None:
        """Memory is counted from here."""
        self._contender.round("imports")
        self._imported_mib = self.memory_mib()

    def growth_mib(self, what: str) -> float:
        """Memory's most in a round, beyond what it was after imports."""
        most, over = [0.0], threading.Event()

        def watch() -> None:
            while not over.wait(0.1):
                most[0] = max(most[0], self.memory_mib())

        watching = threading.Thread(target=watch)
        watching.start()
        self._contender.round(what)
        over.set()
        watching.join()
        return most[0] - self._imported_mib

    def end(self) -> None:
        self._contender.end()


def of_row(what: str, sides: dict[str, Side], rounds: int) -> dict:
    """Both sides' medians, alternately."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            settle()
            one = side.round(what)
            if number:  # the first one is the way there
                taken[name].append(one)
    row: dict = {"rounds": rounds}
    for name, rows in taken.items():
        row[f"{name}_s"] = round(statistics.median(seconds for seconds, _ in rows), 3)
        row[f"{name}_cpu_s"] = round(statistics.median(cpu for _, cpu in rows), 2)
    if len(sides) == 2:
        row["times_faster"] = round(
            statistics.median(
                ray[0] / ours[0] for ours, ray in zip(taken["troupe"], taken["ray"], strict=True)
            ),
            2,
        )
        row["times_less_cpu"] = round(row["ray_cpu_s"] / max(row["troupe_cpu_s"], 0.01), 2)
    row["load"] = round(os.getloadavg()[0], 1)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--ray", metavar="PYTHON", help="an interpreter that has ray[data] and torch"
    )
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--large", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--folder", default=tempfile.gettempdir() + "/troupe-bench-data")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/data.json")
    options = parser.parse_args()
    folder = make(pathlib.Path(options.folder), options.mib)
    large = make(pathlib.Path(options.folder), options.large) if options.large else ""
    rows: dict[str, dict] = {}
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as home:
        os.environ["TROUPE_HOME"] = home
        sides = {"troupe": Side("troupe", sys.executable, folder, large)}
        try:
            if options.ray:
                sides["ray"] = Side("ray", options.ray, folder, large)
            await_rest()
            for side in sides.values():
                side.import_all()
            wanted = options.rows.split(",")
            memory = {
                f"{name}_memory_mib": round(side.growth_mib("read")) for name, side in sides.items()
            }
            if "map" in wanted:
                memory |= {
                    f"{name}_map_memory_mib": round(side.growth_mib("map"))
                    for name, side in sides.items()
                }
            rows[f"memory, {options.mib} MiB"] = memory
            if large:
                rows[f"memory, {options.large} MiB"] = {
                    "troupe_memory_mib": round(sides["troupe"].growth_mib("large")),
                    "troupe_map_memory_mib": round(sides["troupe"].growth_mib("large map")),
                }
            for (
                what
            ) in wanted:  # memory first: the split's readers are processes of their own, and stay
                rows[f"{what}, {options.mib} MiB"] = of_row(what, sides, options.rounds)
        finally:
            for side in sides.values():
                side.end()
    keep("data", rows, options.keep)


if __name__ == "__main__":
    main()
