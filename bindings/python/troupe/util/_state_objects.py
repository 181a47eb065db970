"""Objects in `ray.util.state`'s words: lists and sums of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from troupe import state
from troupe._base.context import ActorContext
from troupe.util._state_logs import _only_here
from troupe.util._state_records import LIMIT, StateRecord, chosen

_OBJECT_STATES = {
    "pending": "PENDING_NODE_ASSIGNMENT",
    "inline": "FINISHED",
    "memory": "FINISHED",
    "error": "FAILED",
    "lost": "FAILED",
}


def list_objects(
    address: str | None = None,
    filters: Sequence[tuple[str, str, Any]] | None = None,
    limit: int = LIMIT,
    timeout: int = 30,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[StateRecord]:
    """Objects that this process owns or borrows (see `troupe.state.list_objects`): large values,
    and those that other processes know; `object_id` is `ref.hex()`."""
    _only_here(address)
    return chosen([_object(each) for each in state.list_objects(limit=1 << 30)], filters, limit)


def _object(each: dict[str, Any]) -> StateRecord:
    kind = (
        "LOCAL_REFERENCE"
        if each["handles"]
        else "PINNED_IN_MEMORY"
        if each["views"]
        else "CAPTURED_IN_OBJECT"
        if each["containers"]
        else "USED_BY_PENDING_TASK"
    )
    return StateRecord(
        object_id=each["object_id"],
        object_size=each["bytes"] or -1,
        reference_type=kind,
        task_status=_OBJECT_STATES[each["state"]],
        type="DRIVER" if _is_driver() else "WORKER",
        pid=os.getpid(),
        owned=each["owned"],
        call_site="",
    )


def _is_driver() -> bool:
    return ActorContext.current is None


def get_objects(
    id: Any,  # noqa: A002
    address: str | None = None,
    timeout: int = 30,
) -> list[StateRecord]:
    """Return this process's record of the object with this id (hex), or of this ref: one record, or
    none."""
    wanted = id if isinstance(id, str) else id.hex()
    return [each for each in list_objects(address, limit=1 << 30) if each["object_id"] == wanted]


def summarize_objects(address: str | None = None, timeout: int = 30) -> dict[str, Any]:
    """How many objects of this process there are for each reason why they are kept, and how large
    they are together."""
    objects = list_objects(address, limit=1 << 30)
    summary: dict[str, dict[str, Any]] = {}
    for each in objects:
        row = summary.setdefault(
            each["reference_type"],
            {"total_objects": 0, "total_size_mb": 0.0, "task_state_counts": {}},
        )
        row["total_objects"] += 1
        row["total_size_mb"] += max(0, each["object_size"]) / 1e6
        row["task_state_counts"][each["task_status"]] = (
            row["task_state_counts"].get(each["task_status"], 0) + 1
        )
    return {
        "cluster": {
            "summary": summary,
            "total_objects": len(objects),
            "callsite_enabled": False,
            "total_size_mb": sum(each["total_size_mb"] for each in summary.values()),
            "summary_by": "reference_type",
        }
    }
