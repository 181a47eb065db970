"""Tables and result files of the benchmarks: median and best, ratios, and where they were taken."""

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable


def _processor_ticks() -> tuple[int, int, int]:
    """Return the ticks of all processors since the machine's start: in all, idle, and taken by
    other machines of its host."""
    ticks = [int(each) for each in open("/proc/stat").readline().split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4], ticks[7]


def _ticks_since(before: tuple[int, int, int]) -> tuple[int, int, int]:
    ticks, idle, stolen = (after - then for after, then in zip(_processor_ticks(), before))
    return ticks, idle, stolen


_AT_FIRST = _processor_ticks()
RESULTS = pathlib.Path(__file__).resolve().parent / "results"


def machine() -> dict:
    """Return the facts about the machine without which a figure cannot be read."""
    model = next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "?"
    )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=RESULTS.parent
    ).stdout.strip()
    ticks, _, stolen = _ticks_since(_AT_FIRST)
    return {
        "cpus": os.cpu_count(),
        "cpu": model,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit,
        "load": os.getloadavg()[0],
        "stolen_percent": round(100 * stolen / max(1, ticks), 1),
        "date": time.strftime("%Y-%m-%d"),
    }


def summary(seconds: list[float]) -> dict:
    return {
        "median_ms": round(statistics.median(seconds) * 1e3, 2),
        "best_ms": round(min(seconds) * 1e3, 2),
        "worst_ms": round(max(seconds) * 1e3, 2),
        "rounds": len(seconds),
    }


def settle(seconds: float = 0.5) -> None:
    """Leaves the machine alone, so that what one contender leaves behind is not the next one's
    cost."""
    time.sleep(seconds)  # lint-ok: a pause between measurements


REST_S, REST_MOST_S, REST_IDLE = 0.5, 30.0, 0.85
WARM_UP_S = 1.0


def await_rest() -> None:
    """Waits until the machine has done next to nothing for half a second, for 30 s at most (then it
    says so): what a cluster goes on with behind its start, imports above all, is part of no call,
    whoever made the cluster."""
    begin = time.perf_counter()
    idle = 0.0
    while time.perf_counter() - begin < REST_MOST_S:
        before = _processor_ticks()
        time.sleep(REST_S)  # lint-ok: the length of a look
        ticks, rested, _ = _ticks_since(before)
        idle = rested / max(1, ticks)
        if idle >= REST_IDLE:
            return
    print(
        f"no rest within {REST_MOST_S:g} s: processors idle {idle:.0%} of the last {REST_S:g} s",
        file=sys.stderr,
        flush=True,
    )


def rate(turn: Callable[[], None], operations: int, seconds: float) -> float:
    """Operations a second in the steady state, over at least `seconds`: after one turn, a machine
    that is otherwise at rest, and WARM_UP_S of turns that are not counted (as in Ray's own
    `timeit`)."""
    turn()
    await_rest()
    _turns_per_s(turn, WARM_UP_S)
    return operations * _turns_per_s(turn, seconds)


def _turns_per_s(turn: Callable[[], None], seconds: float) -> float:
    begin, turns = time.perf_counter(), 0
    while (passed := time.perf_counter() - begin) < seconds:
        turn()
        turns += 1
    return turns / passed


def keep(name: str, rows: dict, write: bool, part: bool = False) -> None:
    """Prints the rows as JSON lines; with `write`, replaces benchmarks/results/NAME.json.

    With `part` as well, those rows alone take the place of the ones there, with the floors beside
    them and where they were taken as `measured`.
    """
    document = {"benchmark": name, "machine": machine(), "rows": rows}
    for key, row in rows.items():
        print(f"{key:45s} {json.dumps(row)}")
    if not write:
        return
    path = RESULTS / f"{name}.json"
    if part and path.exists():
        document = with_rows(json.loads(path.read_text()), document)
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
    print(f"kept in benchmarks/results/{name}.json")


def with_rows(kept: dict, fresh: dict) -> dict:
    """A result file's document, with the rows of a later one, of which only some were measured."""
    floors = {key: row for key, row in fresh["rows"].items() if key.startswith("floor: ")}
    measured = {**fresh["machine"], **floors}
    rows = {
        key: {**row, "measured": measured}
        for key, row in fresh["rows"].items()
        if key not in floors
    }
    return {**kept, "rows": {**kept["rows"], **rows}}
