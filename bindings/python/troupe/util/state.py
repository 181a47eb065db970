"""Ray's `ray.util.state`: what the cluster holds, in Ray's words.

    from troupe.util.state import list_actors
    [each.name for each in list_actors(filters=[("state", "=", "ALIVE")])]

A record is a dict whose fields are attributes too. View: the cluster, asked at each call; blocking.
`troupe.state` has the same with all that Troupe knows.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from troupe import _pickled, state
from troupe._cluster import connect
from troupe._tasks import lists
from troupe.util._state_logs import _only_here, get_log, list_logs
from troupe.util._state_objects import get_objects, list_objects, summarize_objects
from troupe.util._state_records import LIMIT, StateRecord, chosen

_pickled.named_in(
    __name__,
    StateRecord,
    get_log,
    get_objects,
    list_logs,
    list_objects,
    summarize_objects,
)
_ACTOR_STATES = {
    "pending": "PENDING_CREATION",
    "starting": "PENDING_CREATION",
    "alive": "ALIVE",
    "dead": "DEAD",
    "unavailable": "RESTARTING",
}
_JOB_STATES = {
    "none": "RUNNING",
    "succeeded": "SUCCEEDED",
    "failed": "FAILED",
    "cancelled": "STOPPED",
}
_TASK_STATES = {
    "arguments": "PENDING_ARGS_AVAIL",
    "waiting": "PENDING_NODE_ASSIGNMENT",
    "queued": "SUBMITTED_TO_WORKER",
    "running": "RUNNING",
}
_EVENT_SOURCES = {"head": "GCS", "node": "NODE", "actor": "ACTOR", "launch": "JOB"}


def list_actors(
    address: str | None = None,
    filters: Sequence[tuple[str, str, Any]] | None = None,
    limit: int = LIMIT,
    timeout: int = 30,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[StateRecord]:
    """Actors, dead ones included while the head remembers them."""
    _only_here(address)
    return chosen([_actor(each) for each in state.list_actors()], filters, limit)


def _actor(each: dict[str, Any]) -> StateRecord:
    starts = each["state"] in ("pending", "starting")
    return StateRecord(
        actor_id=each["actor_id"],
        class_name=each["class_name"],
        state="RESTARTING" if starts and each["restarts"] else _ACTOR_STATES[each["state"]],
        name=each["name"],
        ray_namespace=each["namespace"],
        node_id=each["node_id"],
        node_name=each["node"],
        pid=each["pid"],
        num_restarts=str(each["restarts"]),
        required_resources=each["resources"],
        death_cause=each["cause"] or None,
        repr_name=each["repr_name"],
        is_detached=None,
        job_id=each["launch"],
    )


def list_nodes(
    address: str | None = None,
    filters: Sequence[tuple[str, str, Any]] | None = None,
    limit: int = LIMIT,
    timeout: int = 30,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[StateRecord]:
    """Nodes, dead ones included while the head remembers them.

    A silent one counts as alive until its verdict.
    """
    _only_here(address)
    return chosen([_node(each) for each in state.list_nodes()], filters, limit)


def _node(each: dict[str, Any]) -> StateRecord:
    return StateRecord(
        node_id=each["node_id"],
        node_ip=each["address"].rpartition(":")[0],
        state="ALIVE" if each["alive"] else "DEAD",
        state_message=each["why"] or None,
        node_name=each["name"],
        resources_total=each["resources"],
        labels=each["labels"],
        is_head_node=None,
    )


def list_placement_groups(
    address: str | None = None,
    filters: Sequence[tuple[str, str, Any]] | None = None,
    limit: int = LIMIT,
    timeout: int = 30,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[StateRecord]:
    """Placement groups."""
    _only_here(address)
    return chosen([_group(each) for each in state.list_placement_groups()], filters, limit)


def _group(each: dict[str, Any]) -> StateRecord:
    places = each["bundles_to_node_id"]
    bundles = [
        {
            "bundle_id": f"{each['placement_group_id']}_{index}",
            "unit_resources": amounts,
            "node_id": places.get(index),
        }
        for index, amounts in each["bundles"].items()
    ]
    return StateRecord(
        placement_group_id=each["placement_group_id"],
        name=each["name"],
        state=each["state"],
        strategy=each["strategy"],
        bundles=bundles,
        stats={"reason": each["reason"]},
        creator_job_id=each["launch"],
    )


def list_workers(
    address: str | None = None,
    filters: Sequence[tuple[str, str, Any]] | None = None,
    limit: int = LIMIT,
    timeout: int = 30,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[StateRecord]:
    """Processes of actors and those that run tasks, ended ones included while the head remembers
    them."""
    _only_here(address)
    return chosen([_worker(each) for each in state.list_actors(tasks=True)], filters, limit)


def _worker(each: dict[str, Any]) -> StateRecord:
    return StateRecord(
        worker_id=each["actor_id"],
        is_alive=each["state"] in ("alive", "unavailable"),
        worker_type="WORKER",
        class_name=each["class_name"],
        node_id=each["node_id"],
        pid=each["pid"],
        exit_detail=each["cause"] or None,
    )


def list_jobs(
    address: str | None = None,
    filters: Sequence[tuple[str, str, Any]] | None = None,
    limit: int = LIMIT,
    timeout: int = 30,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[StateRecord]:
    """Launches, ended ones included while the head keeps their markers."""
    _only_here(address)
    return chosen([_job(each) for each in state.list_launches()], filters, limit)


def _job(each: dict[str, Any]) -> StateRecord:
    waits = each["state"] in ("queued", "reserving")
    return StateRecord(
        job_id=each["id"],
        submission_id=each["id"],
        type="SUBMISSION",
        entrypoint=each["name"],
        status="PENDING" if waits else _JOB_STATES[each["outcome"]],
        message=each["waiting_for"] if waits else each["cause"],
        driver_exit_code=each["exit_code"],
    )


def list_tasks(
    address: str | None = None,
    filters: Sequence[tuple[str, str, Any]] | None = None,
    limit: int = LIMIT,
    timeout: int = 30,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[StateRecord]:
    """Tasks of the cluster that are not over, this process's first, 10,000 of each process at most;
    `task_id` is the id of their ref. Calls of actors are none. The processes that have started them
    are asked: where one has not answered after `timeout` seconds, GetTimeoutError is raised, unless
    `raise_on_missing_output` is False."""
    _only_here(address)
    tasks = lists.of_cluster(
        connect.session_here(),
        limit=lists.MOST,
        ended=False,
        timeout=timeout,
        whole=raise_on_missing_output,
    )
    return chosen([_task(each) for each in tasks], filters, limit)


def _task(each: dict[str, Any]) -> StateRecord:
    amounts = {"CPU": each["num_cpus"], "GPU": each["num_gpus"], **each["resources"]}
    return StateRecord(
        task_id=each["task_id"],
        name=each["name"],
        func_or_class_name=each["name"],
        state=_TASK_STATES[each["state"]],
        type="NORMAL_TASK",
        node_id=each["node_id"] or None,
        worker_id=each["worker_id"] or None,
        worker_pid=each["pid"] or None,
        job_id=each["job_id"],
        owner_pid=each["owner_pid"],
        required_resources={name: amount for name, amount in amounts.items() if amount},
    )


def get_task(
    id: Any,  # noqa: A002
    address: str | None = None,
    timeout: int = 30,
) -> StateRecord | None:
    """The task of this id (hex), or of this ref; None where it is over."""
    return _one(
        list_tasks(address, limit=1 << 30), "task_id", id if isinstance(id, str) else id.hex()
    )


def list_runtime_envs(
    address: str | None = None,
    filters: Sequence[tuple[str, str, Any]] | None = None,
    limit: int = LIMIT,
    timeout: int = 30,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[StateRecord]:
    """The environments that this process has asked for (see `troupe.state.list_runtime_envs`);
    `ref_cnt`: for how many."""
    _only_here(address)
    return chosen(
        [
            StateRecord(
                runtime_env=each["runtime_env"],
                ref_cnt=each["asked_for"],
                success=None,
                error=None,
                node_id=None,
            )
            for each in state.list_runtime_envs()
        ],
        filters,
        limit,
    )


def list_cluster_events(
    address: str | None = None,
    filters: Sequence[tuple[str, str, Any]] | None = None,
    limit: int = LIMIT,
    timeout: int = 30,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[StateRecord]:
    """Return past events (see `troupe.state.list_events`), the latest `limit`, the oldest of them
    first."""
    _only_here(address)
    return chosen([_event(each) for each in reversed(state.list_events())], filters, limit)[::-1]


def _event(each: dict[str, Any]) -> StateRecord:
    when = datetime.datetime.fromtimestamp(each["time_s"], datetime.UTC)
    return StateRecord(
        severity=each["severity"].upper(),
        time=when.strftime("%Y-%m-%d %H:%M:%S.%f"),
        source_type=_EVENT_SOURCES[each["source"]],
        message=each["message"],
        event_id=each["event_id"],
        custom_fields={
            name: each[name] for name in ("node_id", "actor_id", "launch") if each[name]
        },
    )


def get_job(
    id: str,  # noqa: A002
    address: str | None = None,
    timeout: int = 30,
) -> StateRecord | None:
    """The launch of this id (hex), or None."""
    return _one(list_jobs(address, limit=1 << 30), "job_id", id)


def get_worker(
    id: str,  # noqa: A002
    address: str | None = None,
    timeout: int = 30,
) -> StateRecord | None:
    """The process of this id (hex), or None."""
    return _one(list_workers(address, limit=1 << 30), "worker_id", id)


def get_actor(
    id: str,  # noqa: A002
    address: str | None = None,
    timeout: int = 30,
) -> StateRecord | None:
    """The actor of this id (hex), or None."""
    return _one(list_actors(address, limit=1 << 30), "actor_id", id)


def get_node(
    id: str,  # noqa: A002
    address: str | None = None,
    timeout: int = 30,
) -> StateRecord | None:
    """The node of this id (hex), or None."""
    return _one(list_nodes(address, limit=1 << 30), "node_id", id)


def get_placement_group(
    id: str, address: str | None = None, timeout: int = 30
) -> StateRecord | None:  # noqa: A002
    """The placement group of this id (hex), or None."""
    return _one(list_placement_groups(address, limit=1 << 30), "placement_group_id", id)


def summarize_actors(address: str | None = None, timeout: int = 30) -> dict[str, Any]:
    """How many actors there are of each class in each state."""
    actors = list_actors(address, limit=1 << 30)
    return {"cluster": {"summary": _counted(actors, "class_name"), "total_actors": len(actors)}}


def summarize_tasks(address: str | None = None, timeout: int = 30) -> dict[str, Any]:
    """How many tasks there are of each function in each state."""
    tasks = list_tasks(address, limit=1 << 30)
    return {
        "cluster": {
            "summary": _counted(tasks, "func_or_class_name"),
            "total_tasks": len(tasks),
            "summary_by": "func_name",
        }
    }


def _counted(records: list[StateRecord], key: str) -> dict[str, dict[str, Any]]:
    summary: dict[str, dict[str, Any]] = {}
    for each in records:
        states = summary.setdefault(each[key], {key: each[key], "state_counts": {}})["state_counts"]
        states[each["state"]] = states.get(each["state"], 0) + 1
    return summary


def _one(records: list[StateRecord], key: str, wanted: str) -> StateRecord | None:
    return next((each for each in records if each[key] == wanted), None)


def __getattr__(name: str) -> Any:
    from troupe.ray_compat._missing import without

    raise AttributeError(
        f"module 'troupe.util.state' has no attribute {name!r}{without(f'ray.util.state.{name}')}"
    )


__all__ = [
    "StateRecord",
    "get_actor",
    "get_job",
    "get_log",
    "get_node",
    "get_objects",
    "get_placement_group",
    "get_task",
    "get_worker",
    "list_actors",
    "list_cluster_events",
    "list_jobs",
    "list_logs",
    "list_nodes",
    "list_objects",
    "list_placement_groups",
    "list_runtime_envs",
    "list_tasks",
    "list_workers",
    "summarize_actors",
    "summarize_objects",
    "summarize_tasks",
]
