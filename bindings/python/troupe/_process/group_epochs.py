"""The epochs of the ranks' group of this process's launch, where that goes on without ranks that
died (head/core/launched/gang/regroup.h).

The control thread writes here: `on_lost`, the word that ranks died and which epoch the group has
now, upon which this process's groups end at once, so that who waits in a collective raises; and
`on_formed`, who this rank is in the group of an epoch. The program's thread waits here: `wait_lost`
for the word, once a collective has failed, and `join` for the next group. An epoch that was told
while another one was formed is simply the next one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from troupe._process import gloo_sockets, nccl_groups, torch_backend

_changed = threading.Condition()


class _State:
    send: Callable[[str, dict[str, Any]], None] | None = (
        None  # to this process's worker; None: no rank
    )
    told = 1  # the epoch that the group has now
    joined = 1  # the latest that this process has said it comes to
    within = 1  # epoch of the group that this process is in
    formed: dict[str, Any] | None = None  # GroupFormed's fields, of the latest group
    dead: dict[int, dict[str, Any]]  # rank of the launch -> how it died, of all that the word named
    outlived: dict[
        int, dict[str, Any]
    ]  # losses that this process knew of when its group was formed
    limit_s = 0.0  # for all to come to a re-form
    store_port = 0  # port of the store where this process's groups meet; 0: it has met nobody
    rank = world_size = 0  # place of this process in its group
    owner = 0  # the process that this is of: children inherit it
    returned: tuple[int, frozenset[int]] = (
        1,
        frozenset(),
    )  # (an epoch of the group, its ranks that have returned)
    hang_s = 0.0  # time after which a rank that keeps others waiting is ended; 0: never
    life = 0  # the epoch in which this process took the place of one that died; 0: it took nobody's


_State.dead = {}
_State.outlived = {}


def begin(
    send: Callable[[str, dict[str, Any]], None],
    life: int,
    hang_s: float,
    rank: int,
    world_size: int,
) -> None:
    """This process is a rank.

    `life`: the group's epoch in which it takes the place of one that died; 0: it takes nobody's.
    `hang_s`: the launch's hang_timeout; 0: it has none. `rank`, `world_size`: in the gang as it
    began.
    """
    _State.send, _State.life, _State.hang_s = send, life, hang_s
    _State.rank, _State.world_size, _State.owner = rank, world_size, os.getpid()
    if life:
        _State.told = max(_State.told, life)


def on_lost(fields: dict[str, Any]) -> None:
    """PeersLost, for the control thread."""
    with _changed:
        if fields["group_epoch"] <= _State.told and _State.dead:
            return
        _State.told = max(_State.told, fields["group_epoch"])
        _State.limit_s = fields["limit_ms"] / 1000
        _State.dead = {
            **_State.dead,
            **{each["rank"]: each for each in [*fields["lost"], *fields["replaced"]]},
        }
        store_port = _State.store_port
        _changed.notify_all()
    end_groups(
        store_port,
        "; ".join(
            f"rank {each['rank']} on {each['host'] or 'its node'} died: {each['cause']}"
            for each in fields["lost"]
        ),
    )


def on_formed(fields: dict[str, Any]) -> None:
    """GroupFormed, for the control thread."""
    with _changed:
        if _State.formed is None or fields["group_epoch"] > _State.formed["group_epoch"]:
            _State.formed = fields
            _changed.notify_all()


def on_returned(fields: dict[str, Any]) -> None:
    """PeersReturned, for the control thread."""
    with _changed:
        epoch, known = _State.returned
        if fields["group_epoch"] >= epoch:
            _State.returned = (
                fields["group_epoch"],
                (known if fields["group_epoch"] == epoch else frozenset())
                | frozenset(fields["ranks"]),
            )


def of_rank() -> bool:
    """Return True if this process is a rank of a launch."""
    return _State.send is not None


def epoch() -> int:
    """The epoch of the group that this process is in."""
    return _State.within


def is_over() -> bool:
    """Return True if the group of this process has lost a rank since it was formed, or was never
    this process's."""
    return _State.told > _State.within


def outlived() -> dict[int, dict[str, Any]]:
    """The deaths that this process knew of when its group was formed: Failures by rank of the
    launch."""
    with _changed:
        return dict(_State.outlived)


def dead_since(before: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The deaths that this process was told of beside those."""
    with _changed:
        return {rank: each for rank, each in _State.dead.items() if before.get(rank) != each}


def limit_s() -> float:
    """How long all have for a re-form."""
    return _State.limit_s


def hang_s() -> float:
    """The launch's hang_timeout; 0 where it has none, and elsewhere."""
    return _State.hang_s


def place() -> tuple[int, int]:
    """This process's rank in the group that it is in, and how many ranks that has."""
    return _State.rank, _State.world_size


def owner() -> int:
    """The process that is the rank: not one that it forked."""
    return _State.owner


def returned() -> frozenset[int]:
    """The ranks of the group that this process is in that have returned, as far as the head has
    said so."""
    epoch, ranks = _State.returned
    return ranks if epoch == _State.within else frozenset()


def say_awaits(word: dict[str, Any]) -> None:
    """GroupAwaits, of the group that this process is in, unless that is over. Does not block."""
    if _State.send is not None and not is_over():
        _State.send("GroupAwaits", {**word, "group_epoch": _State.within})


def say_late(word: dict[str, Any]) -> None:
    """GroupLate, of the group that this process is in, unless that is over. Does not block."""
    if _State.send is not None and not is_over():
        _State.send("GroupLate", {**word, "group_epoch": _State.within})


def wait_lost(timeout: float) -> bool:
    """Waits until the group that this process is in is over; False when it is not after `timeout`
    seconds."""
    with _changed:
        return _changed.wait_for(is_over, timeout)


def join() -> dict[str, Any]:
    """Comes to the group's next epoch and returns GroupFormed's fields once all ranks that live
    have. Blocks; the head bounds it: who does not come within the launch's limit is a death, after
    which the others form the group of the epoch that follows."""
    assert _State.send is not None
    with _changed:
        while True:
            if _State.joined < _State.told:
                _State.joined = _State.told
                _State.send("GroupJoin", {"group_epoch": _State.joined})
            formed = _State.formed
            if formed is not None and formed["group_epoch"] == _State.told:
                _State.within = _State.told
                _State.rank, _State.world_size = formed["rank"], formed["world_size"]
                _State.outlived = dict(_State.dead)
                return formed
            _changed.wait()


def meets(port: int) -> None:
    """This process is about to connect to the store at that port, in which its group waits for
    others: word of a death ends such connections.

    Once it is connected it asks `met()`: a word that came before ended nothing.
    """
    with _changed:
        _State.store_port = port


def met() -> None:
    """Raises RuntimeError where the group that this process is in, or is about to make, has lost a
    rank. Does not block."""
    if of_rank() and is_over():
        with _changed:
            died = "; ".join(
                f"rank {rank} on {each['host'] or 'its node'}: {each['cause']}"
                for rank, each in sorted(_State.dead.items())
            )
        why = (
            f"for ranks have died: {died}"
            if died
            else "for this process has taken the place of a rank that died"
        )
        raise RuntimeError(
            f"the group of epoch {_State.within} cannot be made, {why}\n"
            "  troupe.train.reform() makes that of the ranks that live, as the next of "
            "troupe.train.attempts() does"
        )


def end_groups(store_port: int, reason: str) -> None:
    """Ends what this process waits in: Gloo's groups by their connections, Troupe's with the
    reason, NCCL's by an abort on a thread of its own; and by its connections to the store a group
    that is being made, and whatever else waits for a key that nobody will write."""
    torch_backend.stop_all(reason)
    gloo_sockets.cut(store_port)
    nccl_groups.abort_all()
