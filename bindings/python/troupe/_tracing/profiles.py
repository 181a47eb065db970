"""Profiles of processes of this host, sampled from outside with py-spy.

Run by a worker as `python -m troupe._tracing.profiles OPTIONS RANK:PID...`; writes one JSON list.
A process that is sampled is stopped for the moment of each sample and runs none of our code for it.
"""

from __future__ import annotations

import argparse
import base64
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import zlib
from typing import Any, NamedTuple

from troupe._tracing import stacks
from troupe._wire import ProfileFormat

AT_ONCE_MAX = 16
"""Processes of one node that one profile samples: each has a py-spy of its own."""
BEYOND_S = 60.0
"""How long py-spy may take besides the sampling: it reads symbols first and writes a file last."""
NATIVE_FAILS_WITHIN_S = 30.0
PY_SPY_FORMATS = {
    ProfileFormat.FLAMEGRAPH: "flamegraph",
    ProfileFormat.SPEEDSCOPE: "speedscope",
    ProfileFormat.COLLAPSED: "raw",
}
NO_SAMPLES = (
    "every thread was idle at every sample: --idle counts threads that wait, too, and "
    "--subprocesses those of processes that this one has started"
)


class Wanted(NamedTuple):
    """Options of one profile."""

    seconds: int
    rate: int
    format: str
    idle: bool = False
    native: bool = False
    subprocesses: bool = False


def record(pid: int, wanted: Wanted, *, by_worker: bool = False) -> dict[str, Any]:
    """Sample a process of this host.

    Blocks for `wanted.seconds` and for as long as py-spy takes to begin and to end, BEYOND_S at
    most. A process that ends meanwhile has a profile of its time until then. Where native frames
    cannot be read, Python's alone are sampled, with a `note` that says so.

    Args:
        pid: The process.
        wanted: What to sample, and how long.
        by_worker: This process is a child of the worker that `pid` is of.

    Returns:
        `{pid, text}`, with a `note` for people or without one; or `{pid, error}`.
    """
    program = stacks._py_spy()
    if program is None:
        return {
            "pid": pid,
            "error": "py-spy is not installed beside this Python: pip install py-spy",
        }
    began = time.monotonic()
    found = _record(program, pid, wanted, by_worker=by_worker)
    is_early = time.monotonic() - began < NATIVE_FAILS_WITHIN_S
    if not wanted.native or "error" not in found or not is_early:
        return found
    python = _record(program, pid, wanted._replace(native=False), by_worker=by_worker)
    if "error" in python:
        return found
    why = f"Python's frames only: py-spy could not sample those of C and C++ ({found['error']})"
    return {**python, "note": "; ".join(filter(None, [why, python.get("note")]))}


def _record(program: str, pid: int, wanted: Wanted, *, by_worker: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="troupe-profile-") as folder:
        path = os.path.join(folder, "profile")
        try:
            done = subprocess.run(
                _command(program, pid, wanted, path),
                capture_output=True,
                text=True,
                timeout=wanted.seconds + BEYOND_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return {
                "pid": pid,
                "error": f"py-spy did not finish within {BEYOND_S:.0f} s after the sampling",
            }
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError:
            text = ""
    if done.returncode != 0 and not text and _began_sampling(done.stdout + done.stderr):
        return {"pid": pid, "text": "", "note": NO_SAMPLES}  # a flamegraph of nothing is an error
    if done.returncode != 0:
        return {"pid": pid, "error": stacks._reason(done.stderr, pid, by_worker)}
    if not has_samples(text, wanted.format):
        return {"pid": pid, "text": text, "note": NO_SAMPLES}
    return {"pid": pid, "text": text}


def _command(program: str, pid: int, wanted: Wanted, path: str) -> list[str]:
    flags = {
        "--idle": wanted.idle,
        "--native": wanted.native,
        "--subprocesses": wanted.subprocesses,
        "--threads": True,
    }
    return [
        *(program, "record", "--pid", str(pid), "--output", path),
        *("--duration", str(wanted.seconds), "--rate", str(wanted.rate)),
        *("--format", PY_SPY_FORMATS[wanted.format]),
        *(flag for flag, is_set in flags.items() if is_set),
    ]


def _began_sampling(said: str) -> bool:
    """Return True if py-spy failed for want of anything to draw, not of a process to read."""
    return "No stack counts found" in said


def has_samples(text: str, format: str) -> bool:
    """Return True unless the profile is one of nothing."""
    if format != ProfileFormat.SPEEDSCOPE:
        return bool(text.strip())
    try:
        return any(each["samples"] for each in json.loads(text)["profiles"])
    except (ValueError, KeyError, TypeError):
        return bool(text)


def pack(found: dict[str, Any], bytes_max: int) -> dict[str, Any]:
    """Return what `record` gave with its text compressed, or an error in place of one over
    `bytes_max`."""
    if "text" not in found:
        return found
    packed = base64.b64encode(zlib.compress(found.pop("text").encode())).decode()
    if len(packed) > bytes_max:
        return {
            "pid": found["pid"],
            "error": f"the profile has {len(packed) >> 20} MiB, the limit here is "
            f"{bytes_max >> 20} MiB: ask for one --rank, fewer --seconds or a lower --rate",
        }
    return {**found, "packed": packed}


def unpack(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row that `pack` made with its `text` again."""
    if "packed" not in row:
        return row
    text = zlib.decompress(base64.b64decode(row.pop("packed"))).decode()
    return {**row, "text": text}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--milliseconds", type=int, required=True)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--format", choices=PY_SPY_FORMATS, required=True)
    parser.add_argument("--bytes-max", type=int, required=True)
    for flag in ("--idle", "--native", "--subprocesses"):
        parser.add_argument(flag, action="store_true")
    # An actor's rank is -1, which would be taken for an option.
    targets = [each for each in sys.argv[1:] if ":" in each]
    options = parser.parse_args([each for each in sys.argv[1:] if ":" not in each])
    return argparse.Namespace(**vars(options), targets=targets)


def main() -> None:
    """Samples every process named, all at once, and writes the list in the order asked."""
    options = _options()
    wanted = Wanted(
        math.ceil(options.milliseconds / 1000),
        options.rate,
        options.format,
        options.idle,
        options.native,
        options.subprocesses,
    )
    bytes_each = options.bytes_max // (min(len(options.targets), AT_ONCE_MAX) + 1)

    def sample(target: str, nth: int) -> dict[str, Any]:
        rank, _, pid = target.partition(":")
        if nth >= AT_ONCE_MAX:
            error = f"{AT_ONCE_MAX} processes of a node are sampled at once: ask for one --rank"
            return {"rank": int(rank), "pid": int(pid), "error": error}
        return {"rank": int(rank), **pack(record(int(pid), wanted, by_worker=True), bytes_each)}

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE_MAX) as pool:
        rows = list(pool.map(sample, options.targets, range(len(options.targets))))
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
