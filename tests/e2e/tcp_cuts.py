"""Ends connections of this process under what uses them."""

from __future__ import annotations

import os
import socket
import sys

import cloudpickle

import troupe

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # another host would not have this file


def port_of(node_id: str) -> int:
    """Return the port where a node's worker listens for calls of other hosts."""
    return next(
        int(node["NodeManagerPort"]) for node in troupe.nodes() if node["NodeID"] == node_id
    )


def cut_tcp(ports: set[int], how: int = socket.SHUT_RDWR) -> int:
    """Ends this process's TCP connections to these ports; how many there were."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            duplicate = socket.socket(
                fileno=os.dup(int(name))
            )  # so that its number cannot become another's
        except OSError:
            continue
        with duplicate:
            try:
                if duplicate.family == socket.AF_INET and duplicate.getpeername()[1] in ports:
                    duplicate.shutdown(how)
                    count += 1
            except OSError:
                continue
    return count
