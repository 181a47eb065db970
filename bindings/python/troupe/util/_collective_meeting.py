"""How the members of a collective group find each other: an actor that keeps what they say, and
torch's store over it.

The meeting is a named async actor, made by whoever comes first. What is said goes over the
connections of actor calls, which are authenticated; the tensors themselves travel as torch's
backends send them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import time
from collections.abc import Sequence
from typing import Any

import torch.distributed as dist

import troupe
from troupe import _pickled
from troupe._cluster import session as _session
from troupe._typed.per_session import PerSession

NAMESPACE = "troupe.collective:"  # and the session's own, in front of the groups' names


@dataclasses.dataclass(frozen=True)
class Member:
    """A joining member; `host`: where it runs."""

    rank: int
    world_size: int
    backend: str
    host: str


class Meeting:
    """The actor.

    A round is one making of the group, and complete when all its ranks are there; who joins after
    that begins another one, by which those of the round before are no longer heard.
    """

    def __init__(self) -> None:
        self._round = 0
        self._members: dict[int, Member] = {}
        self._said: dict[str, bytes] = {}
        self._news = asyncio.Event()

    async def join(self, member: Member, timeout_s: float) -> tuple[int, list[str]]:
        """The round and the hosts of all ranks, once all are there.

        Raises ValueError for one that does not fit, TimeoutError with the ranks that are missing.
        """
        members = self._admit(member)
        number = self._round
        self._tell()
        try:
            await asyncio.wait_for(
                self._until(lambda: len(members) == member.world_size), timeout_s
            )
        except TimeoutError:
            missing = [rank for rank in range(member.world_size) if rank not in members]
            del members[member.rank]
            raise TimeoutError(
                f"ranks {missing} of {member.world_size} had not joined {timeout_s:g} s after rank "
                f"{member.rank} had"
            ) from None
        return number, [members[rank].host for rank in range(member.world_size)]

    def _admit(self, member: Member) -> dict[int, Member]:
        if self._members and len(self._members) == next(iter(self._members.values())).world_size:
            self._round += 1
            self._members, self._said = {}, {}
        for each in self._members.values():
            if (each.world_size, each.backend) != (member.world_size, member.backend):
                raise ValueError(
                    f"rank {each.rank} said world_size={each.world_size} and "
                    f"backend={each.backend!r}, rank "
                    f"{member.rank} says {member.world_size} and {member.backend!r}"
                )
        if member.rank in self._members:
            raise ValueError(f"another process has joined as rank {member.rank}")
        self._members[member.rank] = member
        return self._members

    def put(self, number: int, key: str, value: bytes) -> None:
        """Store a value of torch's store."""
        if number == self._round:
            self._said[key] = value
            self._tell()

    def add(self, number: int, key: str, amount: int) -> int:
        """Counts; what it is then."""
        value = int(self._said.get(key, b"0")) + amount
        self.put(number, key, str(value).encode())
        return value

    def append(self, number: int, key: str, value: bytes) -> None:
        """Adds to what was said."""
        self.put(number, key, self._said.get(key, b"") + value)

    def compare_set(self, number: int, key: str, expected: bytes, value: bytes) -> bytes:
        """Says `value` where `expected` was said, or nothing was and nothing is expected; what is
        said then, `expected` where still nothing is."""
        there = self._said.get(key)
        if there == expected or (there is None and not expected):
            self.put(number, key, value)
            return value
        return expected if there is None else there

    def count(self, number: int) -> int:
        """How many keys there are."""
        return len(self._said) if number == self._round else 0

    def has(self, number: int, keys: Sequence[str]) -> bool:
        """Return True if all keys have values."""
        return number == self._round and all(key in self._said for key in keys)

    async def get(self, number: int, keys: Sequence[str], timeout_s: float) -> list[bytes]:
        """Wait for the values of `keys` and return them."""
        try:
            await asyncio.wait_for(
                self._until(lambda: self.has(number, keys) or self._round != number), timeout_s
            )
        except TimeoutError:
            missing = [key for key in keys if key not in self._said]
            raise TimeoutError(f"nobody said {missing} within {timeout_s:g} s") from None
        if self._round != number:
            raise RuntimeError("the group was made anew meanwhile: another process has this rank")
        return [self._said[key] for key in keys]

    def drop(self, number: int, key: str) -> bool:
        """Forgets a key; whether it was there."""
        return number == self._round and self._said.pop(key, None) is not None

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _until(self, holds: Any) -> None:
        while not holds():
            await self._news.wait()


_meetings: PerSession[dict[Any, Any]] = PerSession("meetings")


def meeting(group: str) -> Any:
    """The group's meeting, made if there is none."""
    session = _session.current()
    namespace = NAMESPACE + session.namespace
    found = (
        troupe.remote(Meeting)
        .options(name=group, namespace=namespace, get_if_exists=True, num_cpus=0)
        .remote()
    )
    # The maker keeps it as long as it can: others, who have no handle that is counted, meet there
    # after it has left.
    _meetings.of(session, dict).setdefault(found, found)
    return found


def join(group: str, member: Member, timeout_s: float) -> tuple[Any, int, list[str]]:
    """The group's meeting, and what its `join` gives.

    One that ends meanwhile, with the process that made it, was of a group that had this name
    before.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        there = meeting(group)
        try:
            return there, *troupe.get(there.join.remote(member, timeout_s))
        except troupe.exceptions.ActorDiedError:
            timeout_s = deadline - time.monotonic()
            if timeout_s <= 0:
                raise


def _bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class MeetingStore(dist.Store):  # type: ignore[misc]
    """torch's store, of one round of a meeting."""

    def __init__(self, actor: Any, number: int, timeout: datetime.timedelta) -> None:
        super().__init__()
        self._actor = actor
        self._number = number
        self._timeout = timeout

    def set(self, key: str, value: bytes | str) -> None:  # noqa: A003  (torch's name)
        """See torch.distributed.Store, as for all that follow."""
        troupe.get(self._actor.put.remote(self._number, key, _bytes(value)))

    def get(self, key: str) -> bytes:
        """Waits for it."""
        return self._get([key], self._timeout)[0]

    def add(self, key: str, amount: int) -> int:
        """Counts."""
        found: int = troupe.get(self._actor.add.remote(self._number, key, amount))
        return found

    def check(self, keys: list[str]) -> bool:
        """Return True if all keys have values."""
        found: bool = troupe.get(self._actor.has.remote(self._number, list(keys)))
        return found

    def wait(self, keys: list[str], timeout: datetime.timedelta | None = None) -> None:
        """Until all are there."""
        self._get(list(keys), timeout or self._timeout)

    def delete_key(self, key: str) -> bool:
        """Forgets it."""
        found: bool = troupe.get(self._actor.drop.remote(self._number, key))
        return found

    def clone(self) -> MeetingStore:
        """Return a store of the same keys for another thread: this one, which serves any thread,
        and whose Python part its owner keeps."""
        return self

    def compare_set(self, key: str, expected: bytes | str, value: bytes | str) -> bytes:
        """Sets it where it is as expected; what it is then."""
        found: bytes = troupe.get(
            self._actor.compare_set.remote(self._number, key, _bytes(expected), _bytes(value))
        )
        return found

    def append(self, key: str, value: bytes | str) -> None:
        """Adds to it."""
        troupe.get(self._actor.append.remote(self._number, key, _bytes(value)))

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Waits for all."""
        return self._get(list(keys), self._timeout)

    def multi_set(self, keys: list[str], values: list[bytes | str]) -> None:
        """Sets all."""
        troupe.get(
            [
                self._actor.put.remote(self._number, key, _bytes(value))
                for key, value in zip(keys, values, strict=True)
            ]
        )

    def num_keys(self) -> int:
        """How many there are."""
        found: int = troupe.get(self._actor.count.remote(self._number))
        return found

    def has_extended_api(self) -> bool:
        """Return True: append, multi_get and multi_set are there."""
        return True

    # The names by which torch's C++ asks for them.
    deleteKey = delete_key  # noqa: N815
    getNumKeys = num_keys  # noqa: N815

    def _get(self, keys: list[str], timeout: datetime.timedelta) -> list[bytes]:
        return troupe.get(self._actor.get.remote(self._number, keys, timeout.total_seconds()))


_pickled.named_in("troupe._pickled", Meeting, Member)
