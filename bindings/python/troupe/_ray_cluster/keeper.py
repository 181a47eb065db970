"""`python -m troupe._ray_cluster.keeper`: the parent of a cluster's processes on one node, and what
ends them, whoever ended before.

`ray start` leaves its processes behind, and they become children of this one (a subreaper): it sees
each end as it happens, with its code or signal. It serves the actor that started it (`node`): the
first line of its stdin says what to run, as JSON; its stdout has a line of JSON for the start and
for each end. When its stdin ends, because the actor says so or is gone, it kills all that is below
it, removes the folder and leaves: a worker that is killed takes its actors along, but not what
these have started.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from typing import Any

from troupe._process import os_calls


def main() -> None:
    """Runs the start, tells of ends, and ends all when stdin does."""
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # signals meant for the processes that end this one by its stdin
        signal.signal(number, lambda *_: None)  # a handler, which what it executes does not have
    os_calls.adopt_orphans()
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_start, args=(order,), daemon=True).start()
    sys.stdin.read()
    os_calls.kill_below()
    shutil.rmtree(order["folder"], ignore_errors=True)
    os_calls.kill_children(set())
    shutil.rmtree(order["folder"], ignore_errors=True)
    os._exit(0)


def _start(order: dict[str, Any]) -> None:
    code = _run(order)
    if code and order["slow"] in _said(
        order
    ):  # once more: what was read from disk is in memory now
        os_calls.kill_children(set())
        shutil.rmtree(order["files"], ignore_errors=True)
        os.mkdir(order["files"], 0o700)
        code = _run(order)
    _say(code=code, processes={pid: _words_of(pid) for pid in os_calls.children()})
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED)
        except ChildProcessError:  # none is left
            _say(pid=0, code=0)
            return
        if found is not None:
            _say(
                pid=found.si_pid,
                code=found.si_status if found.si_code == os.CLD_EXITED else -found.si_status,
            )


def _run(order: dict[str, Any]) -> int:
    with open(order["output"], "wb") as out:
        now = {
            **os.environ,
            **({"PYTHONPATH": order["python_path"]} if order["python_path"] else {}),
        }
        return subprocess.run(
            order["line"],
            env=now,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode


def _said(order: dict[str, Any]) -> str:
    with open(order["output"], encoding="utf-8", errors="replace") as file:
        return file.read()


def _say(**fields: Any) -> None:
    try:
        print(json.dumps(fields), flush=True)
    except OSError:
        return  # the reader is gone, and stdin has ended


def _words_of(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [os.fsdecode(word) for word in file.read().split(b"\0")]
    except OSError:
        return []


if __name__ == "__main__":
    main()
