"""How many messages this process has begun with each member of its process groups; nothing of
torch's counts those.

Counting is part of every send and receive, which take as little as 15 us, so it is done in C++
(bindings/train/bind_noted_calls.cc). Counts of a group outlive it.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from troupe import _native as native


@dataclass(frozen=True)
class Message:
    """A message that this process sends or receives.

    `peer`: the other member by its rank in the group; None: whichever sends one.
    """

    group: str
    receives: bool
    mine: int
    peer: int | None
    number: int


class GroupMessages:
    """Counts of one group."""

    __slots__ = ("elsewhere", "has_devices", "mine", "name", "received", "sent", "unclear")

    def __init__(self, name: str, mine: int, has_devices: bool) -> None:
        """`has_devices`: messages are counted by the device of their tensors, for these have
        different backends."""
        self.name, self.mine, self.has_devices = name, mine, has_devices
        self.sent: dict[int | None, int] = {}  # by the other member's rank in the group
        self.received: dict[int | None, int] = {}  # None: from whichever member sends
        self.elsewhere: Counter[str] = Counter()  # counts by type of device, other than the CPU
        self.unclear = False


_lock = threading.Lock()
_by_name: dict[str, GroupMessages] = {}
_coalescing: set[str] = set()


def wrap(group: type, replace_method: Callable[[Any, str, Callable[[Any], Any]], None]) -> None:
    """Count the messages of all groups. `group`: torch.distributed.ProcessGroup."""
    for name, find, peer_at in (
        ("send", _find_sent, 2),
        ("recv", _find_received, 2),
        ("recv_anysource", _find_received, 0),
    ):
        replace_method(
            group,
            name,
            functools.partial(_counted, find=find, peer_at=peer_at),
        )
    replace_method(group, "_start_coalescing", lambda start: _marked(start, _coalescing.add))
    replace_method(group, "_end_coalescing", lambda end: _marked(end, _coalescing.discard))


def _counted(
    begin: Callable[..., Any], *, find: Callable[..., Any], peer_at: int
) -> Callable[..., Any]:
    counted: Callable[..., Any] = native.counted_message(
        begin, find, _note_other, _coalescing, peer_at
    )
    return counted


def _marked(step: Any, note: Callable[[str], None]) -> Any:
    def coalescing(self: Any, *args: Any, **kwargs: Any) -> Any:
        note(self.group_name)
        return step(self, *args, **kwargs)

    return coalescing


def _find_sent(group: Any) -> tuple[weakref.ref[Any], GroupMessages, dict[int | None, int], bool]:
    of_group = _find(group)
    return weakref.ref(group), of_group, of_group.sent, of_group.has_devices


def _find_received(
    group: Any,
) -> tuple[weakref.ref[Any], GroupMessages, dict[int | None, int], bool]:
    of_group = _find(group)
    return weakref.ref(group), of_group, of_group.received, of_group.has_devices


def _find(group: Any) -> GroupMessages:
    name = group.group_name
    with _lock:
        return _by_name.get(name) or _by_name.setdefault(
            name, GroupMessages(name, group.rank(), len(_backends(group)) > 1)
        )


def _backends(group: Any) -> set[str]:
    """Return the names of the backends that the group's devices have."""
    found = set()
    for device in group._device_types:
        with contextlib.suppress(RuntimeError):  # raised where there is no backend for this device
            found.add(group._get_backend(device).name())
    return found


def _note_other(of_group: GroupMessages, tensors: Any) -> None:
    """Note a message of a tensor that is not the CPU's, or while a batch of messages begins."""
    kind = tensors[0].device.type
    with _lock:
        if of_group.has_devices and kind != "cpu":
            of_group.elsewhere[kind] += 1
        if of_group.name in _coalescing:
            of_group.unclear = True


def all_groups() -> list[GroupMessages]:
    """Return the counts of all groups that have had messages."""
    return list(_by_name.values())


def on_devices(name: str, kinds: Collection[str]) -> int:
    """Return how many messages of that group had tensors on devices of these types, which one
    backend has."""
    of_group = _by_name.get(name)
    if of_group is None:
        return 0
    elsewhere = sum(count for kind, count in of_group.elsewhere.items() if kind not in kinds)
    if "cpu" in kinds or not of_group.has_devices:
        return (
            sum(of_group.sent.copy().values()) + sum(of_group.received.copy().values()) - elsewhere
        )
    return sum(of_group.elsewhere[kind] for kind in kinds)


def totals() -> dict[tuple[str, bool, int, int | None], int]:
    """Return how many messages were begun, by (group, whether they were received, this process's
    rank in it, the other member's)."""
    return {
        (each.name, receives, each.mine, peer): count
        for each in all_groups()
        for receives, counts in ((False, each.sent), (True, each.received))
        for peer, count in counts.copy().items()
    }


def is_clear(name: str) -> bool:
    """Return False for a group of which torch's numbers count batches of messages as
    collectives."""
    of_group = _by_name.get(name)
    return of_group is None or not of_group.unclear


def with_member(name: str, receives: bool, mine: int, peer: int | None) -> int:
    """Return how many messages member `mine` of that group, this process, has sent to, or received
    from, `peer`."""
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
    return _named(native.message_of(work))


def message_in_call(thread: int) -> Message | None:
    """Return the message that this thread is about to begin: NCCL waits in that call for the other
    member. None: it is in no such call."""
    return _named(native.message_in_call(thread))


def _named(known: Any) -> Message | None:
    if known is None:
        return None
    of_group, counts, peer, number = known
    return Message(of_group.name, counts is of_group.received, of_group.mine, peer, number)
