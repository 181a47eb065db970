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
from troupe._tracing import chrome, collect

ANSWER_S = 10.0
SECONDS = 600.0


def timeline(filename: str | os.PathLike[str] | None = None) -> list[dict[str, Any]] | None:
    """Return what has happened lately as events in Chrome's trace format.

    These are spans that the processes of the cluster recorded within SECONDS: lives of ranks,
    actors and programs, phases of launches, transfers, collectives, trials, and actor calls where
    these are sampled (`TROUPE_TRACE_CALLS`); tasks that are not over, where they are now, and the
    latest 4,096 of each process that are; and the latest 1,000 events of the cluster. `pid` and
    `tid` are numbers; metadata events have their names.

    Blocks for those who have spans and tasks; who does not answer is left out.

    Args:
        filename: A file to write the events to, as JSON; then nothing is returned.

    Raises:
        ConnectionError: This process is not connected to a cluster.
        OSError: The file cannot be written.
    """
    trace = of_session(connect.session_here(), collect.Wanted(seconds=SECONDS)).events
    if filename is None:
        return trace
    with open(filename, "w", encoding="utf-8") as file:
        json.dump(trace, file)
    return None


class Timeline:
    """The events of a trace, how many spans were lost, and errors of nodes by their names."""

    def __init__(self, events: list[dict[str, Any]], dropped: int, errors: dict[str, str]) -> None:
        self.events, self.dropped, self.errors = events, dropped, errors


def of_session(session: Any, wanted: collect.Wanted) -> Timeline:
    """Return the timeline of the processes that are wanted; tasks and events of the cluster only
    where all processes are."""
    parts, errors = collect.collect(session, wanted)
    now_us = time.time() * 1e6
    tasks, events = [], []
    if not (wanted.launch or wanted.actor):
        since_s = now_us / 1e6 - wanted.seconds
        tasks = [
            each
            for each in lists.of_cluster(
                session, limit=lists.MOST, ended=True, timeout=ANSWER_S, whole=False
            )
            if each.get("end_s", since_s) >= since_s
        ]
        events = [each for each in state.list_events(session) if each["time_s"] >= since_s]
    names = {each["node_id"]: each["name"] for each in state.list_nodes(session)}
    drawn = chrome.trace(parts, tasks, events, nodes=names, now_us=now_us)
    return Timeline(drawn, chrome.dropped(parts), errors)


__all__ = ["timeline"]
