"""A timeline in Chrome's trace format, from rings of spans, tasks and events. Pure.

Perfetto and chrome://tracing open it. Both want numbers for `pid` and `tid`, and spans of one track
that are nested: a span that only overlaps another one gets a track of its own. An arrow leads from
a call to its run where both were recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from troupe._tracing.record import Kind
from troupe._tracing.rings import Ring, Span

MADE_UP_PIDS_FROM = 1 << 22
"""The system's pids are below it."""
MADE_UP_TRACKS_FROM = 1 << 30
"""So are the ids of its threads. Below it, too: track 0 of each process, its life."""
LANE = "tasks"
_CATEGORIES = {kind.value: kind.name.lower() for kind in Kind}
_VALUES = {Kind.TRANSFER: "bytes", Kind.COLLECTIVE: "sequence", Kind.TASK: "failed"}


class Part(NamedTuple):
    """Rings of the processes of one node. `shift_ns`: added to the node's time it is the wall clock
    of who asked."""

    node: str
    shift_ns: int
    rings: list[Ring]


class _Bar(NamedTuple):
    """A span that is to be drawn."""

    begin_us: float
    end_us: float
    name: str
    category: str
    args: dict[str, Any]
    flow: int = 0


class _Tracks:
    """Numbers of processes and tracks, and their names as metadata events."""

    def __init__(self) -> None:
        self._pids: dict[tuple[str, int, str], int] = {}
        self._tids: dict[tuple[int, str], int] = {}
        self.metadata: list[dict[str, Any]] = []

    def process(
        self, node: str, pid: int, name: str, life: str = "", label: dict[str, Any] | None = None
    ) -> int:
        """Return the number of a process: its pid, unless another node has that, too."""
        key = (node, pid, life)
        if key not in self._pids:
            used = set(self._pids.values())
            number = pid if pid > 0 and pid not in used else MADE_UP_PIDS_FROM
            while number in used:
                number += 1
            self._pids[key] = number
            self._name("process_name", number, 0, {**(label or {}), "name": name})
        return self._pids[key]

    def known(self, node: str, pid: int) -> int | None:
        """Return the number of a process that has one."""
        numbers = [
            found for (where, own, _), found in self._pids.items() if (where, own) == (node, pid)
        ]
        return numbers[-1] if numbers else None

    def track(self, process: int, name: str, tid: int | None = None) -> int:
        """Return the number of a track of a process: the thread's, or a made-up one."""
        key = (process, name)
        if key not in self._tids:
            self._tids[key] = MADE_UP_TRACKS_FROM + len(self._tids) if tid is None else tid
            self._name("thread_name", process, self._tids[key], {"name": name})
        return self._tids[key]

    def _name(self, what: str, pid: int, tid: int, args: dict[str, Any]) -> None:
        self.metadata.append(
            {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}
        )


def trace(
    parts: Iterable[Part],
    tasks: Iterable[dict[str, Any]] = (),
    events: Iterable[dict[str, Any]] = (),
    *,
    nodes: dict[str, str] | None = None,
    now_us: float,
) -> list[dict[str, Any]]:
    """Return the events of a trace, metadata first, then by time.

    Args:
        parts: Spans of processes, by node.
        tasks: Rows of `troupe._tasks.lists`: one that is over is a span, another one a mark at the
            present. Tasks in rings of owners that have rows here are left out: they are the same.
        events: Rows of `troupe.state.list_events`.
        nodes: Names of nodes by their ids.
        now_us: The present, on the wall clock of who asked.
    """
    tracks, drawn = _Tracks(), []
    bars: dict[tuple[int, str], list[_Bar]] = defaultdict(list)
    tids: dict[tuple[int, str], int] = {}
    tasks = list(tasks)
    owners = {each["owner_pid"] for each in tasks if "owner_pid" in each}
    for part in parts:
        for ring in sorted(part.rings, key=lambda each: each.began_ns):
            process = _process_of(tracks, part, ring)
            bars[process, "life"].append(_life(part, ring, now_us))
            tids[process, "life"] = 0
            for span in ring.spans:
                if span.kind == Kind.TASK and ring.pid in owners:
                    continue
                track = _track_of(ring, span)
                bars[process, track].append(_bar(span, part.shift_ns))
                if span.kind != Kind.TASK:
                    tids[process, track] = span.track
    for each in tasks:
        drawn += _draw_task(tracks, bars, each, nodes or {}, now_us)
    drawn += [_draw_event(tracks, each, nodes or {}) for each in events]
    drawn += _draw_bars(tracks, bars, tids)
    return tracks.metadata + sorted(drawn, key=lambda each: float(each["ts"]))


def dropped(parts: Iterable[Part]) -> int:
    """Return how many spans were lost: overwritten by later ones, or left out for want of room."""
    return sum(ring.dropped for part in parts for ring in part.rings)


def _process_of(tracks: _Tracks, part: Part, ring: Ring) -> int:
    kind, name = ring.label.get("kind", "process"), ring.label.get("name", "")
    rank = f" {ring.label['rank']}" if "rank" in ring.label else ""
    shown = f"{kind}{rank} {name}".strip()
    label = {**ring.label, "dropped": ring.dropped} if ring.dropped else ring.label
    named = f"{shown} (pid {ring.pid} on {part.node})"
    return tracks.process(part.node, ring.pid, named, str(ring.began_ns), label)


def _life(part: Part, ring: Ring, now_us: float) -> _Bar:
    begin_us = (ring.began_ns + part.shift_ns) / 1000
    last_ns = max((span.end_ns for span in ring.spans), default=ring.began_ns)
    end_us = (ring.ended_ns + part.shift_ns) / 1000 if ring.ended_ns else now_us
    end_us = max(end_us, (last_ns + part.shift_ns) / 1000, begin_us)
    kind, name = ring.label.get("kind", "process"), ring.label.get("name", "")
    return _Bar(begin_us, end_us, f"{kind} {name}".strip(), "life", dict(ring.label))


def _track_of(ring: Ring, span: Span) -> str:
    if span.kind == Kind.TASK:
        return f"{LANE}, process {span.track}"
    return "main thread" if span.track == ring.pid else f"thread {span.track}"


def _bar(span: Span, shift_ns: int) -> _Bar:
    try:
        value = _VALUES.get(Kind(span.kind))
    except ValueError:  # written by a later version
        value = None
    return _Bar(
        (span.begin_ns + shift_ns) / 1000,
        (max(span.end_ns, span.begin_ns) + shift_ns) / 1000,
        span.name,
        _CATEGORIES.get(span.kind, "other"),
        {value: span.value} if value else {},
        span.flow,
    )


def _draw_task(
    tracks: _Tracks,
    bars: dict[tuple[int, str], list[_Bar]],
    task: dict[str, Any],
    nodes: dict[str, str],
    now_us: float,
) -> list[dict[str, Any]]:
    node, pid = nodes.get(task["node_id"], ""), task.get("pid", 0)
    if pid:
        known = tracks.known(node, pid)
        name = f"process for tasks (pid {pid} on {node})"
        process = tracks.process(node, pid, name) if known is None else known
    else:
        process = tracks.process("", 0, "tasks that have no process")
    if "end_s" in task:
        span = _Bar(task["start_s"] * 1e6, task["end_s"] * 1e6, task["name"], "task", task)
        bars[process, LANE].append(span)
        return []
    mark = {"ph": "i", "s": "t", "ts": now_us, "name": task["name"], "cat": "task"}
    return [{**mark, "pid": process, "tid": tracks.track(process, LANE), "args": task}]


def _draw_event(tracks: _Tracks, event: dict[str, Any], nodes: dict[str, str]) -> dict[str, Any]:
    node = nodes.get(event["node_id"], "")
    process = tracks.process(node, -1, f"node {node}" if node else "cluster")
    about = event["actor_id"] or event["launch"] or event["source"]
    mark = {"ph": "i", "s": "g", "ts": event["time_s"] * 1e6, "name": event["message"]}
    track = tracks.track(process, about)
    return {**mark, "cat": event["source"], "pid": process, "tid": track, "args": event}


def _draw_bars(
    tracks: _Tracks,
    bars: dict[tuple[int, str], list[_Bar]],
    tids: dict[tuple[int, str], int],
) -> list[dict[str, Any]]:
    drawn: list[dict[str, Any]] = []
    ends: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for (process, name), group in bars.items():
        for place, level in _nested(group):
            shown = name if level == 0 else f"{name} ({level + 1})"
            tid = tracks.track(process, shown, tids.get((process, name)) if level == 0 else None)
            event = {
                "ph": "X",
                "ts": place.begin_us,
                "dur": place.end_us - place.begin_us,
                "name": place.name,
                "cat": place.category,
                "pid": process,
                "tid": tid,
                "args": place.args,
            }
            drawn.append(event)
            if place.flow:
                ends[place.flow].setdefault(place.category, event)
    return drawn + _arrows(ends)


def _nested(group: list[_Bar]) -> Iterable[tuple[_Bar, int]]:
    """Yield each span with the number of the first track on which it is inside of, or apart from,
    all others."""
    levels: list[list[float]] = []  # per track, the ends of the spans that are open
    for each in sorted(group, key=lambda bar: (bar.begin_us, -bar.end_us)):
        level = next((at for at, open_ends in enumerate(levels) if _fits(each, open_ends)), None)
        if level is None:
            level = len(levels)
            levels.append([])
        levels[level].append(each.end_us)
        yield each, level


def _fits(bar: _Bar, open_ends: list[float]) -> bool:
    """Return True if the span is inside the innermost one that is open when it begins; those that
    are over are taken off."""
    while open_ends and open_ends[-1] <= bar.begin_us:
        open_ends.pop()
    return not open_ends or bar.end_us <= open_ends[-1]


def _arrows(ends: dict[int, dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the arrows of calls whose run was recorded, too."""
    drawn = []
    for number, (_, found) in enumerate(sorted(ends.items()), 1):
        call, run = found.get("call"), found.get("run")
        if call is None or run is None:
            continue
        arrow = {"name": run["name"], "cat": "call", "id": number}
        drawn.append({**arrow, "ph": "s", **_place(call)})
        drawn.append({**arrow, "ph": "f", "bp": "e", **_place(run)})
    return drawn


def _place(event: dict[str, Any]) -> dict[str, Any]:
    return {name: event[name] for name in ("pid", "tid", "ts")}
