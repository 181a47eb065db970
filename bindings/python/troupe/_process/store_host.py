"""The rendezvous store of a launch, in a process of its own: no rank hosts it, no port is raced for.

Binds the interface named by MASTER_ADDR, port 0, tells the worker the port, serves until the
worker ends it. It makes the secret by which the launch's ranks know each other in groups of the backend `troupe`, too, for the worker alone. Without torch there is nothing to serve: it reports port 0 and waits, and
ranks get no MASTER_PORT.
"""
from __future__ import annotations

import os
import resource
import socket
import threading
from typing import NoReturn

from troupe._process.channel import ProcessChannel

SECRET_BYTES = 32
"""Of the secret that the launch's ranks get from the head: the store itself never has it."""


def run(channel: ProcessChannel) -> NoReturn:
    """Serves until ProcessEnd (which the control thread obeys)."""
    try:
        store, port = _open(os.environ.get("MASTER_ADDR") or "127.0.0.1")
    except ImportError:
        store, port = None, 0
    channel.send("StoreReady", {"port": port, "group_secret": os.urandom(SECRET_BYTES)})
    threading.Event().wait()
    del store
    raise AssertionError("unreachable: the control thread ends the process")


def _open(host: str) -> tuple[object, int]:
    """A TCPStore on a socket bound here, so that it listens on the chosen interface only."""
    from datetime import timedelta

    from torch.distributed import TCPStore

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each rank may have two connections: the program's, and its watching thread's
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, 0))
    listener.listen(1024)
    port = listener.getsockname()[1]
    store = TCPStore(host, port, None, True, timedelta(seconds=300), wait_for_workers=False,
                     master_listen_fd=listener.detach())
    return store, port
