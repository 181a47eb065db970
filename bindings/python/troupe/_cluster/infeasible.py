"""Requests that no node of the cluster can ever hold: refused at once, or kept waiting until a node
joins that can hold them, where the program asks for that.

`infeasible="wait"` is an option of actors, tasks, launches and placement groups, and of init() for
all of a program's and of what they start; programs written for Ray (`troupe.ray_compat`) have it by
default, as there. What waits so has its reason on stderr at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from troupe import exceptions
from troupe._base import job as _job
from troupe._cluster import resources, status_lines, workers

POLICIES = ("refuse", "wait")
_SCALE = 10_000


def check(value: Any, *, what: str = "infeasible") -> str | None:
    """Return the policy, or None where none was given. Raises ValueError."""
    if value is not None and value not in POLICIES:
        raise ValueError(f"{what} must be 'refuse' or 'wait', not {value!r}")
    found: str | None = value
    return found


def waits(session: Any, asked: str | None = None) -> bool:
    """Return whether to wait, by the option or else the program's policy.

    Never inside a launch: no node joins what it has reserved.
    """
    return (
        not session.launch
        and (asked or session.infeasible or ("wait" if _job.follows_ray() else "refuse")) == "wait"
    )


def request(
    session: Any,
    kind: str,
    fields: Mapping[str, Any],
    spec: dict[str, Any],
    payload: bytes = b"",
    *,
    asked: str | None,
    what: str,
    cpus: str = "num_cpus={}",
) -> tuple[str, dict[str, Any], bytes]:
    """Send a request that may be refused because no node can hold what `spec`, a part of its
    fields, asks for; return the answer.

    `what` begins the line that says that it waits; empty: there is none. `cpus`: how the caller
    asks for `{}` CPUs. Blocks for the answer, or two. Raises PlacementError where it is not to
    wait, and what the request raises otherwise.
    """
    try:
        found: tuple[str, dict[str, Any], bytes] = session.request(kind, fields, payload)
        return found
    except exceptions.PlacementError as error:
        if not waits(session, asked):
            hint = _of_cpus(session, _bundles(spec), cpus)
            if not hint:
                raise
            raise type(error)(f"{error}\n  {hint}") from None
        reason = str(error)
    spec["infeasible_waits"] = True
    answer = session.request(kind, fields, payload)  # refused where no node that joins can help
    if what:
        status_lines.say(f"{what} waits for a node that can hold it: {reason}")
    found = answer
    return found


def _bundles(spec: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return the parts of what a launch, a placement group or an actor asks for; each part has to
    be on one node."""
    if "per_rank" in spec:
        return [resources.from_wire(spec["per_rank"])] * spec["ranks"]
    return [resources.from_wire(each["resources"]) for each in spec.get("bundles", [spec])]


def _of_cpus(session: Any, bundles: Sequence[Mapping[str, float]], option: str) -> str:
    """Return what to do where the nodes have too few CPUs in all, or for one bundle, and enough of
    all else; otherwise ""."""
    nodes = [
        resources.from_wire(each["resources"])
        for each in workers.node_infos(session)
        if each["state"] == "alive"
    ]
    if not nodes:
        return ""
    cpus = [each.get("CPU", 0.0) for each in nodes]
    asked = [each.get("CPU", 0.0) for each in bundles]
    each = max(asked)
    if not _ten_thousandths(each):  # something other than CPUs is missing
        return ""
    enough = (
        sum(asked) <= sum(cpus)
        and each <= max(cpus)
        and (min(asked) < each or room(cpus, each) >= len(asked))
    )
    names = {name for bundle in bundles for name in bundle if name != "CPU"}
    if enough or any(
        sum(bundle.get(name, 0.0) for bundle in bundles)
        > sum(node.get(name, 0.0) for node in nodes)
        for name in names
    ):
        return ""
    less = largest_share(cpus, len(asked), each) if min(asked) == each else 0.0
    fits = f"; with {option.replace('{}', f'{less:.15g}')} there are enough for all" if less else ""
    return (
        f"{sum(cpus):.15g} CPU in all, at most {max(cpus):.15g} on one node: troupe start "
        "--num-cpus N starts a node that offers N, "
        f"whatever its machine has{fits}"
    )


def room(cpus: Iterable[float], each: float) -> int:
    """Return how many parts of `each` CPUs these nodes hold; of parts of nothing, as many as one
    likes."""
    part = _ten_thousandths(each)
    return sum(_ten_thousandths(there) // part for there in cpus) if part else sys.maxsize


def largest_share(cpus: Sequence[float], count: int, below: float) -> float:
    """Return the most CPUs that each of `count` parts can have on these nodes, less than `below`;
    0.0: none."""
    least, most = 0, _ten_thousandths(below)
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if room(cpus, middle / _SCALE) >= count else (least, middle)
    return least / _SCALE


def _ten_thousandths(amount: float) -> int:
    return round(amount * _SCALE)
