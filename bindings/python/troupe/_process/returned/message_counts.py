"""How many messages this process has begun with each member of its process groups; nothing of torch's counts those.

Counting is part of every send and receive, which take as little as 15 us: it is a few dictionary operations, and what a message was is worked
out when it is asked for. Counts of a group outlive it.
"""
from __future__ import annotations

import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

RECENT_MAX = 4096
"""Messages whose Work is known; one that is older than so many others and still waited for is not told of."""


@dataclass(frozen=True)
class Message:
    """A message that this process sends or receives. `peer`: the other member by its rank in the group; None: whichever sends one."""

    group: str
    receives: bool
    mine: int
    peer: int | None
    number: int


class GroupMessages:
    """Counts of one group."""

    __slots__ = ("mine", "name", "of_device", "received", "sent", "unclear")

    def __init__(self, name: str, mine: int) -> None:
        self.name, self.mine = name, mine
        self.sent: dict[int | None, int] = {}      # by the other member's rank in the group
        self.received: dict[int | None, int] = {}  # None: from whichever member sends
        self.of_device: Counter[str] = Counter()   # by type of device
        self.unclear = False


_lock = threading.Lock()
_by_name: dict[str, GroupMessages] = {}
_by_group: dict[int, tuple[weakref.ref[Any], GroupMessages]] = {}  # by id of a ProcessGroup, which may be used again
_coalescing: set[str] = set()
_recent: deque[tuple[weakref.ref[Any], GroupMessages, bool, int | None, int]] = deque(maxlen=RECENT_MAX)


def wrap(group: type, replace_method: Callable[[Any, str, Callable[[Any], Any]], None]) -> None:
    """Count the messages of all groups. `group`: torch.distributed.ProcessGroup."""
    replace_method(group, "send", lambda send: _counted(send, receives=False))
    replace_method(group, "recv", lambda recv: _counted(recv, receives=True))
    replace_method(group, "recv_anysource", _counted_any)
    replace_method(group, "_start_coalescing", lambda start: _marked(start, _coalescing.add))
    replace_method(group, "_end_coalescing", lambda end: _marked(end, _coalescing.discard))


def _counted(begin: Any, *, receives: bool) -> Any:
    def send_or_receive(self: Any, tensors: Any, peer: int, *args: Any, **kwargs: Any) -> Any:
        work = begin(self, tensors, peer, *args, **kwargs)
        try:
            _note(self, tensors, receives, peer, work)
        except Exception:  # a group or Work of another kind: it is not counted
            return work
        return work

    return send_or_receive


def _counted_any(begin: Any) -> Any:
    def recv_anysource(self: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        work = begin(self, tensors, *args, **kwargs)
        try:
            _note(self, tensors, True, None, work)
        except Exception:  # as above
            return work
        return work

    return recv_anysource


def _marked(step: Any, note: Callable[[str], None]) -> Any:
    def coalescing(self: Any, *args: Any, **kwargs: Any) -> Any:
        note(self.group_name)
        return step(self, *args, **kwargs)

    return coalescing


def _note(group: Any, tensors: Any, receives: bool, peer: int | None, work: Any) -> None:
    known = _by_group.get(id(group))
    of_group = known[1] if known is not None and known[0]() is group else _find(group)
    tensor = tensors[0]
    counts = of_group.received if receives else of_group.sent
    with _lock:
        number = counts[peer] = counts.get(peer, 0) + 1
        of_group.of_device["cpu" if tensor.is_cpu else tensor.device.type] += 1
        if receives and peer is None:  # any message may be the one that it gets
            number = sum(of_group.received.values())
        if _coalescing and of_group.name in _coalescing:
            of_group.unclear = True
    if work is not None:
        _recent.append((weakref.ref(work), of_group, receives, peer, number))


def _find(group: Any) -> GroupMessages:
    """Return the counts of a group that is not known by its id."""
    name = group.group_name
    with _lock:
        of_group = _by_name.get(name) or _by_name.setdefault(name, GroupMessages(name, group.rank()))
        for key in [key for key, (there, _) in _by_group.items() if there() is None]:
            del _by_group[key]
        _by_group[id(group)] = weakref.ref(group), of_group
    return of_group


def all_groups() -> list[GroupMessages]:
    """Return the counts of all groups that have had messages."""
    return list(_by_name.values())


def of_device(name: str, kind: str) -> int:
    """Return how many messages of that group had tensors on devices of this type."""
    of_group = _by_name.get(name)
    return 0 if of_group is None else of_group.of_device[kind]


def is_clear(name: str) -> bool:
    """Return False for a group of which torch's numbers count batches of messages as collectives."""
    of_group = _by_name.get(name)
    return of_group is None or not of_group.unclear


def with_member(name: str, receives: bool, mine: int, peer: int | None) -> int:
    """Return how many messages member `mine` of that group, this process, has sent to, or received from, `peer`."""
    of_group = _by_name.get(name)
    if of_group is None or of_group.mine != mine:
        return 0
    return (of_group.received if receives else of_group.sent).get(peer, 0)


def sent_to(name: str, peer: int) -> int:
    """Return how many messages of that group this process has sent to `peer`."""
    of_group = _by_name.get(name)
    return 0 if of_group is None else of_group.sent.get(peer, 0)


def message_of(work: Any) -> Message | None:
    """Return the message that this Work is of; None: it is of none, or of one long ago."""
    for known, of_group, receives, peer, number in reversed(list(_recent)):
        if known() is work:
            return Message(of_group.name, receives, of_group.mine, peer, number)
    return None
