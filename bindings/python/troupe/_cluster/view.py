"""The cluster as this process may use it: all of it, or inside a launch its nodes and what it
reserved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from troupe._cluster import connect, resources, selectors, session as _session
from troupe._wire import CapKind

_HOLDING = ("created", "rescheduling", "pending")
CAP_SCALE = 10_000
"""Caps of GPUs and CPUs travel in ten-thousandths."""
CAPS_OF_AMOUNTS = (CapKind.GPUS, CapKind.CPUS)
CAPS_OF_COUNTS = (CapKind.RUNNING, CapKind.QUEUED)


@dataclass
class NodeView:
    """A node as seen by this process: the head's facts, the resources there for it, and how much of
    them is free."""

    info: dict[str, Any]
    total: dict[str, float]
    free: dict[str, float] = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, str]:
        """The labels that it was started with, and its id as one."""
        return {selectors.NODE_ID: self.info["node"], **selectors.labels_of(self.info)}


def nodes(session: _session.Session | None = None) -> list[NodeView]:
    """The nodes, dead ones included. One request to the head, three inside a launch."""
    session = session or connect.session_here()
    infos = session.request("GetStatus", {})[1]["nodes"]
    if not session.launch:
        return [
            NodeView(
                info, resources.from_wire(info["resources"]), resources.from_wire(info["free"])
            )
            for info in infos
        ]
    return _of_launch(session, infos)


PAGE_LAUNCHES = 200
"""Launches that one answer of the head has, at most."""


def iter_launches(
    session: _session.Session, *, since_us: int = 0, page: int = PAGE_LAUNCHES
) -> Iterator[dict[str, Any]]:
    """Yield the LaunchInfos of the launches that the head keeps, the latest submitted first: those
    in its memory and those in its archive.

    Pages are asked for as they are needed: who stops early asks for no more. A launch that is
    submitted meanwhile is not among them.

    Args:
        since_us: leaves out launches submitted before this time, in microseconds since 1970.
        page: the size of a page.
    """
    before = (0, "")
    while True:
        found, has_more = list_page(session, limit=page, since_us=since_us, before=before)
        yield from found
        if not has_more or not found:
            return
        before = (found[-1]["submitted_us"], found[-1]["launch"])


def list_page(
    session: _session.Session, *, limit: int, since_us: int = 0, before: tuple[int, str] = (0, "")
) -> tuple[list[dict[str, Any]], bool]:
    """Return a page of iter_launches, and True if the head has older launches.

    Args:
        before: when a launch was submitted, in microseconds, and its id: only those before it.
    """
    asked: dict[str, Any] = {"limit": limit, "since_us": since_us}
    if before[1]:
        asked |= {"before_us": before[0], "before": before[1]}
    answer = session.request("ListLaunches", asked)[1]
    return answer["launches"][::-1], answer["more"]


def find_launches(
    session: _session.Session, prefix: str = "", *, request: str = ""
) -> list[dict[str, Any]]:
    """Return the LaunchInfos of launches that the head keeps, PAGE_LAUNCHES at most, the latest
    submitted first. The head looks them up: it does not read all that it keeps.

    A head of an earlier version takes no account of `prefix` and `request`: check what is found.

    Args:
        prefix: how the launch's id, or its job's id, begins.
        request: the id of a submission that was made with an idempotency key.
    """
    if not prefix and not request:
        return []
    asked: dict[str, Any] = {"limit": PAGE_LAUNCHES, "prefix": prefix}
    if request:
        asked["request"] = request
    return _list(session, asked)


def open_launches(session: _session.Session) -> list[dict[str, Any]]:
    """Return the LaunchInfos of the launches that are not over, the latest submitted first."""
    found = _list(session, {"open_only": True})
    return [each for each in found if each["state"] != "terminal"]


def describe_owner(user: dict[str, Any]) -> dict[str, Any]:
    """Return an owner of a UsageList as `troupe usage --json` shows them
    (docs/guides/several_people.md)."""
    caps = {each["kind"]: each["most"] for each in user["caps"]}
    return {
        "owner": user["user"],
        "held": resources.from_wire(user["held"]),
        "running": user["running"],
        "queued": user["queued"],
        "share": user["share"],
        "quota": {
            **{kind: caps[kind] / CAP_SCALE if kind in caps else None for kind in CAPS_OF_AMOUNTS},
            **{kind: caps.get(kind) for kind in CAPS_OF_COUNTS},
        },
    }


def owners_by_share(users: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the owners of a UsageList as `describe_owner` does, the largest share first."""
    return sorted(map(describe_owner, users), key=lambda each: (-each["share"], each["owner"]))


def _list(session: _session.Session, asked: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = session.request("ListLaunches", asked)[1]["launches"]
    return found[::-1]


def _of_launch(session: _session.Session, infos: list[dict[str, Any]]) -> list[NodeView]:
    """The launch's nodes: what its ranks reserved there, less what groups and actors inside it
    took.

    The groups of a launch are the gang itself, which holds exactly the ranks' shares, and those
    inside it.
    """
    launch = session.request("GetLaunch", {"launch": session.launch})[1]["info"]
    places = [
        place
        for group in session.request("ListGroups", {})[1]["groups"]
        if group["launch"] == session.launch and group["state"] in _HOLDING
        for place in group["places"]
    ]
    share = resources.from_wire(launch["per_rank"])
    by_id = {info["node"]: info for info in infos}
    views = []
    for node in (node for node in launch["nodes"] if node in by_id):
        ranks = sum(each["node"] == node for each in launch["rank_infos"])
        total = {name: round(ranks * amount, 4) for name, amount in share.items()}
        held = _sum_on(node, places)
        free = {
            name: round(max(0.0, 2 * amount - held.get(name, 0.0)), 4)
            for name, amount in total.items()
        }
        views.append(NodeView(by_id[node], total, free))
    return views


def _sum_on(node: str, places: list[dict[str, Any]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for place in places:
        if place["node"] == node:
            for name, amount in resources.from_wire(place["resources"]).items():
                total[name] = round(total.get(name, 0.0) + amount, 4)
    return total
