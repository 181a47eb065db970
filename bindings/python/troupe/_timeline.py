"""Ray's `ray.timeline`: what has happened in the cluster, as a trace for chrome://tracing and Perfetto."""
from __future__ import annotations

import json
import os
import time
from typing import Any

from troupe import _session, state


def timeline(filename: str | os.PathLike | None = None) -> list[dict[str, Any]] | None:
    """Events in Chrome's trace format, the latest 1,000 of the cluster: nodes that came and went, actors that crashed, ends of launches;
    and the tasks of this process that are not over, where they are now. With `filename` they are written there, as JSON, else returned.

    Blocks for a request. Raises ConnectionError outside of a session, OSError for a file that cannot be written.
    """
    session = _session.started()
    names = {each["node_id"]: each["name"] for each in state.list_nodes(session)}
    now_us = time.time() * 1e6
    trace = [{"ph": "i", "s": "g", "ts": each["time_s"] * 1e6, "name": each["message"], "cat": each["source"], "pid": names.get(each["node_id"], ""),
              "tid": each["actor_id"] or each["launch"] or each["source"], "args": each} for each in state.list_events(session)]
    trace += [{"ph": "i", "s": "t", "ts": now_us, "name": each["name"], "cat": "task", "pid": names.get(each["node_id"], ""),
               "tid": each["worker_id"] or "waiting", "args": each} for each in state.list_tasks(session)]
    if filename is None:
        return trace
    with open(filename, "w", encoding="utf-8") as file:
        json.dump(trace, file)
    return None


__all__ = ["timeline"]
