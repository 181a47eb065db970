"""Spans of a cluster's processes, asked of its workers, on one clock."""

from __future__ import annotations

import concurrent.futures
import os
import time
from typing import Any, NamedTuple

from troupe import exceptions
from troupe._base.identity import boot_id
from troupe._cluster import workers
from troupe._tracing import record, rings
from troupe._tracing.chrome import Part

NODES_AT_ONCE = 64
CLOCK_QUESTIONS = 5
ANSWER_S = 100.0
CLOCK_S = 10.0


class Wanted(NamedTuple):
    """Spans to ask for: those of a launch, an actor or, with neither, all processes that ended
    within the last `seconds`."""

    launch: str = ""
    actor: str = ""
    seconds: float = 60.0

    def request(self, **fields: int) -> dict[str, int | str]:
        """Return the fields of ReadTimeline that name the processes, with these."""
        named = {"launch": self.launch, "actor": self.actor}
        return {**fields, **{kind: each for kind, each in named.items() if each}}


def collect(session: Any, wanted: Wanted) -> tuple[list[Part], dict[str, str]]:
    """Return what the nodes' processes, and programs on their hosts, recorded; and errors of nodes
    that could not be asked, by their names.

    Blocks. A node that does not answer within ANSWER_S is among the errors.
    """
    infos = [each for each in workers.node_infos(session) if each["state"] == "alive"]
    since_ms = max(1, int(wanted.seconds * 1000))
    fields = wanted.request(since_ms=since_ms)
    wall_ns = time.time_ns() - record.now_ns()

    def ask(info: dict[str, Any]) -> tuple[Part | None, str]:
        try:
            link = workers.link(session, info["node"])
            packed = link.request("ReadTimeline", fields, timeout=ANSWER_S)[2]
            offset_ns = 0 if info["boot_id"] == boot_id() else clock_offset(link)
            return Part(info["name"], wall_ns + offset_ns, rings.unpack(packed)), ""
        except exceptions.TroupeError as error:
            return None, str(error)

    with concurrent.futures.ThreadPoolExecutor(NODES_AT_ONCE) as pool:
        answers = list(pool.map(ask, infos))
    parts = [part for part, _ in answers if part is not None]
    parts += _own(wall_ns, since_ms)
    errors = {info["name"]: error for info, (_, error) in zip(infos, answers, strict=True) if error}
    return _once(parts, _hosts(infos), session.cluster_id), errors


def sample_calls(session: Any, wanted: Wanted, every: int) -> None:
    """Have the processes record one actor call in `every` for `wanted.seconds` from now.

    Raises TroupeError where a node cannot be asked.
    """
    fields = wanted.request(since_ms=1, calls_every=every, calls_for_ms=int(wanted.seconds * 1000))
    for info in workers.node_infos(session):
        if info["state"] == "alive":
            link = workers.link(session, info["node"])
            link.request("ReadTimeline", fields, timeout=ANSWER_S)
    if record.own_path:
        until_ns = record.now_ns() + int(wanted.seconds * 1e9)
        rings.sample_calls(record.own_path, every, until_ns)


def clock_offset(link: Any) -> int:
    """Return what is to be added to a node's clock to have this process's: by the quickest of a few
    round trips, whose half is the error at most."""
    best: tuple[int, int] | None = None
    for _ in range(CLOCK_QUESTIONS):
        sent_ns = record.now_ns()
        answer = link.request("ReadTimeline", {"since_ms": 0}, timeout=CLOCK_S)[1]
        took_ns = record.now_ns() - sent_ns
        there_ns = (answer["received_ns"] + answer["answered_ns"]) // 2
        found = (took_ns, sent_ns + took_ns // 2 - there_ns)
        best = found if best is None else min(best, found)
    assert best is not None
    return best[1]


def _own(wall_ns: int, since_ms: int) -> list[Part]:
    """This program's ring, which no worker finds where none runs on its host."""
    if not record.own_path:
        return []
    try:
        ring = rings.read(record.own_path, record.now_ns() - since_ms * 1_000_000)
    except OSError:
        return []
    return [Part(os.uname().nodename, wall_ns, [ring])] if ring is not None else []


def _hosts(infos: list[dict[str, Any]]) -> dict[str, str]:
    return {each["name"]: each["boot_id"].partition("/")[0] for each in infos}


def _once(parts: list[Part], hosts: dict[str, str], cluster: str) -> list[Part]:
    """Each ring once: workers of one host and user find the same programs; and none of programs of
    other clusters."""
    known: set[tuple[str, int, int]] = set()
    found = []
    for part in parts:
        kept = []
        for ring in part.rings:
            key = (hosts.get(part.node, boot_id()), ring.pid, ring.began_ns)
            is_ours = ring.label.get("kind") != "program" or ring.label.get("cluster") == cluster
            if is_ours and key not in known:
                known.add(key)
                kept.append(ring)
        found.append(part._replace(rings=kept))
    return found
