"""TF_CONFIG of a job's processes, and the end of its parameter servers."""
from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

from troupe._cluster import logs, workers
from troupe.azure import _processes

Tasks = Sequence[tuple[str, int]]
"""(type, how many), in the order of their ranks."""
PS = "ps"
_TRAINING = ("chief", "worker")  # what a job is over with, once all have ended
_BESIDE = ("evaluator",)  # no members of the cluster that the others form
_END_GRACE_S = 10.0
_PAST_THE_END = 1 << 62


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
    """TF_CONFIG of a rank; `addresses`: host:port of each. Pure.

        >>> config([("worker", 2)], ["a:1", "b:2"], 1)
        '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}, "environment": "cloud"}'
    """
    cluster: dict[str, list[str]] = {}
    rest = list(addresses)
    for kind, count in tasks:
        of_kind, rest = rest[:count], rest[count:]
        if of_kind and kind not in _BESIDE:
            cluster[kind] = of_kind
    kind, index = task_of(tasks, rank)
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}, "environment": "cloud"})


def training_ranks(tasks: Tasks) -> list[int]:
    """Those that parameter servers are there for. Pure."""
    return [rank for rank in range(sum(count for _, count in tasks)) if task_of(tasks, rank)[0] in _TRAINING]


def serve(session: Any, context: Any, tasks: Tasks, line: Sequence[str]) -> int:
    """Runs the line of a parameter server, in this rank's process group, until all that train have ended; 0 then.

    Of one that ends before, its code, negative for a signal: without it the others could not go on.
    """
    over = threading.Event()
    child = subprocess.Popen(list(line), stdin=subprocess.DEVNULL)

    def end() -> None:
        over.set()
        _end(child)

    threading.Thread(target=_when_all_have_ended, args=(session, context, training_ranks(tasks), end), name="troupe-ps", daemon=True).start()
    try:
        code = child.wait()
    except BaseException:  # told to stop
        _end(child)
        raise
    return 0 if over.is_set() else code


def _end(child: subprocess.Popen) -> None:
    """Its whole group but this process: SIGTERM, and SIGKILL for what is left after its grace."""
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _processes.end(child, signal.SIGTERM, _END_GRACE_S)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _when_all_have_ended(session: Any, context: Any, ranks: Sequence[int], action: Callable[[], None]) -> None:
    """Their workers say when these processes are over: what they printed has an end then."""
    infos = session.request("GetLaunch", {"launch": context.launch})[1]["info"]["rank_infos"]
    for each in infos:
        if each["rank"] not in ranks:
            continue
        target = {"launch": context.launch, "rank": each["rank"], "stderr": True, "epoch": context.epoch}
        while True:
            fields = {**target, "offset": _PAST_THE_END, "bytes_max": 1, "wait_ms": logs.LONG_POLL_MS}
            if workers.link(session, each["node"]).request("ReadLog", fields, timeout=logs.LONG_POLL_MS / 1000 + 30)[1]["ended"]:
                break
    action()
