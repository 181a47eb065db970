"""Samples for soak.py: the resources of a cluster's processes over time, and whether they grew."""

import collections
import ctypes
import gc
import os
import pathlib
import statistics
import sys

# Beside a tenth, in the units of what is sampled: an allocator's arenas, a connection that comes
# and goes.
SLACK = {
    "memory_mib": 12.0,
    "blocks": 20_000,
    "descriptors": 12,
    "threads": 4,
    "processes": 4,
    "segments": 24,
}


def give_back_freed_memory() -> None:
    """Has glibc map what is large by itself.

    It would soon take arrays of 16 MB out of its threads' arenas, keep up to 32 MiB at the end of
    each when they are freed, and malloc_trim leaves those ends alone: 15 to 60 MiB, more or less,
    of nothing.
    """
    m_trim_threshold, m_mmap_threshold = -1, -3  # malloc.h
    libc = ctypes.CDLL(None)
    libc.mallopt(m_mmap_threshold, 1 << 20)
    libc.mallopt(m_trim_threshold, 1 << 20)


def family(root: int) -> list[int]:
    """`root` and all that come from it."""
    children = collections.defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            children[int(stat.rsplit(")", 1)[1].split()[1])].append(int(entry))
    found = [root]
    for pid in found:
        found += children[pid]
    return found


def look_at(pid: int) -> dict[str, float]:
    status = dict(
        line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    files = []
    for each in os.listdir(f"/proc/{pid}/fd"):
        try:
            files.append(os.readlink(f"/proc/{pid}/fd/{each}"))
        except OSError:
            continue
    return {
        "memory_mib": int(status["RssAnon"].split()[0]) / 1024,
        "descriptors": len(files),
        "threads": int(status["Threads"]),
        "segments": sum("memfd:" in each for each in files),
    }


class Samples:
    """The resources of the cluster's processes over time."""

    def __init__(self, head: int, worker: int) -> None:
        self.roles = {"head": head, "worker": worker, "driver": os.getpid()}
        self.rows: list[dict[str, float]] = []

    def take(self) -> None:
        """Blocks; the load rests meanwhile."""
        gc.collect()  # else what is garbage counts, and what was freed
        ctypes.CDLL(None).malloc_trim(0)
        everybody = family(self.roles["worker"])
        row: dict[str, float] = {"cluster processes": len(everybody)}
        for role, pid in self.roles.items():
            for what, value in look_at(pid).items():
                row[f"{role} {what}"] = value
        row["driver blocks"] = sys.getallocatedblocks()
        self.rows.append(row)

    def growth(self) -> dict[str, dict]:
        sixth = max(1, len(self.rows) // 6)
        table = {}
        for key in self.rows[0]:
            early = statistics.median(row[key] for row in self.rows[sixth : 2 * sixth] or self.rows)
            late = statistics.median(row[key] for row in self.rows[-sixth:])
            slack = SLACK[key.rsplit(" ", 1)[1]]
            table[key] = {
                "early": round(early, 1),
                "late": round(late, 1),
                "most": round(max(r[key] for r in self.rows), 1),
                "grew": late > early * 1.1 + slack,
            }
        return table
