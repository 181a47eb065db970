"""Log streams of a launch's ranks, and where they are."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator
from typing import Any

from troupe._cluster.logs import Follower, Source, lines as lines_of


def sources(
    info: dict[str, Any], rank_infos: list[dict[str, Any]], handle: Any = None
) -> list[Source]:
    """Stdout and stderr of each of these ranks, of the launch's present epoch; labelled with the
    rank. With the launch's handle, those of the processes too that take the place of ranks that
    died."""
    found = [
        Source(
            each["rank"],
            each["node"],
            {
                "launch": info["launch"],
                "rank": each["rank"],
                "stderr": is_error,
                "epoch": info["epoch"],
            },
        )
        for each in rank_infos
        for is_error in (False, True)
    ]
    if handle is None or info["on_rank_death"] != "replace":
        return found
    return [
        each._replace(again=functools.partial(_of_the_next, handle, info, each)) for each in found
    ]


def _of_the_next(handle: Any, seen: dict[str, Any], source: Source) -> Source | None:
    """Once there is news of the launch: where the rank's process writes then, or None where the
    launch was over before."""
    if seen["state"] == "terminal":
        return None
    info = handle.wait_state(lambda state: state is not seen)
    if info["epoch"] != source.target["epoch"]:
        return None
    node = next(
        (each["node"] for each in info["rank_infos"] if each["rank"] == source.label), source.node
    )
    return source._replace(node=node, again=functools.partial(_of_the_next, handle, info, source))


def lines(handle: Any, rank: int | None, follow: bool) -> Iterator[str]:
    """See LaunchHandle.logs."""
    if follow:
        info = handle.wait_state(_has_ranks)
    else:
        _, update, _ = handle.session.request("GetLaunch", {"launch": handle.id})
        info = update["info"]
    chosen = _chosen(handle, info, rank)
    if follow:
        for number, _, line in Follower(handle.session, chosen):
            yield line if rank is not None else f"[{number}] {line}"
        return
    for source in chosen:
        for line in lines_of(handle.session, source, follow=False):
            yield line if rank is not None else f"[{source.label}] {line}"


def news(handle: Any, rank: int | None) -> Iterator[tuple[Hashable, str, list[str], list[str]]]:
    """As `lines` that follow, as it comes: (which stream, whose it is, lines that are finished,
    rows that still change)."""
    for number, is_error, finished, bars in Follower(
        handle.session, _chosen(handle, handle.wait_state(_has_ranks), rank)
    ).news():
        yield (number, is_error), "" if rank is not None else f"[{number}]", finished, bars


def _chosen(handle: Any, info: dict[str, Any], rank: int | None) -> list[Source]:
    if rank is not None and not 0 <= rank < info["ranks"]:
        raise ValueError(
            f"launch {info['launch'][:4]} has ranks 0 to {info['ranks'] - 1}, not {rank}"
        )
    return sources(
        info, [each for each in info["rank_infos"] if rank is None or each["rank"] == rank], handle
    )


def _has_ranks(info: dict[str, Any]) -> bool:
    return info["state"] == "terminal" or (
        info["state"] in ("starting", "running") and bool(info["rank_infos"])
    )
