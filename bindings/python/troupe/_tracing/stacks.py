"""Stacks of processes of this host, read from outside with py-spy: Python's and C++'s frames in
one.

Run by a worker as `python -m troupe._tracing.stacks [--native] LABEL:PID...`; writes one JSON list.
The process that is looked at is stopped for the moment of the reading and runs none of our code for
it, so it may hang wherever it likes, with the GIL held too.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any

LIMIT_S = 60.0
AT_ONCE = 4
THREADS_MAX = 64
FRAMES_MAX = 200
NAME_CHARS_MAX = 160


def read(pid: int, *, native: bool, by_worker: bool = False) -> dict[str, Any]:
    """`{pid, threads: [{name, tid, main, active, frames: [{name, file, line}]}]}` or `{pid,
    error}`.

    Blocks for as long as py-spy takes, a minute at most. Frames come innermost first; a file that
    ends in .so is a native frame's library. Where those cannot be read, Python's alone are, with a
    `note` that says so. `by_worker`: this process is a child of the worker that `pid` is of.
    """
    program = _py_spy()
    if program is None:
        return {
            "pid": pid,
            "error": "py-spy is not installed beside this Python: pip install py-spy",
        }
    ends_at = time.monotonic() + LIMIT_S
    found = _dump(program, pid, ends_at, native=native, by_worker=by_worker)
    if not native or "error" not in found:
        return found
    python = _dump(program, pid, ends_at, native=False, by_worker=by_worker)
    if "error" in python:
        return found
    return {
        **python,
        "note": "Python's frames only: py-spy could not read those of C and C++ "
        f"({found['error']})",
    }


def _dump(
    program: str, pid: int, ends_at: float, *, native: bool, by_worker: bool
) -> dict[str, Any]:
    command = [program, "dump", "--json", "--pid", str(pid), *(["--native"] if native else [])]
    rest_s = ends_at - time.monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=max(rest_s, 0),
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return {"pid": pid, "error": f"py-spy did not finish within {LIMIT_S:.0f} s of its start"}
    if done.returncode != 0:
        return {"pid": pid, "error": _reason(done.stderr, pid, by_worker)}
    try:
        return {
            "pid": pid,
            "threads": [_thread(each, pid) for each in json.loads(done.stdout)[:THREADS_MAX]],
        }
    except (ValueError, KeyError, TypeError) as error:
        return {
            "pid": pid,
            "error": f"py-spy's output is not what it was expected to be: {error!r}",
        }


def _py_spy() -> str | None:
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    return beside if os.access(beside, os.X_OK) else shutil.which("py-spy")


def _reason(text: str, pid: int, by_worker: bool) -> str:
    """py-spy's error without its own backtrace, and what to do about the usual one."""
    lines = text.split("Stack backtrace")[0].strip().splitlines()
    said = (
        "; ".join(line.strip() for line in lines if line.strip())
        or "py-spy failed and said nothing"
    )
    if not os.path.exists(f"/proc/{pid}"):
        return f"there is no process {pid} (any more)"
    if "ermission" in said or "EPERM" in said:
        said = (
            said.partition(": Try running again")[0] + " - " + _what_to_do(_yama_scope(), by_worker)
        )
    return said


def _yama_scope() -> int:
    """kernel.yama.ptrace_scope; 0 where the kernel has no Yama."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _what_to_do(scope: int, by_worker: bool) -> str:
    """Return a sentence on who may read a process here, and how to be allowed to."""
    if scope == 0 or os.geteuid() == 0:
        return (
            "reading another process needs ptrace rights: run it as the worker's user, and in a "
            "container allow "
            "SYS_PTRACE"
        )
    setting = f"this host allows it less than usual (kernel.yama.ptrace_scope is {scope}): "
    if scope == 3:
        return setting + "nobody may read another process until it is booted with a smaller one"
    if scope == 2:
        return (
            setting
            + "only root may read another process; as root: sysctl kernel.yama.ptrace_scope=1"
        )
    if by_worker:
        return (
            setting
            + "a process names its worker as the one that may read it, and this one has taken that "
            "back "
            "with a prctl(PR_SET_PTRACER) of its own or runs as another user"
        )
    return (
        setting
        + "a process may be read by those who started it, and a rank or an actor by its worker: "
        "give the "
        "id of the launch or of the actor instead of the pid; for any other process, run this as "
        "root"
    )


def _thread(thread: dict[str, Any], pid: int) -> dict[str, Any]:
    frames = thread["frames"]
    kept = frames if len(frames) <= FRAMES_MAX else frames[: FRAMES_MAX - 1]
    rows = [
        {
            "name": _short(each["name"]),
            "file": each.get("short_filename") or each["filename"],
            "line": each["line"],
        }
        for each in kept
    ]
    if len(frames) > len(kept):
        rows.append(
            {"name": f"... {len(frames) - len(kept)} more frames ...", "file": "", "line": 0}
        )
    tid = thread.get("os_thread_id") or 0
    return {
        "name": thread.get("thread_name") or "",
        "tid": tid,
        "main": tid == pid,
        "active": bool(thread["active"]),
        "frames": rows,
    }


def _short(name: str) -> str:
    """A C++ name without its template arguments and parameters, which may be kilobytes."""
    out, depth = [], 0
    for char in name.replace("(anonymous namespace)", "anonymous"):
        if char in "<(" and name[:1] not in "<(":
            depth += 1
        elif char in ">)" and depth:
            depth -= 1
        elif not depth:
            out.append(char)
    return ("".join(out).strip() or name)[:NAME_CHARS_MAX]


def main() -> None:
    """Reads every process named and writes the list, in the order asked."""
    native = "--native" in sys.argv
    targets = [each.partition(":") for each in sys.argv[1:] if each != "--native"]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(
            lambda each: {
                "rank": int(each[0]),
                **read(int(each[2]), native=native, by_worker=True),
            },
            targets,
        )
        json.dump(list(found), sys.stdout)


if __name__ == "__main__":
    main()
