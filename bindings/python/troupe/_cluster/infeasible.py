"""What no node of the cluster can ever hold: refused at once, or, where that is asked for, waited with until a node joins that can.

`infeasible="wait"` is an option of actors, tasks, launches and placement groups, and of init() for all of a program's and of what they
start; programs written for Ray (`troupe.ray_compat`) have it by default, as there. What waits so has its reason on stderr at once.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe import _job, exceptions
from troupe._cluster import status_lines

POLICIES = ("refuse", "wait")


def check(value: Any, *, what: str = "infeasible") -> str | None:
    """The policy, or None where none was given. Raises ValueError."""
    if value is not None and value not in POLICIES:
        raise ValueError(f"{what} must be 'refuse' or 'wait', not {value!r}")
    return value


def waits(session: Any, asked: str | None = None) -> bool:
    """Whether to wait, by the option or else the program's policy. Never inside a launch: no node joins what it has reserved."""
    return not session.launch and (asked or session.store.get("infeasible") or ("wait" if _job.follows_ray() else "refuse")) == "wait"


def request(session: Any, kind: str, fields: Mapping[str, Any], spec: dict[str, Any], payload: bytes = b"", *, asked: str | None,
            what: str) -> tuple[str, dict, bytes]:
    """A request that may be refused because no node can hold what `spec`, a part of its fields, asks for.

    `what` begins the line that says that it waits; empty: there is none. Blocks for the answer, or two. Raises PlacementError where it is
    not to wait, and what the request raises otherwise.
    """
    try:
        return session.request(kind, fields, payload)
    except exceptions.PlacementError as error:
        if not waits(session, asked):
            raise
        reason = str(error)
    spec["infeasible_waits"] = True
    answer = session.request(kind, fields, payload)  # refused where no node that joins can help
    if what:
        status_lines.say(f"{what} waits for a node that can hold it: {reason}")
    return answer
