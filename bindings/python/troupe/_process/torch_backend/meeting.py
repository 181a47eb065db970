"""How the ranks of a group find each other through torch's store: each says where it is, the first one the group's secret.

The store's keys are this group's own (torch gives each group a prefix). All ranks must be on one node.
"""
from __future__ import annotations

from typing import Any


def meet(store: Any, rank: int, size: int, card: bytes, secret: bytes) -> tuple[bytes, list[bytes]]:
    """The group's secret, which is rank 0's, and all ranks' cards. Blocks. Raises RuntimeError for a group over several nodes."""
    if rank == 0:
        store.set("troupe/secret", secret.hex())
    store.set(f"troupe/card/{rank}", card.hex())
    cards = [bytes.fromhex(bytes(store.get(f"troupe/card/{each}")).decode()) for each in range(size)]
    hosts: dict[bytes, list[int]] = {}
    for each, found in enumerate(cards):
        hosts.setdefault(_host_of(found), []).append(each)
    if len(hosts) > 1:
        places = "; ".join(f"ranks {', '.join(map(str, ranks))}" for ranks in hosts.values())
        raise RuntimeError(f"the backend troupe serves ranks of one node, and this group is on {len(hosts)}: {places}\n"
                           '  use init_process_group("gloo") for groups over several nodes')
    return bytes.fromhex(bytes(store.get("troupe/secret")).decode()), cards


def _host_of(card: bytes) -> bytes:
    return card.split(b"\n")[1] if card.count(b"\n") >= 2 else card
