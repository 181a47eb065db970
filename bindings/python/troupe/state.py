"""What the cluster holds, as data: nodes, actors, launches, placement groups, free resources."""
from __future__ import annotations

from typing import Any

from troupe import _resources, _session, _view
from troupe._identity import short

TASKS_CLASS = "troupe.task"  # of actors that are processes for tasks


def available_resources_per_node() -> dict[str, dict[str, float]]:
    """Free resources by node id (hex). Inside a launch: its nodes, and the unused part of what it reserved."""
    return {view.info["node"]: view.free for view in _view.nodes() if view.info["state"] != "dead"}


def total_resources_per_node() -> dict[str, dict[str, float]]:
    """All resources by node id (hex); inside a launch, what it reserved there."""
    return {view.info["node"]: view.total for view in _view.nodes() if view.info["state"] != "dead"}


def list_nodes(session: _session.Session | None = None) -> list[dict[str, Any]]:
    """Nodes: name, state, resources, how long ago they were heard."""
    infos = (session or _session.current()).request("GetStatus", {})[1]["nodes"]
    return [node_dict(info) for info in infos]


def node_dict(info: dict) -> dict[str, Any]:
    """A NodeInfo as users and scripts see it."""
    return {
        "node_id": info["node"], "name": info["name"], "alive": info["state"] in ("alive", "suspect", "draining"),
        "state": info["state"], "host": info["host"], "address": f"{info['listen_host']}:{info['listen_port']}",
        "pid": info["pid"], "resources": _resources.from_wire(info["resources"]),
        "free": _resources.from_wire(info["free"]),
        "labels": {label["key"]: label["value"] for label in info["labels"]},
        "devices": [device["model"] for device in info["devices"]], "heard_s": info["heard_ms"] / 1000,
        "python": info["python_version"], "zygote_ready": info["zygote_ready"],
    }


def list_actors(session: _session.Session | None = None) -> list[dict[str, Any]]:
    """Actors, dead ones included while the head remembers them; without processes for tasks."""
    infos = (session or _session.current()).request("ListActors", {})[1]["actors"]
    return [{"actor_id": info["actor"], "class_name": info["class_name"], "name": info["name"],
             "namespace": info["namespace_"], "state": info["state"], "node": info["node_name"],
             "pid": info["address"]["pid"], "launch": info["launch"], "restarts": info["restarts"],
             "waiting_for": info["waiting_for"], "cause": info["failure"]["cause"],
             "resources": _resources.from_wire(info["resources"])} for info in infos
            if info["class_name"] != TASKS_CLASS]


def list_launches(session: _session.Session | None = None) -> list[dict[str, Any]]:
    """Launches, ended ones included while the head keeps their markers."""
    from troupe.launch._handle import describe

    infos = (session or _session.current()).request("ListLaunches", {})[1]["launches"]
    return [describe(info) for info in infos]


def list_placement_groups(session: _session.Session | None = None) -> list[dict[str, Any]]:
    """Placement groups with their bundles and where these lie."""
    infos = (session or _session.current()).request("ListGroups", {})[1]["groups"]
    return [group_dict(info) for info in infos if not info["shares"]]


def group_dict(info: dict) -> dict[str, Any]:
    """A GroupInfo as users and scripts see it."""
    return {
        "placement_group_id": info["group"], "name": info["name"], "strategy": info["strategy"].upper(),
        "state": info["state"].upper(), "launch": short(info["launch"]) if info["launch"] else "",
        "bundles": {bundle["index"]: _resources.from_wire(bundle["resources"]) for bundle in info["bundles"]},
        "bundles_to_node_id": {place["index"]: place["node"] for place in info["places"]},
        "reason": info["reason"],
    }
