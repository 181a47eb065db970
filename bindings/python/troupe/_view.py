"""The cluster as this process may use it: all of it, or inside a launch its nodes and what it reserved."""
from __future__ import annotations

from dataclasses import dataclass, field

from troupe import _resources, _session

_HOLDING = ("created", "rescheduling", "pending")


@dataclass
class NodeView:
    """One node: what the head knows of it, what is there for this process, and what of that is free."""

    info: dict
    total: dict[str, float]
    free: dict[str, float] = field(default_factory=dict)


def nodes(session: _session.Session | None = None) -> list[NodeView]:
    """The nodes, dead ones included. One request to the head, three inside a launch."""
    session = session or _session.current()
    infos = session.request("GetStatus", {})[1]["nodes"]
    if not session.launch:
        return [NodeView(info, _resources.from_wire(info["resources"]), _resources.from_wire(info["free"]))
                for info in infos]
    return _of_launch(session, infos)


def _of_launch(session: _session.Session, infos: list[dict]) -> list[NodeView]:
    """The launch's nodes: the gang's reservation there, less what groups and actors inside it took."""
    launch = session.request("GetLaunch", {"launch": session.launch})[1]["info"]
    groups = [group for group in session.request("ListGroups", {})[1]["groups"]
              if group["launch"] == session.launch and group["state"] in _HOLDING]
    by_id = {info["node"]: info for info in infos}
    views = [NodeView(by_id[node], {}) for node in launch["nodes"] if node in by_id]
    for view in views:
        gang = [place for group in groups if group["group"] == session.gang for place in group["places"]]
        taken = [place for group in groups if group["group"] != session.gang for place in group["places"]]
        view.total = _sum_on(view.info["node"], gang)
        used = _sum_on(view.info["node"], taken)
        view.free = {name: round(amount - used.get(name, 0.0), 4) for name, amount in view.total.items()}
    return views


def _sum_on(node: str, places: list[dict]) -> dict[str, float]:
    total: dict[str, float] = {}
    for place in places:
        if place["node"] == node:
            for name, amount in _resources.from_wire(place["resources"]).items():
                total[name] = round(total.get(name, 0.0) + amount, 4)
    return total
