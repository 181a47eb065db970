"""The session of a program: init, shutdown, what init returns, what the cluster has."""

from __future__ import annotations

import atexit
import functools
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from troupe import exceptions
from troupe._base import identity as _identity, job as _job
from troupe._base.context import ActorContext
from troupe._cluster import (
    connect,
    home,
    infeasible as _infeasible,
    known_clusters,
    local_clusters,
    node_start,
    selectors,
    session as _session,
    view as _view,
)
from troupe._code import main_import

if TYPE_CHECKING:
    from typing import TypeVar

    from troupe._actors.streams import ObjectRefGenerator
    from troupe._typed import ObjectRef

    T = TypeVar("T")
    Waited = TypeVar("Waited", bound="ObjectRef[Any] | ObjectRefGenerator[Any]")


class ClusterContext(Mapping[str, str]):
    """The result of `init`: the cluster's address, as attribute and item; a context manager that
    shuts down."""

    def __init__(self, session: _session.Session) -> None:
        self._session = session

    @functools.cached_property
    def address_info(self) -> dict[str, str]:
        """The addresses of the cluster and of this process, by Ray's names.

        The first time it blocks for a request; ConnectionError where the session has ended before.
        """
        from troupe._api.runtime_context import get_runtime_context, node_ip_address

        return {
            "address": self.address,
            "gcs_address": self.address,
            "node_ip_address": node_ip_address(),
            "cluster_id": self._session.cluster_id,
            "namespace": self._session.namespace,
            "node_id": get_runtime_context().get_node_id(),
            "session_dir": _folder_of(self._session),
            "webui_url": self.dashboard_url,
        }

    @property
    def address(self) -> str:
        """`host:port` of the head."""
        return self._session.address

    @property
    def dashboard_url(self) -> str:
        """Empty: there is no dashboard.

        `troupe status`, `troupe list` and `troupe.util.state` say what it would show.
        """
        return ""

    @property
    def python_version(self) -> str:
        """The Python version of this process, such as `3.11.2`."""
        return platform.python_version()

    @property
    def ray_version(self) -> str:
        """The version of Ray whose API this one follows."""
        from troupe.ray_compat import _names

        return _names.VERSION

    def __getitem__(self, key: str) -> str:
        return self.address_info[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.address_info)

    def __len__(self) -> int:
        return len(self.address_info)

    def __repr__(self) -> str:
        return f"<cluster at {self.address or 'this launch'}>"

    def __enter__(self) -> ClusterContext:
        return self

    def __exit__(self, *raised: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Shuts this session down, if it is still the current one."""
        if _session.current_or_none() is self._session:
            shutdown()


def _folder_of(session: _session.Session) -> str:
    """Return the folder of the cluster's state and logs on this host; "" if it is elsewhere."""
    if session.embedded is not None:
        return str(session.embedded.folder)
    mine = session.cluster_id
    return next(
        (
            str(each.path)
            for each in [*home.clusters(running_only=True), *local_clusters.clusters()]
            if each.cluster_id == mine
        ),
        "",
    )


_registered = False


def init(
    address: str | None = None,
    *,
    cluster: str | None = None,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    resources: Mapping[str, float] | None = None,
    labels: Mapping[str, str] | None = None,
    namespace: str | None = None,
    token_file: str | None = None,
    log_to_driver: bool = True,
    ignore_reinit_error: bool = False,
    runtime_env: Mapping[str, Any] | None = None,
    object_store_memory: int | None = None,
    object_spilling_directory: str | None = None,
    infeasible: str | None = None,
    preimport: Iterable[str] | None = None,
    _memory: float | str | None = None,
    **ignored: Any,
) -> ClusterContext:
    """Connects this process to a cluster and returns its context, which is a context manager too.

    `address`: "host:port"; "local": an embedded one-node cluster, ended at shutdown or exit; "auto"
    or None: TROUPE_ADDRESS, else TROUPE_CLUSTER, else the cluster in use (`troupe cluster use`),
    else, for "auto", the one cluster this user runs on this host, and for None, as "local".
    `cluster`, in place of an address: a name of `troupe cluster list`, or the beginning of the id
    of a cluster of this user on this host. `num_cpus`, `num_gpus`, `_memory` (bytes), `resources`,
    `labels` describe the embedded node. `preimport`: modules that a process of it imports from its
    start on, so that the first launch, actor or task with this `preimport=` is forked from it.
    `object_store_memory`: bytes that its processes, and this one, may each hold of objects in
    memory; `object_spilling_directory`: where they go beyond that. `token_file` (or
    TROUPE_TOKEN_FILE) holds the join token where the head is elsewhere. `log_to_driver`: what
    ranks, actors and tasks print is shown here. `namespace`: where names of actors and placement
    groups are looked for and made; without it TROUPE_NAMESPACE, or one of this program's own, so
    that programs do not meet. `infeasible="wait"`: what no node can ever hold waits for one that
    joins; it is refused otherwise, but in programs written for Ray. Blocks until connected. A head
    that is killed and started again within 30 s is come back to; an embedded cluster ends with its
    head.

    Raises ConnectionError, JoinError; RuntimeError when connected already, unless
    `ignore_reinit_error`; ValueError for node options with an address and an empty namespace.
    Inside a rank or actor it returns the cluster it is in, and `namespace` is from then on that of
    this process and of what it starts.
    """
    global _registered
    _check_ignored(ignored)
    current = _session.current_or_none()
    if current is not None:
        if current.in_process:
            current.namespace = _job.check_namespace(namespace) or current.namespace
        if ignore_reinit_error or current.in_process:
            return ClusterContext(current)
        raise RuntimeError(
            "troupe.init() was called before in this process; call troupe.shutdown() first, or "
            "pass ignore_reinit_error=True"
        )
    from troupe._code import runtime_env as _runtime_env

    runtime_env = _runtime_env.check(runtime_env)
    _infeasible.check(infeasible)
    choice = known_clusters.choose_for_init(address, cluster, _address_of_ray)
    address = choice.address
    name = _job.namespace_of(namespace)
    if address == "local":
        if token_file is not None:
            raise ValueError(
                f"init(token_file={token_file!r}) is for a cluster elsewhere: give its address, or "
                "set TROUPE_ADDRESS"
            )
        offer = node_start.offer(
            num_cpus=num_cpus,
            num_gpus=num_gpus,
            memory=_memory,
            resources=resources,
            labels=labels,
            object_store_memory=object_store_memory,
            object_spilling_directory=object_spilling_directory,
            preimport=[] if preimport is None else [preimport],
        )
        os.environ.update(node_start.object_memory(object_store_memory, object_spilling_directory))
        session = connect.start_embedded(offer, namespace=name)
    else:
        of_a_node = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "_memory": _memory,
            "resources": resources,
            "labels": labels,
            "object_store_memory": object_store_memory,
            "object_spilling_directory": object_spilling_directory,
            "preimport": preimport,
        }
        given = [key for key, value in of_a_node.items() if value is not None]
        if (
            given and not main_import.is_running()
        ):  # a child that imports the script joins its cluster, whatever the script would start
            raise ValueError(
                f"{', '.join(given)} describe a node; the cluster at {address} has its own"
                f"{choice.origin}"
            )
        if address == "auto":
            choice = replace(choice, address=connect.only_local_cluster())
        session = connect.connect_chosen(
            choice, token_file, namespace=name, return_timeout=connect.RETURN_TIMEOUT_S
        )
    session.log_to_driver = log_to_driver
    session.runtime_env = runtime_env
    session.infeasible = infeasible
    connect.make_current(session)
    if not _registered:
        _registered = True
        atexit.register(_leave)
    return ClusterContext(session)


def _address_of_ray(given: str | None) -> str:
    """Return the address of the cluster for a program written for Ray; "" for other programs, which
    look for none."""
    if not _job.follows_ray():
        return ""
    from troupe.ray_compat import _clusters

    return os.environ.get("RAY_ADDRESS", "").replace("auto", "") or (
        "" if given == "auto" else _clusters.started_here()
    )


def _leave() -> None:
    """At the program's end: what its last calls, of destructors say, find no session for starts no
    cluster any more."""
    _session.starter = None
    shutdown()


_IGNORED = {
    "include_dashboard",
    "dashboard_host",
    "dashboard_port",
    "configure_logging",
    "logging_level",
    "logging_format",
    "logging_config",
    "proxy_server_url",
    "_system_config",
    "_temp_dir",
    "_node_ip_address",
    "_metrics_export_port",
    "_plasma_directory",
    "_redis_max_memory",
    "_redis_password",
    "_redis_username",
    "_tracing_startup_hook",
}
_NOT_WANTED = {  # Ray's, that mean nothing here unless they ask for something
    "job_config": "give namespace= and runtime_env= to init()",
    "local_mode": "call the functions themselves, or debug them in their process",
    **dict.fromkeys(
        (
            "enable_resource_isolation",
            "cgroup_path",
            "system_reserved_cpu",
            "system_reserved_memory",
        ),
        "limit the worker's control group by the system's own means",
    ),
}


def _check_ignored(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name in _NOT_WANTED and value not in (None, False):
            raise ValueError(f"init({name}=...) is not supported: {_NOT_WANTED[name]}")
        if name not in _IGNORED | _NOT_WANTED.keys():
            import difflib
            import inspect

            near = difflib.get_close_matches(name, inspect.signature(init).parameters, 1)
            raise TypeError(
                f"init() has no parameter {name!r}"
                + (f": do you mean {near[0]!r}?" if near else "")
            )


def shutdown(*, wait_for_processes: bool = True, _exiting_interpreter: bool = False) -> None:
    """Ends the session; an embedded cluster ends with it, and has when this returns, whatever Ray's
    two parameters say.

    Idempotent; nothing inside a rank or actor.
    """
    current = _session.current_or_none()
    if current is None or current.in_process:
        return
    from troupe._base.bridge import native

    _session.set_current(None)
    native._let_go_of_pickled_refs()
    connect.close(current)


def is_initialized() -> bool:
    """Return True if this process is connected to a cluster by init(), or is a part of one."""
    return _session.current_or_none() is not None


def nodes() -> list[dict[str, Any]]:
    """The cluster's nodes, dead ones included, as dicts with Ray's keys; inside a launch, its
    nodes."""
    return [
        {
            "NodeID": view.info["node"],
            "Alive": view.info["state"] != "dead",
            "alive": view.info["state"] != "dead",
            "State": view.info["state"],
            "DeathReasonMessage": view.info["why"] if view.info["state"] == "dead" else "",
            "NodeName": view.info["name"],
            "NodeManagerHostname": view.info["host"],
            "NodeManagerAddress": view.info["listen_host"],
            "NodeManagerPort": view.info["listen_port"],
            "Resources": {**view.total, **_always(view)},
            "Labels": view.labels,
        }
        for view in _view.nodes()
    ]


def _sum(amounts: list[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = round(total.get(name, 0.0) + amount, 4)
    return total


def _always(view: _view.NodeView) -> dict[str, float]:
    """Return the resources that Ray always counts: one for a node's address and one for its type of
    GPU; on this host, in programs written for Ray, also the object store memory."""
    found = {selectors.ADDRESS_PREFIX + view.info["listen_host"]: 1.0}
    kind = view.labels.get(selectors.GPU_TYPE)
    if kind and view.total.get("GPU"):
        found[selectors.TYPE_PREFIX + kind] = 1.0
    if _job.follows_ray() and view.info["boot_id"] == _identity.boot_id():
        found["object_store_memory"] = float(
            os.environ.get("TROUPE_OBJECT_STORE_MEMORY")
            or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        )
    return found


def cluster_resources() -> dict[str, float]:
    """Return the total resources of the cluster's nodes, with `node:<address>` and
    `accelerator_type:<type>` for each; inside a launch, the resources it reserved."""
    return _sum(
        [{**view.total, **_always(view)} for view in _view.nodes() if view.info["state"] != "dead"]
    )


def available_resources() -> dict[str, float]:
    """Return the resources that are free now over all nodes, in the form of cluster_resources();
    inside a launch, those of its reservation.

    As in Ray, what is used up has no entry: `available_resources().get("CPU", 0)`.
    """
    return _sum(
        [{**view.free, **_always(view)} for view in _view.nodes() if view.info["state"] != "dead"]
    )


def exit_actor() -> None:
    """Ends the actor whose method calls this; the call fails with ActorDiedError.

    TypeError elsewhere.
    """
    if ActorContext.current is None:
        raise TypeError("exit_actor() is for code that runs in an actor")
    raise exceptions.ActorExit(0)


__all__ = [
    "ClusterContext",
    "available_resources",
    "cluster_resources",
    "exit_actor",
    "init",
    "is_initialized",
    "nodes",
    "shutdown",
]
