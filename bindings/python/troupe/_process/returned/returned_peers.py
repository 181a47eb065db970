"""Tells the head when this rank waits in a group for a rank that has returned: it can never come
(head/core/launched/gang/returned.h decides).

Called by the thread that watches groups. It costs nothing until ranks have returned, and nothing
while this process's main thread waits for nobody. What counts is the operation that it waits in and
who belongs to that, never how long it waits: the time only says when it is worth while to look, and
to ask once more.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from troupe._code import failures
from troupe._process import group_epochs, group_names
from troupe._process.returned import group_counts, message_counts, torch_records
from troupe._process.returned.message_counts import Message
from troupe._process.returned.stillness import Stillness
from troupe._process.returned.torch_records import Collective, PendingMessage
from troupe.launch import _parts

STILL_S = 2.0
"""So long this process has begun nothing, and waited at one place, when it is looked at."""
AGAIN_S_MAX = 30.0
NAMED_MAX = 256
"""Ranks in one word to the head; the next word names others."""
_WAITS = ("torch/distributed/", "torch/autograd/graph.py", "torch/futures/", "torch/_ops.py")
_ON_GPU = "nccl"
"""The backend that a process waits for in any line of its program."""
_INIT_ARGUMENTS = ("backend", "init_method", "timeout", "world_size", "rank", "store")
_BARRIER = "TORCH_DIST_INIT_BARRIER"
"""Variable of torch: `new_group` ends by a barrier of all ranks"""
_WAITS_FOR_THREADS = ("/threading.py", "/concurrent/futures/", "/queue.py")


class Making:
    """A group that this process makes: its name, by which operation, and the ranks of the default
    group that it waits for; None: all."""

    def __init__(self, op: str, members: list[int] | None) -> None:
        self.op, self.members, self.name = op, members, ""


_makings: list[Making] = []


def name_making(name: str) -> None:
    """The group that is being made has this name."""
    group_counts.note_making(name)
    if _makings:
        _makings[-1].name = name


def is_making() -> bool:
    """Return True if a group is being made now."""
    return bool(_makings)


def wrap_making(make: Any, op: str) -> Any:
    """`init_process_group` or `new_group`, noted while it runs."""

    def noted(*args: Any, **kwargs: Any) -> Any:
        ranks = (
            (args[0] if args else kwargs.get("ranks"))
            if op == "new_group" and not _ends_by_barrier(kwargs)
            else None
        )
        making = Making(op, None if ranks is None else [int(rank) for rank in ranks])
        if op == "init_process_group" and not _of_launch(
            {**dict(zip(_INIT_ARGUMENTS, args, strict=False)), **kwargs}
        ):
            return make(*args, **kwargs)
        _makings.append(making)
        try:
            return make(*args, **kwargs)
        finally:
            _makings.remove(making)

    return noted


def _ends_by_barrier(given: dict[str, Any]) -> bool:
    """Return whether `new_group` with these arguments waits for all ranks of the default group, and
    not for its members alone."""
    return os.environ.get(_BARRIER, "0") == "1" and not given.get("use_local_synchronization")


def _of_launch(given: dict[str, Any]) -> bool:
    """Return True if a default group with these arguments is the one of all ranks of the launch."""
    rank, size = group_epochs.place()
    return (
        given.get("store") is None
        and given.get("init_method") in (None, "env://")
        and given.get("rank", -1) in (-1, rank)
        and given.get("world_size", -1) in (-1, size)
    )


class Peers:
    """State of the watching thread between two looks."""

    def __init__(self) -> None:
        self._still = Stillness(STILL_S)
        self._turn = 0
        self._begun: dict[str, int] = {}  # by key of collectives, when it was looked last
        self._changed: dict[str, float] = {}  # when that was seen to change

    def look(self, module: Any, now: float, op_here: Callable[[], str]) -> None:
        """Once a second or so. `op_here`: names the operation that the main thread is in."""
        self._note_begun(module, now)
        returned = group_epochs.returned()
        if not returned or os.getpid() != group_epochs.owner():
            self._still.forget()
            return
        if self._still.has_moved(place(module), now):
            self._turn = 0
            return
        if not self._still.is_due(now):
            return
        # The head asks one question at a time: of groups whose collectives may have ended, which
        # only torch's recorder knows, the latest is first.
        words = sorted(
            _words_of_launch(module, returned),
            key=lambda word: self._changed.get(word["key"], 0.0),
            reverse=True,
        )
        self._still.look_again(
            now,
            STILL_S
            if self._turn + 1 < len(words)
            else min(max(STILL_S, self._still.still_s(now)), AGAIN_S_MAX),
        )
        if words:
            round_, turn = divmod(self._turn, len(words))
            word = words[turn]
            named = word["awaited"]
            first = round_ * NAMED_MAX % len(named) if word["kind"] != "receive_any" else 0
            group_epochs.say_awaits(
                {
                    **word,
                    "awaited": named[first : first + NAMED_MAX],
                    "op": word["op"] or op_here(),
                    "where": failures.where(),
                }
            )
        self._turn += 1

    def _note_begun(self, module: Any, now: float) -> None:
        begun = {}
        for group in list(module._world.pg_map) if module.is_initialized() else []:
            name = module._world.pg_names.get(group, "")
            begun.update(
                {
                    group_counts.collective_key(name, kind): count
                    for kind, count in group_counts.counted(group)
                }
            )
        self._changed = {
            key: self._changed.get(key, 0.0) if self._begun.get(key) == count else now
            for key, count in begun.items()
        }
        self._begun = begun


def place(module: Any) -> Any:
    """Return where the program's thread waits, with all operations this process has begun; None if
    it waits for nobody."""
    thread = _parts.thread()
    frame = sys._current_frames().get(thread)
    if frame is None:
        return None
    work = group_counts.waited_for(thread)
    groups = list(module._world.pg_map.items()) if module.is_initialized() else []
    begun = [
        (module._world.pg_names.get(group, ""), group_counts.counted(group)) for group, _ in groups
    ]
    on_gpu = any(kind == _ON_GPU for _, counts in begun for kind, _ in counts)
    if (
        work is None
        and not on_gpu
        and not _makings
        and not any(each in frame.f_code.co_filename for each in (*_WAITS, *_WAITS_FOR_THREADS))
    ):
        return None
    return id(work), 0 if on_gpu else (id(frame), frame.f_lasti), begun


def _words_of_launch(module: Any, returned: frozenset[int]) -> list[dict[str, Any]]:
    """Return what to tell the head; nothing where the default group is of another world than the
    launch's."""
    if (
        module.is_initialized()
        and (module.get_rank(), module.get_world_size()) != group_epochs.place()
    ):
        return []
    return words(module, returned)


def words(module: Any, returned: frozenset[int]) -> list[dict[str, Any]]:
    """Return what the program's thread may wait in for one of these ranks: GroupAwaits' fields, but
    for where this is."""
    if _makings:
        return _of_making(_makings[-1], returned)
    if not module.is_initialized():
        return []
    thread = _parts.thread()
    work = group_counts.waited_for(thread)
    message = (
        message_counts.message_in_call(thread) if work is None else message_counts.message_of(work)
    )
    if message is not None:
        return _of_message(module, message, returned)
    begun = (
        message_counts.totals()
    )  # before the records: whatever these have in addition only makes the numbers smaller
    known = torch_records.recorded()
    found = [
        word
        for each in pending_messages(known.messages, begun)
        for word in _of_message(module, each, returned)
    ]
    for group in list(module._world.pg_map):
        name = module._world.pg_names.get(group, "")
        awaited = sorted(returned & set(_members(module, group)))
        if not awaited or not message_counts.is_clear(name):
            continue
        for kind, count in group_counts.counted(group):
            if waits := _oldest(known.collectives.get((name, kind)), count, on_gpu=kind == _ON_GPU):
                found.append(
                    {
                        "torch_group": group_names.shown(name),
                        "key": group_counts.collective_key(name, kind),
                        "kind": "collective",
                        "operation": waits.number,
                        "op": waits.op,
                        "awaited": awaited,
                    }
                )
    return found


def pending_messages(
    pending: Sequence[PendingMessage], begun: Mapping[tuple[str, bool, int, int | None], int]
) -> list[Message]:
    """Return the oldest messages that have not ended, one for each member and direction in which
    one is waited for. `begun`: `message_counts.totals`."""
    left = [(each.group, each.receives, each.mine, each.peer) for each in pending]
    waited_for = {key for key, each in zip(left, pending, strict=True) if _is_waited_for(each)}
    oldest = [
        Message(*key, begun.get(key, 0) - count + 1)
        for key, count in Counter(left).items()
        if key in waited_for
    ]
    return [each for each in oldest if each.number > 0]


def _members(module: Any, group: Any) -> list[int]:
    """By their ranks in the default group, in the group's order."""
    of_group = module._world.pg_group_ranks.get(group, {})
    return sorted(of_group, key=of_group.__getitem__)


def _of_making(making: Making, returned: frozenset[int]) -> list[dict[str, Any]]:
    awaited = sorted(returned if making.members is None else returned & set(making.members))
    if not awaited or not making.name:
        return []
    return [
        {
            "torch_group": group_names.shown(making.name),
            "key": group_counts.making_key(making.name),
            "kind": "making",
            "operation": 1,
            "op": making.op,
            "awaited": awaited,
        }
    ]


def _of_message(module: Any, message: Message, returned: frozenset[int]) -> list[dict[str, Any]]:
    group = next(
        (
            each
            for each in list(module._world.pg_map)
            if module._world.pg_names.get(each) == message.group
        ),
        None,
    )
    if group is None:
        return []
    members = _members(module, group)
    word = {"torch_group": group_names.shown(message.group), "operation": message.number, "op": ""}
    if message.peer is not None:
        if members[message.peer] not in returned:
            return []
        key = group_counts.message_key(
            message.group, not message.receives, message.peer, message.mine
        )
        return [
            {
                **word,
                "key": key,
                "kind": "receive" if message.receives else "send",
                "awaited": [members[message.peer]],
            }
        ]
    others = [rank for place, rank in enumerate(members) if place != message.mine]
    if not returned.issuperset(others) or len(others) > NAMED_MAX:
        return []
    return [
        {
            **word,
            "key": group_counts.sent_to_key(message.group, message.mine),
            "kind": "receive_any",
            "awaited": others,
        }
    ]


def _oldest(known: list[Collective] | None, count: int, *, on_gpu: bool) -> Collective | None:
    """The collective of a group's backend that this process waits in; None: in none of them."""
    if known is not None:
        return min(filter(_is_waited_for, known), key=lambda each: each.number, default=None)
    frame = sys._current_frames().get(_parts.thread())
    in_torch = frame is not None and any(each in frame.f_code.co_filename for each in _WAITS)
    in_wait = group_counts.waited_for(_parts.thread()) is not None
    return Collective(count, "", 0) if count and (on_gpu or in_torch or in_wait) else None


def _is_waited_for(each: Collective | PendingMessage) -> bool:
    """Not what a thread in the background began, which nobody waits for at the end of the
    process."""
    thread = threading._active.get(each.thread)  # type: ignore[attr-defined]
    return thread is None or not thread.daemon or each.thread == _parts.thread()
