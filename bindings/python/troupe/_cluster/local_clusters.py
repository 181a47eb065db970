"""The clusters that programs of this user made for themselves on this host, by init() or
cluster_utils: other programs of the user join them.

Each lies in a folder of the system's folder for temporary files that is its program's own
(`_cluster.scratch`). Such a folder of somebody else's is not looked into: what it says would be
believed.
"""

from __future__ import annotations

import os
from pathlib import Path

from troupe._cluster import folders, home, scratch

EMBEDDED, SEVERAL = "troupe-embedded-", "troupe-cluster-"
# for which TROUPE_HOME a program made it: of others it is not the one that is meant by "auto"
_HOME = "home"


def claim(folder: Path) -> None:
    """Says in an embedded cluster's folder whose it is."""
    with open(folder / _HOME, "w", encoding="utf-8", opener=folders.open_private) as file:
        file.write(_own_home())


def _own_home() -> str:
    return os.path.abspath(os.environ.get("TROUPE_HOME") or Path.home() / ".troupe")


def clusters(*, of_this_home: bool = False) -> list[home.ClusterHome]:
    """Return the running local clusters; with `of_this_home`, only those made by init() with this
    process's TROUPE_HOME."""
    found = []
    for folder in scratch.folders(EMBEDDED):
        if not of_this_home or _read(folder / _HOME) == _own_home():
            found.append(home.cluster_of(folder / "head.json"))
    if not of_this_home:
        for folder in scratch.folders(SEVERAL):
            found += [home.cluster_of(path) for path in folder.glob("clusters/*/head.json")]
    return [each for each in found if each is not None and each.running and each.socket]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def socket_of(address: str) -> str | None:
    """The Unix socket of the head at `host:port`, where this user runs it on this host, for
    programs of the user alone or for all."""
    address = numeric(address)
    for cluster in [*home.clusters(running_only=True), *clusters()]:
        if cluster.address == address and cluster.socket:
            return cluster.socket
    return None


def is_of_a_program(address: str) -> bool:
    """Return True if the cluster at `address` ends with the program that made it."""
    return any(cluster.address == numeric(address) for cluster in clusters())


def numeric(address: str) -> str:
    """The address as heads of this host write it."""
    return (
        "127.0.0.1:" + address.removeprefix("localhost:")
        if address.startswith("localhost:")
        else address
    )
