"""How the ranks of a group find each other through torch's store: each says where it is, the first
one the group's secret, unless all know that.

Ranks of a launch know it from their head: whoever reaches their store reads and writes it, and must
learn no secret there, nor set one. The store's keys are this group's own (torch gives each group a
prefix). Where the ranks are on several nodes each listens at a port too, which it says once all
know that; on one node nothing listens that another machine can reach.
"""

from __future__ import annotations

import os
from typing import Any

_SECRET_BYTES = 32
# the launch sets it to what reaches its other nodes, `lo` where there are none
INTERFACE = "GLOO_SOCKET_IFNAME"


def meet(
    store: Any, rank: int, size: int, door: Any, known: bytes | None
) -> tuple[bytes, list[bytes]]:
    """The group's secret and all ranks' cards.

    `known`: the secret, where all ranks have it; else it is rank 0's, in a store that nobody else
    reaches. Blocks. RuntimeError: this node has no address for the others.
    """
    if rank == 0 and known is None:
        store.set("troupe/secret", os.urandom(_SECRET_BYTES).hex())
    cards = _told(store, "card", rank, size, bytes(door.card))
    if len({_host_of(card) for card in cards}) > 1:
        listen(door)
        cards = _told(store, "address", rank, size, bytes(door.card))
    return bytes.fromhex(
        bytes(store.get("troupe/secret")).decode()
    ) if known is None else known, cards


def listen(door: Any) -> None:
    """At the interface that the environment names, the first of a list, else at the one that
    reaches the launch's store."""
    interface = os.environ.get(INTERFACE, "").split(",")[0]
    try:
        door.listen(interface, os.environ.get("MASTER_ADDR", ""))
    except Exception as error:
        said = f" ({INTERFACE} names it)" if interface else ""
        raise RuntimeError(
            f"a group of the backend troupe over several nodes: {error}{said}"
        ) from error


def _told(store: Any, what: str, rank: int, size: int, card: bytes) -> list[bytes]:
    """Return the text of each rank, in order; blocks until all have written theirs."""
    store.set(f"troupe/{what}/{rank}", card.hex())
    return [
        bytes.fromhex(bytes(store.get(f"troupe/{what}/{each}")).decode()) for each in range(size)
    ]


def _host_of(card: bytes) -> bytes:
    return card.split(b"\n")[1] if card.count(b"\n") >= 2 else card
