"""Costs of a call beside time: allocations (malloc; Python's own small objects are not), system
calls and wake-ups, of the caller and of the actor.

Each row runs on a cluster of its own. Allocations are counted by a library that is loaded before
glibc, wake-ups by the kernel (voluntary context switches of all threads), system calls by `perf
stat`, where that is there and may.

    cmake --build build/release --target _native malloc_count troupe-head troupe-worker
    python benchmarks/call_profile.py [--build build/release] [--keep]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable

import report

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCH = 1000


def counts() -> dict[str, float]:
    """Return the counts of this process so far."""
    count = ctypes.CDLL(None).troupe_malloc_count
    count.restype = ctypes.c_uint64
    switches = 0
    for task in pathlib.Path("/proc/self/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        switches += next(
            int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches")
        )
    return {"mallocs": count(), "wake_ups": switches}


class SystemCalls:
    """System calls of some processes, by name."""

    def __init__(self, pids: dict[str, int]) -> None:
        perf = shutil.which("perf")
        self.running = (
            {
                name: subprocess.Popen(
                    [perf, "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", str(pid)],
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for name, pid in pids.items()
            }
            if perf
            else {}
        )

    def end(self) -> dict[str, int]:
        """How many there were; none where they could not be counted."""
        found = {}
        for name, perf in self.running.items():
            perf.send_signal(signal.SIGINT)
            first = perf.communicate()[1].split(",")[0].strip()
            if first.isdigit():
                found[name] = int(first)
        return found


def row(what: str, calls: int) -> dict[str, float]:
    """Counts per call, of the caller and of the actor."""
    import cloudpickle

    import troupe

    cloudpickle.register_pickle_by_value(sys.modules[__name__])

    class Actor:
        def f(self) -> bytes:
            return b"ok"

        def about(self) -> tuple[int, dict[str, float]]:
            return os.getpid(), counts()

    class AsyncActor:
        async def f(self) -> bytes:
            return b"ok"

        async def about(self) -> tuple[int, dict[str, float]]:
            return os.getpid(), counts()

    troupe.init(num_cpus=2)
    options = {"max_concurrency": 16} if what.startswith("threaded") else {}
    actor = troupe.remote(num_cpus=0, **options)(
        AsyncActor if what.startswith("async") else Actor
    ).remote()
    shapes: dict[str, tuple[Callable[[], object], int]] = {
        "one after the other": (lambda: troupe.get(actor.f.remote()), 1),
        "a thousand at once": (lambda: troupe.get([actor.f.remote() for _ in range(BATCH)]), BATCH),
    }
    turn, size = shapes[what.split(", ")[1]]
    for _ in range(max(20, 2000 // size)):
        turn()
    pid = troupe.get(actor.about.remote())[0]
    watched = SystemCalls({"caller": os.getpid(), "actor": pid})
    for _ in range(max(20, 2000 // size)):  # perf has begun by then
        turn()
    before = {"caller": counts(), "actor": troupe.get(actor.about.remote())[1]}
    for _ in range(calls // size):
        turn()
    after = {"caller": counts(), "actor": troupe.get(actor.about.remote())[1]}
    found = {
        f"{who}_{each}": round((after[who][each] - before[who][each]) / calls, 3)
        for who in ("caller", "actor")
        for each in ("mallocs", "wake_ups")
    }
    more = calls + max(20, 2000 // size) * size
    found.update(
        {f"{who}_system_calls": round(number / more, 3) for who, number in watched.end().items()}
    )
    troupe.shutdown()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--row", help=argparse.SUPPRESS)  # run one row, in this process
    options = parser.parse_args()
    if options.row:
        print(json.dumps(row(options.row, options.calls)), flush=True)
        return
    library = pathlib.Path(options.build) / "bin" / "libmalloc_count.so"
    if not library.exists():
        sys.exit(f"{library} is missing: build the target malloc_count first")
    rows = {}
    for what in (
        f"{kind}actor, {shape}"
        for kind in ("", "threaded ", "async ")
        for shape in ("one after the other", "a thousand at once")
    ):
        done = subprocess.run(
            [sys.executable, __file__, "--row", what, "--calls", str(options.calls)],
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "LD_PRELOAD": str(library)},
        )
        rows[what] = json.loads(done.stdout.splitlines()[-1])
    report.keep("call_profile", rows, options.keep)


if __name__ == "__main__":
    main()
