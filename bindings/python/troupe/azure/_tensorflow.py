"""TF_CONFIG of a job's processes, and the end of its parameter servers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from troupe._cluster import logs, workers
from troupe.azure import _processes

Tasks = Sequence[tuple[str, int]]
"""(type, how many), in the order of their ranks."""
PS = "ps"
_CHIEF, _WORKER = "chief", "worker"
_TRAINING = (_CHIEF, _WORKER)  # types whose end ends the job
_BESIDE = ("evaluator",)  # no members of the cluster that the others form
_END_GRACE_S = 10.0
_PAST_THE_END = 1 << 62
_PATIENCE_POLLS = 5  # polls of logs.LONG_POLL_MS, once the chiefs have ended


def task_of(tasks: Tasks, rank: int) -> tuple[str, int]:
    """(type, index) of a rank. Pure.

    >>> task_of([("chief", 0), ("worker", 2), ("ps", 1)], 2)
    ('ps', 0)
    """
    for kind, count in tasks:
        if rank < count:
            return kind, rank
        rank -= count
    raise ValueError("there are fewer tasks than ranks")


def config(tasks: Tasks, addresses: Sequence[str], rank: int) -> str:
    """TF_CONFIG of a rank; `addresses`: host:port of each.

    Pure.

    >>> config([("worker", 2)], ["a:1", "b:2"], 1)
    '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}, "environment":
    "cloud"}'
    """
    cluster: dict[str, list[str]] = {}
    rest = list(addresses)
    for kind, count in tasks:
        of_kind, rest = rest[:count], rest[count:]
        if of_kind and kind not in _BESIDE:
            cluster[kind] = of_kind
    kind, index = task_of(tasks, rank)
    return json.dumps(
        {"cluster": cluster, "task": {"type": kind, "index": index}, "environment": "cloud"}
    )


def training_ranks(tasks: Tasks, serving: Sequence[str] = (PS,)) -> list[int]:
    """Return the ranks that train, for which the serving ones run. Pure."""
    return [
        rank
        for rank in range(sum(count for _, count in tasks))
        if task_of(tasks, rank)[0] in _TRAINING and task_of(tasks, rank)[0] not in serving
    ]


def waiting_ranks(tasks: Tasks, serving: Sequence[str], rank: int) -> list[int]:
    """Workers that may wait for ever once the chief has ended; of one rank alone, so that it is
    said once. Pure.

    >>> waiting_ranks([("chief", 1), ("worker", 2), ("ps", 1)], ("ps",), 3)
    [1, 2]
    """
    if task_of(tasks, rank) != (PS, 0) or _WORKER in serving or not dict(tasks).get(_CHIEF):
        return []
    return [
        each
        for each in range(sum(count for _, count in tasks))
        if task_of(tasks, each)[0] == _WORKER
    ]


def serve(
    session: Any,
    context: Any,
    training: Sequence[int],
    line: Sequence[str],
    waiting: Sequence[int] = (),
) -> int:
    """Runs the line of a task that serves, in this rank's process group, until the `training` ranks
    have ended; 0 then. Where only those of `waiting` are left for long, that is said.

    Of one that ends before, its code, negative for a signal: without it the others could not go on.
    """
    over = threading.Event()
    child = subprocess.Popen(list(line), stdin=subprocess.DEVNULL)

    def end() -> None:
        over.set()
        _end(child)

    threading.Thread(
        target=_when_all_have_ended,
        args=(session, context, training, waiting, end),
        name="troupe-ps",
        daemon=True,
    ).start()
    try:
        code = child.wait()
    except BaseException:  # raised when the process is stopped
        _end(child)
        raise
    return 0 if over.is_set() else code


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child's whole process group except this process: SIGTERM, and SIGKILL after its
    grace."""
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _processes.end(child, signal.SIGTERM, _END_GRACE_S)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _when_all_have_ended(
    session: Any,
    context: Any,
    ranks: Sequence[int],
    waiting: Sequence[int],
    action: Callable[[], None],
) -> None:
    """Run `action` once the workers report these processes as ended: then their output is
    complete."""
    infos = session.request("GetLaunch", {"launch": context.launch})[1]["info"]["rank_infos"]
    polls = 0
    for each in sorted(infos, key=lambda info: info["rank"] in waiting):  # the chiefs first
        if each["rank"] not in ranks:
            continue
        target = {
            "launch": context.launch,
            "rank": each["rank"],
            "stderr": True,
            "epoch": context.epoch,
        }
        while True:
            fields = {
                **target,
                "offset": _PAST_THE_END,
                "bytes_max": 1,
                "wait_ms": logs.LONG_POLL_MS,
            }
            if workers.link(session, each["node"]).request(
                "ReadLog", fields, timeout=logs.LONG_POLL_MS / 1000 + 30
            )[1]["ended"]:
                break
            polls += each["rank"] in waiting
            if polls == _PATIENCE_POLLS:
                print(
                    f"troupe: all chiefs have ended, and rank {each['rank']}, a worker, runs on, "
                    "and so does the job\n"
                    "  a worker that waits in server.join() never ends by itself: "
                    "chief_ends_job=True of the distribution ends workers when the chiefs have\n"
                    f"  if this one does: troupe cancel {context.launch[:8]}",
                    file=sys.stderr,
                    flush=True,
                )
    action()
