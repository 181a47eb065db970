"""The cluster's contents as data: nodes, actors, launches, placement groups, free resources.

Functions without `session=` ask the cluster of `troupe.init()`, else the one that this process has
launched on, else that of TROUPE_ADDRESS.
"""

from __future__ import annotations

import itertools
from typing import Any

from troupe import exceptions
from troupe._base.bridge import native
from troupe._base.identity import TASKS_CLASS, short
from troupe._cluster import (
    connect,
    fabric,
    resources,
    selectors,
    session as _session,
    topology,
    view as _view,
)
from troupe._code import environment
from troupe._tasks import lists


def available_resources_per_node() -> dict[str, dict[str, float]]:
    """Free resources by node id (hex).

    Inside a launch: its nodes, and the unused part of what it reserved.
    """
    return {view.info["node"]: view.free for view in _view.nodes() if view.info["state"] != "dead"}


def total_resources_per_node() -> dict[str, dict[str, float]]:
    """All resources by node id (hex); inside a launch, what it reserved there."""
    return {view.info["node"]: view.total for view in _view.nodes() if view.info["state"] != "dead"}


def list_nodes(session: _session.Session | None = None) -> list[dict[str, Any]]:
    """Nodes: name, state and, if it is not simply alive, why; resources; how long ago they were
        heard.

    `network` is how a node was connected when its worker started: `interfaces`, `rdma` (ports of
    InfiniBand, RoCE and other devices, with the networks they are in), `nvlink` (GPUs with equally
    many links that are up) and `gpudirect` (by what network cards read the GPUs' memory, "" where
    nothing was found). Speeds are in Mbit/s, of NVLink in MB/s of one link and way; 0: not known.
    """
    infos = (session or connect.session_here()).request("GetStatus", {})[1]["nodes"]
    return [node_dict(info) for info in infos]


def node_dict(info: dict[str, Any]) -> dict[str, Any]:
    """A NodeInfo as users and scripts see it."""
    return {
        "node_id": info["node"],
        "name": info["name"],
        "alive": info["state"] in ("alive", "suspect", "draining"),
        "state": info["state"],
        "why": info["why"],
        "host": info["host"],
        "address": f"{info['listen_host']}:{info['listen_port']}",
        "pid": info["pid"],
        "resources": resources.from_wire(info["resources"]),
        "free": resources.from_wire(info["free"]),
        "labels": selectors.labels_of(info),
        "network": fabric.as_dict(fabric.of_node(info)),
        "devices": [device["model"] for device in info["devices"]],
        "heard_s": info["heard_ms"] / 1000,
        "python": info["python_version"],
        "zygote_ready": info["zygote_ready"],
        "preimport": list(info["preimports"]),
    }


def list_actors(
    session: _session.Session | None = None, *, tasks: bool = False
) -> list[dict[str, Any]]:
    """Actors, dead ones included, with where they were, while the head remembers them; processes
    that run tasks only where `tasks`."""
    infos = (session or connect.session_here()).request("ListActors", {})[1]["actors"]
    return [
        {
            "actor_id": info["actor"],
            "class_name": info["class_name"],
            "name": info["name"],
            "namespace": info["namespace_"],
            "state": info["state"],
            "node": info["node_name"] or info["failure"]["node_name"],
            "node_id": info["node"] or info["failure"]["node"],
            "pid": info["address"]["pid"] or info["failure"]["pid"],
            "repr_name": info["address"]["repr_name"],
            "launch": info["launch"],
            "restarts": info["restarts"],
            "waiting_for": info["waiting_for"],
            "cause": info["failure"]["cause"],
            "resources": resources.from_wire(info["resources"]),
        }
        for info in infos
        if tasks or info["class_name"] != TASKS_CLASS
    ]


def list_tasks(
    session: _session.Session | None = None,
    *,
    limit: int = 10_000,
    everywhere: bool = False,
    timeout: float = 30.0,
) -> list[dict[str, Any]]:
    """Tasks that this process has started and that are not over, `limit` of them at most: name,
    state ("arguments": those are to come; "waiting" for a process; "queued" in one; "running") and
    where they are. With `everywhere` also those of other programs, actors, tasks and ranks of the
    cluster, 10,000 of each at most: they are asked, and GetTimeoutError is raised where one has not
    answered after `timeout` seconds. `owner_pid` is the process that has started it, `job_id` its
    program's."""
    session = session or connect.session_here()
    if not everywhere:
        return lists.of_process(session, limit=limit, ended=False)
    return lists.of_cluster(session, limit=limit, ended=False, timeout=timeout, whole=True)[:limit]


def list_events(session: _session.Session | None = None) -> list[dict[str, Any]]:
    """Return past events, the oldest first: nodes that came and went, actors that crashed, launches
    and attempts that ended. The latest 1,000 since the head started; ends that were asked for are
    none. `time_s` is since 1970."""
    answer = (session or connect.session_here()).request("ListEvents", {})[1]
    return [
        {
            "event_id": f"{answer['head_incarnation']}-{each['number']}",
            "time_s": each["wall_us"] / 1e6,
            "severity": each["severity"],
            "source": each["source"],
            "message": each["message"],
            "node_id": each["node"],
            "actor_id": each["actor"],
            "launch": each["launch"],
        }
        for each in answer["events"]
    ]


def list_runtime_envs(session: _session.Session | None = None) -> list[dict[str, Any]]:
    """The environments (`runtime_env=`, with what init() was given) that this process has asked
    for, and for how many actors, pools of task processes and launches, the latest last. One that
    cannot be set up is the RuntimeEnvSetupError of who wanted it."""
    return [
        {
            "runtime_env": {
                key: environment.told(key, value)
                for key, value in env.items()
                if value and key != "ray_compat"
            },
            "asked_for": count,
        }
        for env, count in environment.asked_for(session or connect.session_here())
    ]


def list_objects(*, limit: int = 10_000) -> list[dict[str, Any]]:
    """Objects that this process owns, then those it borrows, `limit` of them at most: `object_id`
    (as `ref.hex()`), whether it is `owned`, `state` ("pending", "memory", "inline", "error",
    "lost"), `bytes` (0: not known here), and who holds it: `handles` are this process's refs,
    `views` its arrays over the value, `containers` values that it lies inside of, `lent` the calls
    and processes that have it through this one; `contained` counts the refs inside its value. Small
    values that no other process has asked for lie with their ref alone and are none. View: this
    process; others have their own."""
    return list(native.list_objects(limit))


def list_launches(
    session: _session.Session | None = None, *, limit: int = 10_000, since: float = 0.0
) -> list[dict[str, Any]]:
    """Return launches, ended ones included while the head keeps them, the latest submitted last.

    `state` is that of `LaunchHandle.status()`.

    Args:
        limit: the latest so many.
        since: leaves out launches submitted before this time, in seconds since 1970.
    """
    from troupe.launch._handle import describe

    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    found = _view.iter_launches(
        session or connect.session_here(),
        since_us=max(0, int(since * 1e6)),
        page=min(limit, _view.PAGE_LAUNCHES),
    )
    return [describe(info) for info in itertools.islice(found, limit)][::-1]


def list_placement_groups(session: _session.Session | None = None) -> list[dict[str, Any]]:
    """Placement groups with their bundles and where these lie."""
    infos = (session or connect.session_here()).request("ListGroups", {})[1]["groups"]
    return [
        group_dict(info)
        for info in infos
        if not info["shares"] and not info["gang"] and not info["actor"]
    ]


def group_dict(info: dict[str, Any]) -> dict[str, Any]:
    """A GroupInfo as users and scripts see it."""
    return {
        "placement_group_id": info["group"],
        "name": info["name"],
        "strategy": info["strategy"].upper(),
        "state": info["state"].upper(),
        "launch": short(info["launch"]) if info["launch"] else "",
        "bundles": {
            bundle["index"]: resources.from_wire(bundle["resources"]) for bundle in info["bundles"]
        },
        "bundles_to_node_id": {place["index"]: place["node"] for place in info["places"]},
        "reason": info["reason"],
        "priority": info["priority"],
        "queue_place": info["queue_place"],
    }


def explain(identity: str, session: _session.Session | None = None) -> str:
    """Return where a launch, an actor or a placement group is, or why it waits: a line per group of
    equal nodes.

    `identity` may be the first digits of an id. Raises ValueError when it names none or several.
    """
    session = session or connect.session_here()
    full, kind, info = _reservation(identity, session)
    if info is None:
        return _without_reservation(full, kind, session)
    if info["state"] != "created":
        return f"{info['state']}: {info['reason']}" if info["reason"] else info["state"]
    names = {node["node_id"]: node["name"] for node in list_nodes(session)}
    lines = [
        f"  bundle {place['index']} {resources.describe(resources.from_wire(place['resources']))} "
        "on "
        f"{names.get(place['node'], place['node'])}"
        + (f", GPUs {', '.join(map(str, place['gpu_ids']))}" if place["gpu_ids"] else "")
        for place in info["places"]
    ]
    return "\n".join(["created", *lines])


def placement_svg(identity: str, session: _session.Session | None = None) -> str:
    """A picture (SVG) of where a launch, an actor or a placement group lies.

    `identity` as of `explain`. Raises ValueError when it names none or several, or when nothing is
    reserved for it now.
    """
    session = session or connect.session_here()
    info = _reservation(identity, session)[2]
    if info is None or not info["places"]:
        raise ValueError(f"nothing is reserved for {identity} now: {explain(identity, session)}")
    return topology.svg(info, list_nodes(session))


def _reservation(
    identity: str, session: _session.Session
) -> tuple[str, str, dict[str, Any] | None]:
    """Return the full id, the kind (group, launch or actor), and the head's information on the
    reservation."""
    kinds = {
        **{each["placement_group_id"]: "group" for each in list_placement_groups(session)},
        **{each["id"]: "launch" for each in list_launches(session)},
        **{each["actor_id"]: "actor" for each in list_actors(session)},
    }
    found = [each for each in kinds if identity and each.startswith(identity.lower())]
    if len(found) != 1:
        raise ValueError(
            f"{'more than one' if found else 'no'} launch, actor or placement group has an id that "
            "starts "
            f"with {identity!r}"
        )
    try:
        answer = session.request("GetGroup", {kinds[found[0]]: found[0], "explain": True})[1]
    except exceptions.NotFoundError:
        return found[0], kinds[found[0]], None
    return found[0], kinds[found[0]], answer["info"]


def _without_reservation(identity: str, kind: str, session: _session.Session) -> str:
    """Return the state of something that holds no reservation."""
    if kind == "actor":
        actor = next(each for each in list_actors(session) if each["actor_id"] == identity)
        return (
            f"{actor['state']}: {actor['waiting_for'] or actor['cause'] or 'on ' + actor['node']}"
        )
    return "it reserves nothing"
