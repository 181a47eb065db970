"""Ray's `ray.timeline`: what has happened in the cluster, as a trace for chrome://tracing and
Perfetto."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from troupe import state
from troupe._cluster import connect
from troupe._tasks import lists

ANSWER_S = 10.0


def timeline(filename: str | os.PathLike[str] | None = None) -> list[dict[str, Any]] | None:
    """Events in Chrome's trace format: the latest 1,000 of the cluster (nodes that came and went,
    actors that crashed, ends of launches), tasks that are not over, where they are now, and the
    latest 4,096 of each process that are, where and how long they ran. With `filename` they are
    written there, as JSON, else returned.

    Blocks for those who have tasks; who does not answer within ANSWER_S is left out. Raises
    ConnectionError outside of a session, OSError for a file that cannot be written.
    """
    session = connect.session_here()
    names = {each["node_id"]: each["name"] for each in state.list_nodes(session)}
    trace = [
        {
            "ph": "i",
            "s": "g",
            "ts": each["time_s"] * 1e6,
            "name": each["message"],
            "cat": each["source"],
            "pid": names.get(each["node_id"], ""),
            "tid": each["actor_id"] or each["launch"] or each["source"],
            "args": each,
        }
        for each in state.list_events(session)
    ]
    now_us = time.time() * 1e6
    tasks = lists.of_cluster(session, limit=lists.MOST, ended=True, timeout=ANSWER_S, whole=False)
    trace += [_of_task(each, names, now_us) for each in tasks]
    if filename is None:
        return trace
    with open(filename, "w", encoding="utf-8") as file:
        json.dump(trace, file)
    return None


def _of_task(task: dict[str, Any], nodes: dict[str, str], now_us: float) -> dict[str, Any]:
    """A task that is over is a span, another one a mark at the present."""
    event = {
        "name": task["name"],
        "cat": "task",
        "pid": nodes.get(task["node_id"], ""),
        "tid": task["worker_id"] or "waiting",
        "args": task,
    }
    if "end_s" in task:
        return {
            "ph": "X",
            "ts": task["start_s"] * 1e6,
            "dur": (task["end_s"] - task["start_s"]) * 1e6,
            **event,
        }
    return {"ph": "i", "s": "t", "ts": now_us, **event}


__all__ = ["timeline"]
