"""Ray's `ray.experimental.get_object_locations`: how large values are, and on which nodes.

    get_object_locations([ref])
    # {ref: {"node_ids": ["9f..."], "object_size": 8000112, "did_spill": False}}

A small value lies with its ref, on no node; of a large one the node of this host is told, whose
memory this process maps. View: this process, of what it owns or borrows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import troupe
from troupe import exceptions, state
from troupe._cluster import session


def get_object_locations(
    obj_refs: Sequence[Any], timeout_ms: int = -1
) -> dict[Any, dict[str, Any]]:
    """By ref: `node_ids`, `object_size` in bytes (None: not known here) and `did_spill`.

    Waits until the values are there, for `timeout_ms` at most (below 0: any time). Raises
    RuntimeError without a session, GetTimeoutError.
    """
    if session.current_or_none() is None:
        raise RuntimeError(
            "get_object_locations() is of a cluster, and this process is in none: call "
            "troupe.init() first"
        )
    refs = list(obj_refs)
    if refs:
        _, late = troupe.wait(
            refs, num_returns=len(refs), timeout=None if timeout_ms < 0 else timeout_ms / 1000
        )
        if late:
            raise exceptions.GetTimeoutError(
                f"{len(late)} of {len(refs)} values were not there within {timeout_ms} ms"
            )
    return get_local_object_locations(refs)


def get_local_object_locations(obj_refs: Sequence[Any]) -> dict[Any, dict[str, Any]]:
    """As get_object_locations(), of what is known now: returns at once."""
    if session.current_or_none() is None:
        raise RuntimeError(
            "get_local_object_locations() is of a cluster, and this process is in none: call "
            "troupe.init() first"
        )
    known = {each["object_id"]: each for each in state.list_objects(limit=1 << 30)}
    return {ref: _of(known.get(ref.hex())) for ref in obj_refs}


def _of(known: dict[str, Any] | None) -> dict[str, Any]:
    node = troupe.get_runtime_context().get_node_id()
    held = known is not None and known["state"] == "memory"
    return {
        "node_ids": [node] if held and node else [],
        "object_size": (known or {}).get("bytes") or None,
        "did_spill": False,
    }


__all__ = ["get_local_object_locations", "get_object_locations"]
