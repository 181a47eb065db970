"""Makes of lists what each page shows: the values of its template. Pure but for what the reader
asks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troupe._dashboard import _reader
from troupe._dashboard._reader import ClusterReader
from troupe.job_submission import _jobs
from troupe.launch._handle import describe

ROWS_MAX = 200
RANKS_MAX = 4096
EXPLAINED_MAX = 10
RECENT_S = 24 * 3600.0
WRONG_MAX = 10
EVENTS_OF_OVERVIEW = 12
STRIPS = ("CPU", "memory", "GPU")
Query = Mapping[str, str]


class NotThereError(LookupError):
    """Nothing has the id that was asked for."""


@dataclass(frozen=True)
class Problem:
    """Something that is wrong: what, why, and where to look further."""

    what: str
    why: str
    link: str
    since_s: float | None = None


def overview(reader: ClusterReader, query: Query) -> dict[str, Any]:
    """`/`: what is wrong, what waits, how full the nodes are, what happened last."""
    nodes, launches = reader.nodes(), reader.launches()
    groups = reader.groups()
    going = [each for each in launches if each["state"] != "terminal"]
    return {
        "nodes": nodes[:ROWS_MAX],
        "node_count": len(nodes),
        "strips": STRIPS,
        "problems": _problems(nodes, launches)[:WRONG_MAX],
        "waiting": [_waiting_row(each) for each in _reader.waiting(groups)[:WRONG_MAX]],
        "launches": [describe(each) for each in going[:WRONG_MAX]],
        "launch_count": len(going),
        "events": reader.events()[:EVENTS_OF_OVERVIEW],
    }


def _problems(
    nodes: Iterable[Mapping[str, Any]], launches: Iterable[Mapping[str, Any]]
) -> list[Problem]:
    """Return what is wrong now, and what has failed within a day. Pure."""
    found = [
        Problem(f"node {each['name']} is {each['state']}", each["why"], f"/nodes/{each['node_id']}")
        for each in nodes
        if each["state"] not in ("alive", "draining") and each["heard_s"] < RECENT_S
    ]
    now = time.time()
    for info in launches:
        ended = (info["submitted_us"] / 1e6) + info["duration_ms"] / 1e3
        if info["outcome"] == "failed" and now - ended < RECENT_S:
            what = f"launch {info['launch'][:8]} {info['name']} failed"
            found.append(Problem(what, info["cause"], f"/launches/{info['launch']}", ended))
    return found


def nodes(reader: ClusterReader, query: Query) -> dict[str, Any]:
    """`/nodes`: all nodes, those that match the search."""
    found = _matching(reader.nodes(), query, ("name", "node_id", "host", "state", "why"))
    return {
        "strips": STRIPS,
        "counts": Counter(each["state"] for each in reader.nodes()),
        **_page(found, query),
    }


def node(reader: ClusterReader, query: Query, identity: str) -> dict[str, Any]:
    """`/nodes/ID`: devices with their owners, resources, what runs there, how it is connected."""
    found = one(reader.nodes(), "node_id", identity)
    identity = found["node_id"]
    owners = _reader.gpu_owners(reader.groups(), identity)
    ranks = [
        {**rank, "launch": each["launch"], "name": each["name"]}
        for each in reader.launches()
        if each["state"] != "terminal" and identity in each["nodes"]
        for rank in each["rank_infos"]
        if rank["node"] == identity
    ]
    actors = [
        each
        for each in reader.actors()
        if each["node_id"] == identity and each["state"] not in ("dead",)
    ]
    return {
        "node": found,
        "strips": STRIPS,
        "gpus": [(number, model, owners.get(number)) for number, model in enumerate(_gpus(found))],
        "ranks": ranks[:ROWS_MAX],
        "rank_count": len(ranks),
        "actors": actors[:ROWS_MAX],
        "actor_count": len(actors),
        "events": [each for each in reader.events() if each["node_id"] == identity][:ROWS_MAX],
    }


def _gpus(node: Mapping[str, Any]) -> list[str]:
    """Return the model of each GPU; "" where the node only counts them."""
    count = int(node["resources"].get("GPU", 0))
    models = list(node["devices"])
    return [*models, *[""] * (count - len(models))]


def actors(reader: ClusterReader, query: Query) -> dict[str, Any]:
    """`/actors`: counts by class before rows; those that match the search."""
    known = reader.actors()
    chosen = [
        each
        for each in known
        if query.get("class", "") in ("", each["class_name"])
        and query.get("state", "") in ("", each["state"])
    ]
    found = _matching(chosen, query, ("name", "class_name", "actor_id", "node", "cause"))
    classes: dict[str, Counter[str]] = {}
    for each in known:
        classes.setdefault(each["class_name"], Counter())[each["state"]] += 1
    ordered = sorted(classes.items(), key=lambda each: (-each[1]["alive"], each[0]))
    return {
        "classes": ordered[:ROWS_MAX],
        "class_count": len(ordered),
        "states": sorted({each["state"] for each in known}),
        **_page(sorted(found, key=lambda each: each["state"] == "dead"), query),
    }


def launches(reader: ClusterReader, query: Query) -> dict[str, Any]:
    """`/launches`: all launches that the head keeps, the latest first."""
    names = ("name", "launch", "state", "outcome", "cause")

    def fits(info: dict[str, Any]) -> bool:
        return bool(_matching([info], query, names))

    page = reader.launch_pages.page(query.get("before", ""), fits)
    rows = [{**describe(each), "submitted_s": each["submitted_us"] / 1e6} for each in page.rows]
    return {"rows": rows, "following": page.following}


def launch(reader: ClusterReader, query: Query, identity: str) -> dict[str, Any]:
    """`/launches/ID`: a grid of its ranks, its epochs with their causes, its marker."""
    info = find_launch(reader, identity)
    identity = info["launch"]
    groups = [each for each in reader.groups() if each["launch"] == identity]
    waits = [each for each in groups if each["queue_place"]]
    return {
        "launch": {**describe(info), "submitted_s": info["submitted_us"] / 1e6},
        "log_tail": info["failure"]["log_tail"],
        "is_over": info["state"] == "terminal",
        "is_stopping": info["state"] == "stopping",
        "ranks": [_rank(info, each) for each in info["rank_infos"][:RANKS_MAX]],
        "explained": [reader.explain(each["group"]) for each in waits[:1]],
        "actors": [each for each in reader.actors() if each["launch"] == identity][:ROWS_MAX],
        "events": [each for each in reader.events() if each["launch"] == identity][:ROWS_MAX],
    }


def find_launch(reader: ClusterReader, identity: str) -> dict[str, Any]:
    """Return the LaunchInfo of the one launch whose id begins so. Raises NotThereError."""
    latest = [each for each in reader.launches() if each["launch"] == identity]
    return latest[0] if latest else one(reader.find_launches(identity), "launch", identity)


def _rank(info: Mapping[str, Any], rank: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rank with the state that its cell has the colour of."""
    state = rank["outcome"] if rank["outcome"] != "none" else info["state"]
    return {**rank, "state": state}


def jobs(reader: ClusterReader, query: Query) -> dict[str, Any]:
    """`/jobs`: all jobs that the head keeps, the latest first; counts of the latest ones."""
    names = ("id", "name", "user", "command", "state", "cause")

    def fits(info: dict[str, Any]) -> bool:
        if not reader.is_job(info):
            return False
        row = _jobs.describe(info)
        is_chosen = query.get("state", "") in ("", row["state"])
        return is_chosen and bool(_matching([row], query, names))

    page = reader.launch_pages.page(query.get("before", ""), fits)
    return {
        "counts": Counter(each["state"] for each in reader.jobs()),
        "rows": [_jobs.describe(each) for each in page.rows],
        "following": page.following,
    }


def job(reader: ClusterReader, query: Query, identity: str) -> dict[str, Any]:
    """`/jobs/ID`: what it is, how it ended, and what its launch shows."""
    known = reader.jobs()
    exact = [each for each in known if identity in (each["id"], each["launch"])]
    found = exact[0] if exact else _find_job(reader, identity)
    actors = [each for each in reader.actors() if each["launch"] == found["launch"]]
    return {
        "job": found,
        "is_over": found["state"] in ("SUCCEEDED", "FAILED", "STOPPED"),
        "actors": actors[:ROWS_MAX],
        "events": [each for each in reader.events() if each["launch"] == found["launch"]],
    }


def _find_job(reader: ClusterReader, identity: str) -> dict[str, Any]:
    known = [_jobs.describe(each) for each in reader.find_launches(identity) if reader.is_job(each)]
    of_launch = [each for each in known if each["launch"] == identity]
    return of_launch[0] if of_launch else one(known, "id", identity)


def queue(reader: ClusterReader, query: Query) -> dict[str, Any]:
    """`/queue`: what waits, in its order, what each lacks, node by node, and the owners' shares."""
    waiting = _reader.waiting(reader.groups())
    placed = {each["launch"] for each in waiting}
    rows = [
        {**_waiting_row(each), "explained": reader.explain(each["group"])}
        for each in waiting[:EXPLAINED_MAX]
    ]
    rows += [{**_waiting_row(each), "explained": ""} for each in waiting[EXPLAINED_MAX:ROWS_MAX]]
    others = [
        describe(each)
        for each in reader.launches()
        if each["state"] != "terminal" and each["waiting_for"] and each["launch"] not in placed
    ]
    owners = reader.owners()
    return {
        "rows": rows,
        "count": len(waiting),
        "others": others[:ROWS_MAX],
        "owners": owners[:ROWS_MAX],
        "owner_count": len(owners),
    }


def _waiting_row(group: Mapping[str, Any]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for bundle in group["bundles"]:
        total.update(_reader.amounts(bundle["resources"]))
    if group["actor"]:
        kind, identity, link = "actor", group["actor"], f"/actors?q={group['actor']}"
    elif group["gang"]:
        kind, identity, link = "launch", group["launch"], f"/launches/{group['launch']}"
    else:
        kind, identity, link = "placement group", group["group"], ""
    return {
        "place": group["queue_place"],
        "priority": group["priority"],
        "kind": kind,
        "id": identity,
        "name": group["name"],
        "link": link,
        "wants": dict(total),
        "bundles": len(group["bundles"]),
        "strategy": group["strategy"].upper(),
        "reason": group["reason"],
    }


def events(reader: ClusterReader, query: Query) -> dict[str, Any]:
    """`/events`: what has happened, the latest first."""
    chosen = [
        each
        for each in reader.events()
        if query.get("severity", "") in ("", each["severity"])
        and query.get("source", "") in ("", each["source"])
    ]
    return {
        "severities": sorted({each["severity"] for each in reader.events()}),
        "sources": sorted({each["source"] for each in reader.events()}),
        **_page(_matching(chosen, query, ("message", "source", "severity")), query),
    }


def _matching(
    rows: Iterable[dict[str, Any]], query: Query, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the rows that have the words of the search in one of these fields."""
    words = query.get("q", "").lower().split()
    if not words:
        return list(rows)
    return [
        each
        for each in rows
        if all(any(word in str(each[name]).lower() for name in names) for word in words)
    ]


def _page(rows: Sequence[dict[str, Any]], query: Query) -> dict[str, Any]:
    """Return a page of rows, and how many there are."""
    given = query.get("from", "0")
    start = int(given) if given.isdecimal() and len(given) < 9 else 0
    end = start + ROWS_MAX
    return {
        "rows": rows[start:end],
        "first": start,
        "total": len(rows),
        "following": end if end < len(rows) else None,
        "previous": max(0, start - ROWS_MAX) if start else None,
    }


def one(rows: Iterable[dict[str, Any]], key: str, identity: str) -> dict[str, Any]:
    """Return the one row whose id begins so. Raises NotThereError."""
    found = [each for each in rows if identity and each[key].startswith(identity)]
    exact = [each for each in found if each[key] == identity]
    if len(found) != 1 and not exact:
        raise NotThereError(f"{'several have' if found else 'nothing has'} an id that begins so")
    return (exact or found)[0]


View = Callable[..., dict[str, Any]]
