"""Puts stacks of many ranks on one screen: what each waits in, equal stacks once. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

_COLLECTIVE_FILES = (
    "torch/distributed/distributed_c10d.py",
    "torch/distributed/functional_collectives.py",
    "troupe/util/collective.py",
)
_COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "barrier",
    "reduce",
    "scatter",
    "gather",
    "all_to_all",
    "allreduce",
    "allgather",
    "reducescatter",
    "send",
    "recv",
    "irecv",
    "isend",
    "monitored_barrier",
    "_allgather_base",
)
_NATIVE_MARKS = (("nccl", "NCCL"), ("c10d::ProcessGroup", "torch.distributed"), ("gloo::", "Gloo"))
_JOINING = ("init_process_group", "init_collective_group", "new_group", "_store_based_barrier")


def waits_in(frames: list[dict[str, Any]]) -> str:
    """Return the collective that a stack (innermost frame first) waits in, or "".

    torch's collectives are Python functions of one file, so the name a user knows is on the stack;
    a work.wait() has only the native frame, which names the library.
    """
    for frame in frames:
        name = frame["name"].rpartition(".")[2]
        if any(frame["file"].endswith(file) for file in _COLLECTIVE_FILES):
            if name in _JOINING:
                return f"{name} (for the other ranks to come)"
            if name.startswith(_COLLECTIVES):
                return f"{name} (a collective)"
    for mark, library in _NATIVE_MARKS:
        if any(mark in frame["name"] for frame in frames):
            return f"a collective ({library})"
    return ""


def main_thread(process: dict[str, Any]) -> dict[str, Any] | None:
    """The thread that runs the user's code."""
    return next((each for each in process["threads"] if each["main"]), None)


def ranks_text(ranks: Iterable[int]) -> str:
    """0, 1, 2, 5 as "0-2, 5"."""
    runs = []
    for _, run in itertools.groupby(enumerate(sorted(ranks)), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        runs.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ", ".join(runs)


def frame_text(frame: dict[str, Any]) -> str:
    """Return a frame of a stack as one line."""
    place = f"{frame['file']}:{frame['line']}" if frame["line"] else frame["file"]
    return f"{frame['name']} ({place})" if place else frame["name"]


def _who(processes: list[dict[str, Any]]) -> str:
    places = ", ".join(f"pid {each['pid']} on {each['node']}" for each in processes[:4])
    more = f" and {len(processes) - 4} more" if len(processes) > 4 else ""
    ranks = [each["rank"] for each in processes if each["rank"] >= 0]
    name = f"rank{'s' if len(ranks) > 1 else ''} {ranks_text(ranks)} · " if ranks else ""
    return f"{name}{places}{more}"


def _groups(
    processes: list[dict[str, Any]],
) -> list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Return (waited-for, frames, processes), the smallest group first: processes that are
    elsewhere than most come first."""
    found: dict[tuple[Any, ...], tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = {}
    for process in processes:
        thread = main_thread(process)
        frames = thread["frames"] if thread else []
        key = tuple((each["name"], each["file"], each["line"]) for each in frames)
        found.setdefault(key, (waits_in(frames), frames, []))[2].append(process)
    return sorted(found.values(), key=lambda group: (bool(group[0]), len(group[2])))


def lines(processes: list[dict[str, Any]], *, all_threads: bool) -> Iterator[str]:
    """The screen: a summary, then stacks.

    Each process has rank, pid, node, and threads (a note with them, where less than was asked for)
    or error.
    """
    read = [each for each in processes if "error" not in each]
    groups = _groups(read)
    waiting = [each for reason, _, members in groups if reason for each in members]
    elsewhere = [each for reason, _, members in groups if not reason for each in members]
    if waiting and elsewhere and all(each["rank"] >= 0 for each in read):
        yield (
            f"{len(waiting)} of {len(read)} ranks wait in a collective; not there: rank "
            f"{ranks_text(each['rank'] for each in elsewhere)}"
        )
    for each in processes:
        if "error" in each:
            yield f"{_who([each])}: cannot be read: {each['error']}"
    for note in dict.fromkeys(each["note"] for each in read if "note" in each):
        yield f"{_who([each for each in read if each.get('note') == note])}: {note}"
    for reason, frames, members in groups:
        yield ""
        yield f"{_who(members)}{' · waits in ' + reason if reason else ''}"
        yield from (f"    {frame_text(each)}" for each in frames)
        if not frames:
            yield "    (no Python thread)"
        if all_threads:
            yield from _other_threads(members)


def _other_threads(members: list[dict[str, Any]]) -> Iterator[str]:
    for process in members:
        for thread in process["threads"]:
            if not thread["main"]:
                yield f"  {_who([process])} · thread {thread['name'] or thread['tid']}"
                yield from (f"    {frame_text(each)}" for each in thread["frames"])
