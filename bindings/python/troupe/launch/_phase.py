"""The phase of a launch, as one line for a waiting person. Pure."""

from __future__ import annotations

from typing import Any


def text(info: dict[str, Any], elapsed_s: float, *, again: str = "") -> str:
    """Return the line for a LaunchInfo; "" once the launch is over.

    `again`: which attempt it is, where it is not the first.
    """
    state, ranks = info["state"], many(info["ranks"], "rank")
    if state in ("queued", "reserving"):
        place = f" · place {info['queue_place']} in the queue" if info["queue_place"] else ""
        what = f"waiting{place}: {info['waiting_for']}" if info["waiting_for"] else f"queued{place}"
    elif state == "starting":
        nodes = len({each["node"] for each in info["rank_infos"]})
        what = (
            f"starting {ranks}"
            + (f" on {many(nodes, 'node')}" if nodes else "")
            + (f", {info['ready_ranks']} ready" if info["ready_ranks"] else "")
        )
    elif state == "running":
        done = sum(1 for each in info["rank_infos"] if each["outcome"] != "none")
        what = f"{ranks} running" + (f", {done} of them ended" if done else "")
    elif state == "stopping":
        what = "stopping"
    else:
        return ""
    return f"{clock(elapsed_s)}{again} · {what}"


def clock(seconds: float) -> str:
    """As a person reads it: 0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def many(count: int, noun: str) -> str:
    """1 rank, 2 ranks."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
