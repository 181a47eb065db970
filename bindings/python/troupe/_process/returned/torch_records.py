"""Operations that have not ended, as torch's flight recorder knows them.

The recorder has one entry for each operation, and marks an entry as retired some time after its
operation has ended. Operations that are begun together as one batch, messages mostly, have entries
that share a number and are never retired (pytorch#137969). The last of them stands for the batch.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_MESSAGE = re.compile(r"(send|recv) (\d+)(?:->|<-)(\d+)")


@dataclass(frozen=True)
class Collective:
    """A collective that has not ended: its number among those of its group and backend, from 1, its
    name, and the thread that began it."""

    number: int
    op: str
    thread: int


@dataclass(frozen=True)
class PendingMessage:
    """A message that has not ended.

    `mine`, `peer`: the two members by their ranks in the group; `thread`: who began it.
    """

    group: str
    receives: bool
    mine: int
    peer: int
    thread: int


@dataclass(frozen=True)
class Records:
    """Operations that have not ended.

    `collectives`: by (group, backend), of each that has begun a collective that is still recorded.
    """

    collectives: dict[tuple[str, str], list[Collective]] = field(default_factory=dict)
    messages: list[PendingMessage] = field(default_factory=list)


def recorded() -> Records:
    """Return what torch's recorder knows, of all groups of this process; nothing where it is
    off."""
    dump = getattr(sys.modules.get("torch._C._distributed_c10d"), "_dump_fr_trace_json", None)
    return Records() if dump is None else read(json.loads(dump(True, False)).get("entries", []))


def read(entries: Iterable[dict[str, Any]]) -> Records:
    """Return what these entries say, which are in the order in which the operations were begun."""
    batches: dict[tuple[str, str, bool, int], list[dict[str, Any]]] = {}
    for entry in entries:
        of_messages = entry["is_p2p"]
        number = entry["p2p_seq_id" if of_messages else "collective_seq_id"]
        batches.setdefault(
            (entry["process_group"][0], _split(entry)[0], of_messages, number), []
        ).append(entry)
    found = Records()
    for (group, backend, of_messages, number), batch in batches.items():
        known = None if of_messages else found.collectives.setdefault((group, backend), [])
        if batch[-1]["retired"]:
            continue
        if known is not None:
            known.append(Collective(number, _split(batch[0])[1], int(batch[0]["thread_id"])))
            continue
        for entry in batch:
            if told := _MESSAGE.fullmatch(_split(entry)[1]):
                found.messages.append(
                    PendingMessage(
                        group,
                        told[1] == "recv",
                        int(told[2]),
                        int(told[3]),
                        int(entry["thread_id"]),
                    )
                )
    return found


def _split(entry: dict[str, Any]) -> tuple[str, str]:
    """Return (backend, operation): `nccl:all_reduce`, `nccl:recv 1<-0`."""
    backend, _, op = entry["profiling_name"].partition(":")
    return backend, op
