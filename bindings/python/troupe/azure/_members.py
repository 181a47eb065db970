"""The nodes of a job that is driven from its first one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from troupe._cluster import workers


@dataclass(frozen=True)
class Members:
    """By the launch's rank: which node, its name, at which address it is, on which host."""

    nodes: tuple[str, ...]
    names: tuple[str, ...]
    addresses: tuple[str, ...]
    hosts: tuple[str, ...]

    def share_a_host(self) -> bool:
        """Return True if several members are on one host."""
        return len(set(self.hosts)) < len(self.hosts)


def of(session: Any, context: Any) -> Members:
    """Return the members of this launch."""
    there = {each["node"]: each for each in workers.node_infos(session)}
    ranks = sorted(
        session.request("GetLaunch", {"launch": context.launch})[1]["info"]["rank_infos"],
        key=lambda each: each["rank"],
    )
    nodes = tuple(each["node"] for each in ranks)
    return Members(
        nodes,
        tuple(each["node_name"] for each in ranks),
        tuple(there[node]["listen_host"] for node in nodes),
        tuple(there[node]["host"] for node in nodes),
    )


def at(address: str, port: int) -> str:
    """host:port. Pure.

    >>> at("::1", 80)
    '[::1]:80'
    """
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def host_names(own: str, names: Sequence[str]) -> list[str]:
    """Return the names of nodes for launchers that know them by names, `own` first: each once, of
    characters that all launchers accept. Pure.

    >>> host_names("vm", ["a", "b", "b"])
    ['vm', 'b', 'b-2']
    """
    found = [own]
    for rank, name in enumerate(names[1:], 1):
        plain = re.sub(r"[^A-Za-z0-9.-]", "-", name) or "node"
        found.append(f"{plain}-{rank}" if plain in found else plain)
    return found
