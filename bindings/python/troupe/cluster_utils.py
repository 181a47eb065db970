"""Clusters of several nodes on this machine, of real processes, for tests.

Ray's `ray.cluster_utils`.

    from troupe.cluster_utils import Cluster

    with Cluster(initialize_head=True, head_node_args={"num_cpus": 1}) as cluster:
        second = cluster.add_node(num_cpus=2, resources={"license": 1})
        cluster.connect()                       # or troupe.init(cluster.address)
        ...
        cluster.remove_node(second, allow_graceful=False)   # as if its machine had gone

View: this process. What it starts ends with it, whatever way it ends, and leaves nothing.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troupe import exceptions
from troupe._cluster import (
    connect as _cluster,
    executables,
    home as _home,
    local_clusters,
    node_start,
    scratch,
    session as _session,
)

_STOP_GRACE_S = 5.0
_ASK_AGAIN_S = 0.02
# Options of Ray's for its own parts; they mean nothing here.
_IGNORED = {
    "dashboard_host",
    "dashboard_port",
    "enable_object_reconstruction",
    "include_dashboard",
    "_system_config",
}


class ClusterNode:
    """A node of a Cluster: `name`, `node_id` (hex), `pid` of its worker, `alive`."""

    def __init__(self, started: executables.Started, folder: Path, name: str) -> None:
        self._started = started
        self._folder = folder
        self.name = name
        self.node_id = str(started.ready["node_id"])

    @property
    def pid(self) -> int:
        """The process id of its worker."""
        return self._started.pid

    @property
    def alive(self) -> bool:
        """True if the worker's process runs."""
        return self._started.process.poll() is None

    def end(self, grace: float) -> None:
        """SIGTERM, and after `grace` seconds SIGKILL; returns when its process is gone."""
        executables.end([self._started.process], grace)
        _home.remove_socket_of(self._folder / "node.json")  # a killed worker leaves its own

    def __repr__(self) -> str:
        return (
            f"<node {self.name} {self.node_id[:8]}, worker pid "
            f"{self.pid}{'' if self.alive else ', gone'}>"
        )


class Cluster:
    """A head, and nodes that are added and removed; all on 127.0.0.1. Methods block."""

    def __init__(
        self,
        initialize_head: bool = False,
        connect: bool = False,
        head_node_args: Mapping[str, Any] | None = None,
        shutdown_at_exit: bool = True,
    ) -> None:
        """Starts the head; `initialize_head`: with a node beside it, offering `head_node_args` (as
        add_node).

        `connect` calls `troupe.init` with its address. Without `shutdown_at_exit` it ends with the
        process all the same, only later and less gently.
        """
        if connect and not initialize_head:
            raise ValueError(
                "connect=True goes with initialize_head=True: there is nothing to work on before "
                "add_node()"
            )
        if head_node_args and not initialize_head:
            raise ValueError("head_node_args goes with initialize_head=True")
        _session.check_allowed()
        self._folder = scratch.Folder(local_clusters.SEVERAL)
        self._lifeline = executables.Lifeline()
        self._pid = os.getpid()
        self._nodes: list[ClusterNode] = []
        self._made = 0
        self._head: executables.Started | None = None
        self.head_node: ClusterNode | None = None
        try:
            self._head = executables.start(
                "troupe-head",
                [f"--home={self.home}", "--listen=127.0.0.1", "--port=0", "--new=true"],
                log=self.home / "logs" / "head.log",
                lifeline=self._lifeline.read_end,
            )
            _cluster.sockets_here[self.address] = str(self._head.ready["socket"])
            if initialize_head:
                self.head_node = self.add_node(**dict(head_node_args or {}))
        except BaseException:
            self.shutdown()
            raise
        if shutdown_at_exit:
            atexit.register(self.shutdown)
        if connect:
            self.connect()

    @property
    def home(self) -> Path:
        """The cluster's TROUPE_HOME: with that set, the `troupe` command and other processes find
        the cluster."""
        return self._folder.path

    @property
    def address(self) -> str:
        """`127.0.0.1:port` of the head; `troupe.init(cluster.address)` in this process needs no
        token."""
        return str(self._running().ready["address"])

    @property
    def worker_nodes(self) -> list[ClusterNode]:
        """The nodes but the head's."""
        return [node for node in self._nodes if node is not self.head_node]

    def list_all_nodes(self) -> list[ClusterNode]:
        """The nodes that were added and not removed."""
        return list(self._nodes)

    def connect(self, namespace: str | None = None) -> Any:
        """`troupe.init` with this cluster; returns its context."""
        from troupe._api import session as _api

        return _api.init(self.address, namespace=namespace)

    def add_node(
        self,
        wait: bool = True,
        *,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: float | str | None = None,
        resources: Mapping[str, float] | None = None,
        labels: Mapping[str, str] | None = None,
        node_name: str | None = None,
        object_store_memory: int | None = None,
        object_spilling_directory: str | None = None,
        **ignored: Any,
    ) -> ClusterNode:
        """Starts a node and returns it when it has joined; `wait=False` is taken, and changes
        nothing.

        Nothing given: what the machine has. Raises ValueError for amounts that are none, TypeError
        for an option that does not exist, TroupeError with the worker's last words when it does not
        come up.
        """
        for name in ignored:
            if name not in _IGNORED:
                raise TypeError(f"add_node() has no parameter {name!r}")
        self._running()
        offered = node_start.offer(
            num_cpus=num_cpus,
            num_gpus=num_gpus,
            memory=memory,
            resources=resources,
            labels=labels,
            object_store_memory=object_store_memory,
            object_spilling_directory=object_spilling_directory,
        )
        self._made += 1
        name = node_start.check_name(node_name or f"node-{self._made}")
        if any(node.name == name and node.alive for node in self._nodes):
            raise ValueError(f"there is a node named {name!r} already")
        cluster_id = str(self._running().ready["cluster_id"])
        folder = node_start.node_dir(self.home, cluster_id, name)
        started = node_start.start(
            f"unix:{self._running().ready['socket']}",
            folder,
            [*offered, f"--name={name}"],
            log=folder / "worker.log",
            lifeline=self._lifeline.read_end,
        )
        node = ClusterNode(started, folder, name)
        self._nodes.append(node)
        return node

    def remove_node(self, node: ClusterNode, allow_graceful: bool = True) -> None:
        """Ends a node: it takes its leave of the head, or is killed at once.

        Returns when its process is gone.

        Raises ValueError for a node of another cluster or one that was removed before.
        """
        if node not in self._nodes:
            raise ValueError(f"{node!r} is no node of this cluster, or was removed before")
        self._nodes.remove(node)
        if node is self.head_node:
            self.head_node = None
        node.end(_STOP_GRACE_S if allow_graceful else 0.0)

    def wait_for_nodes(self, timeout: float = 30) -> None:
        """Returns when the head knows as many living nodes as this cluster has, and no more.

        Raises GetTimeoutError after `timeout` seconds, naming both numbers.
        """
        from troupe import state

        deadline, wanted = (
            time.monotonic() + timeout,
            {node.node_id for node in self._nodes if node.alive},
        )
        session = _cluster.connect(self.address)
        try:
            while True:
                alive = {
                    node["node_id"]
                    for node in state.list_nodes(session)
                    if node["state"] == "alive"
                }
                if alive == wanted:
                    return
                if time.monotonic() >= deadline:
                    raise exceptions.GetTimeoutError(
                        f"the head at {self.address} knows {len(alive)} living nodes, this cluster "
                        f"has {len(wanted)}; "
                        f"waited {timeout:g} s"
                    )
                time.sleep(_ASK_AGAIN_S)  # lint-ok: the head pushes no news of nodes
        finally:
            session.close()

    def shutdown(self) -> None:
        """Disconnects this process where it is connected to this cluster, and ends all of it.

        Idempotent.
        """
        if self._pid != os.getpid() or self._lifeline.is_closed:
            return
        from troupe._api import session as _api

        current = _session.current_or_none()
        if self._head is not None:
            _cluster.sockets_here.pop(self.address, None)
            if current is not None and current.address == self.address:
                _api.shutdown()
        for node in self._nodes:
            node.end(_STOP_GRACE_S)
        if self._head is not None:
            executables.end([self._head.process], _STOP_GRACE_S)
        self._nodes.clear()
        self.head_node = self._head = None
        self._lifeline.close()
        self._folder.remove()
        atexit.unregister(self.shutdown)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *raised: object) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        if self._head is None:
            return "<cluster, shut down>"
        return f"<cluster at {self.address}, {len(self._nodes)} nodes>"

    def _running(self) -> executables.Started:
        if self._head is None:
            raise RuntimeError("this cluster was shut down")
        return self._head
