"""The port at which a job's processes meet: free on its node until the job ends, and told to all of
them before one begins.

A rank binds it without listening, and what it becomes by exec inherits the socket. So no one else
is given the port, and the program itself may listen there: rank 0's torch, or a launcher that the
command runs on each node. Every rank tells its port before it says that it is prepared, and none
begins before all have: who asks then finds all there are, and nobody waits.
"""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._cluster import workers

SCOPE = "launch ports"


class Held:
    """A port of this process, and of what it becomes."""

    def __init__(self) -> None:
        dual = socket.has_dualstack_ipv6()
        self._socket = socket.socket(
            socket.AF_INET6 if dual else socket.AF_INET, socket.SOCK_STREAM
        )
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            self._socket.setsockopt(socket.SOL_SOCKET, option, 1)
        if dual:
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self._socket.bind(("", 0))
        self._socket.set_inheritable(True)
        self.port: int = self._socket.getsockname()[1]


def key(launch: str, epoch: int, rank: int) -> str:
    """Under which a rank tells its port."""
    return f"{launch}/{epoch}/{rank}"


def tell(session: Any, context: Any, text: str) -> None:
    """To the ranks of the launch."""
    session.request(
        "KvPut",
        {"scope": SCOPE, "key": key(context.launch, context.epoch, context.rank)},
        text.encode(),
    )


def told(session: Any, context: Any, rank: int) -> str:
    """Return the port that a rank has published."""
    return bytes(
        session.request("KvGet", {"scope": SCOPE, "key": key(context.launch, context.epoch, rank)})[
            2
        ]
    ).decode()


class Meeting:
    """Rank 0's port, as MASTER_PORT. On its own node it is in the job's directory, `folder`."""

    def __init__(self, session: Any, context: Any, folder: Path) -> None:
        self._held = Held() if context.rank == 0 else None
        self._file = folder / "port"
        if self._held is not None:
            self._file.write_text(str(self._held.port))
            if context.node_count > 1:
                tell(session, context, str(self._held.port))

    def variables(self, session: Any, context: Any) -> dict[str, str]:
        """Return the environment variables by which the processes find the store.

        Rank 0 serves it, so torch is not told that there is a store already.
        """
        port = self._file.read_text() if self._file.exists() else told(session, context, 0)
        return {"MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": "False"}


class Addresses:
    """A port of every rank."""

    def __init__(self, session: Any, context: Any) -> None:
        self._held = Held()
        host = next(
            each["listen_host"]
            for each in workers.node_infos(session)
            if each["node"] == context.node
        )
        tell(
            session,
            context,
            f"[{host}]:{self._held.port}" if ":" in host else f"{host}:{self._held.port}",
        )

    def all(self, session: Any, context: Any) -> list[str]:
        """host:port of each rank, once all are prepared."""
        return [told(session, context, rank) for rank in range(context.world_size)]


def told_by_all(session: Any) -> list[str]:
    """Keys of what ranks of any launch have told."""
    return list(session.request("KvList", {"scope": SCOPE, "prefix": ""})[1]["keys"])


def forget(session: Any, keys: list[str], running: set[str]) -> None:
    """Takes away those that are of none of these launches, if no other program has.

    `running` is to be newer than `keys`: a launch that has just begun is in it then.
    """
    for each in keys:
        if each.partition("/")[0] not in running:
            with contextlib.suppress(
                exceptions.NotFoundError
            ):  # two programs submit at once, and both tidy up
                session.request("KvDelete", {"scope": SCOPE, "key": each})
