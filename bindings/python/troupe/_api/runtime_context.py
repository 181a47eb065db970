"""`troupe.get_runtime_context()`: what a process knows of itself, by Ray's names."""

from __future__ import annotations

import json
import warnings
from typing import Any

from troupe._api.gpu_ids import get_gpu_ids
from troupe._base.context import ActorContext
from troupe._base.identity import HexID, boot_id
from troupe._cluster import session as _session, workers
from troupe._code import runtime_env as _runtime_env
from troupe._typed.per_session import PerSession
from troupe.launch import _context
from troupe.util.annotations import RayDeprecationWarning

_ACCELERATORS = ("FURIOSA", "GPU", "HPU", "MBLT", "NPU", "RBLN", "TPU", "TTNPU", "neuron_cores")


def _older(name: str, function: str) -> property:
    """The id by its older name, which warns."""

    def get(self: RuntimeContext) -> HexID | None:
        warnings.warn(
            f"RuntimeContext.{name} is deprecated: Use {function}() instead",
            RayDeprecationWarning,
            stacklevel=2,
        )
        return _as_id(getattr(self, function)())

    return property(get, doc=f"What {function}() gives, as an id with `.hex()`.")


class RuntimeContext:
    """Facts about the place where the calling code runs. Methods return "" or None for facts that
    do not apply."""

    @property
    def namespace(self) -> str:
        """The namespace in which actor names are looked up."""
        return _session.current().namespace

    @property
    def gcs_address(self) -> str:
        """The head's address."""
        import os

        return _session.current().address or os.environ.get("TROUPE_ADDRESS", "")

    def get_node_id(self) -> str:
        """Id (hex) of the node this process runs on; in a program that called init(), of the node
        on its host (the first by name), "" where that has none."""
        found: str = self._here("node")
        return found

    def get_node_name(self) -> str:
        """The name of the node that get_node_id() tells."""
        found: str = self._here("node_name")
        return found

    def get_actor_id(self) -> str | None:
        """Id of the actor this code runs in; None in a task and in a program."""
        here = _actor_here()
        return here.actor if here is not None else None

    def get_actor_name(self) -> str | None:
        """Return the actor's name, "" if it has none, None outside of an actor."""
        here = _actor_here()
        return here.name if here is not None else None

    def get_task_id(self) -> str | None:
        """Id (hex) of the task, or of the call of an actor's plain method, that this thread
        runs."""
        from troupe._base.bridge import native

        running = native.running_call()
        if running is None or ActorContext.current is None:
            return None
        return f"{ActorContext.current.actor}{running[1]:016x}"

    def get_task_name(self) -> str | None:
        """Return the name of the running task: `name=` of a remote function, or the function's own;
        `Class.method` for an actor's method."""
        from troupe._base.bridge import native
        from troupe._tasks.host import TaskHost

        running = native.running_call()
        if running is None or ActorContext.current is None:
            return None
        if TaskHost.current is not None:
            return TaskHost.current.names.get(running[0], "")
        return f"{ActorContext.current.class_name}.{running[0]}"

    def is_canceled(self) -> bool:
        """Return True if the caller of the method that runs here has cancelled it.

        RuntimeError outside a plain method.
        """
        from troupe._base.bridge import native

        cancelled = native.is_cancelled()
        if cancelled is None:
            raise RuntimeError(
                "is_canceled() is for the plain methods of actors; a coroutine is cancelled by "
                "asyncio"
            )
        found: bool = cancelled
        return found

    def get_placement_group_id(self) -> str | None:
        """The placement group of that actor."""
        return (ActorContext.current.group or None) if ActorContext.current else None

    @property
    def was_current_actor_reconstructed(self) -> bool:
        """True if the actor this code runs in was started again (`max_restarts`)."""
        return ActorContext.current is not None and ActorContext.current.incarnation > 1

    @property
    def runtime_env(self) -> dict[str, Any]:
        """The runtime environment of this process; in a driver, the one given to init()."""
        session = _session.current()
        given = _runtime_env.inherited(session) if session.in_process else session.runtime_env or {}
        return {
            name: value
            for name, value in given.items()
            if value and name != _runtime_env.RAY_COMPAT
        }

    def get_assigned_resources(self) -> dict[str, float]:
        """Return the resources that this actor or task holds while it runs; {} elsewhere."""
        return dict(ActorContext.current.resources) if ActorContext.current is not None else {}

    @property
    def should_capture_child_tasks_in_placement_group(self) -> bool:
        """True if actors and tasks made here are placed in the group that this actor or task is
        in."""
        return ActorContext.current is not None and ActorContext.current.captures

    @property
    def current_actor(self) -> Any:
        """The handle of the actor this code runs in. RuntimeError elsewhere."""
        here = _actor_here()
        if here is None:
            raise RuntimeError("current_actor is for code that runs in an actor")
        from troupe._actors.handle import ActorHandle, watched

        link = watched(_session.current(), here.actor, here.class_name, here.traits)
        return ActorHandle(link, here.traits)

    def get_worker_id(self) -> str:
        """Tells this process from all others (hex)."""
        from troupe._base.bridge import native

        found: str = native.completed_ref(None).hex()[:16]
        return found

    def get_session_name(self) -> str:
        """The cluster's id; "" inside a launch."""
        return _session.current().cluster_id

    def get_node_labels(self) -> dict[str, str]:
        """Labels of the node that get_node_id() tells."""
        from troupe._cluster import view as _view

        node = self.get_node_id()
        return next((view.labels for view in _view.nodes() if view.info["node"] == node), {})

    def get_job_id(self) -> str:
        """Return the job id of this process's program, as hex: the launch's id in a launch, else
        one per init()."""
        return _session.current().job

    def get_runtime_env_string(self) -> str:
        """`runtime_env` as JSON."""
        return json.dumps(self.runtime_env, default=str)

    def get(self) -> dict[str, Any]:
        """The ids of this process by name: `job_id`, `node_id`, `namespace`; in an actor's method
        `actor_id` and `task_id` too, in a task `task_id`."""
        here = {
            "job_id": _as_id(self.get_job_id()),
            "node_id": _as_id(self.get_node_id()),
            "namespace": self.namespace,
        }
        inside = {"actor_id": _as_id(self.get_actor_id()), "task_id": _as_id(self.get_task_id())}
        return {**here, **{name: value for name, value in inside.items() if value is not None}}

    # Ray's older names, whose ids have `.hex()`.
    node_id = _older("node_id", "get_node_id")
    job_id = _older("job_id", "get_job_id")
    actor_id = _older("actor_id", "get_actor_id")
    task_id = _older("task_id", "get_task_id")
    current_placement_group_id = _older("current_placement_group_id", "get_placement_group_id")
    worker_id = property(lambda self: _as_id(self.get_worker_id()))

    def get_accelerator_ids(self) -> dict[str, list[str]]:
        """Devices this process may use, by kind, of all kinds that Ray has: Troupe finds GPUs."""
        return {
            kind: [str(each) for each in get_gpu_ids()] if kind == "GPU" else []
            for kind in _ACCELERATORS
        }

    @staticmethod
    def _here(field: str) -> Any:
        place = ActorContext.current or _context.current_or_none()
        return getattr(place, field) if place is not None else _of_driver(field)


def _actor_here() -> ActorContext | None:
    from troupe._tasks.host import actor_here

    return actor_here()


def _as_id(text: str | None) -> HexID | None:
    return None if text is None else HexID(text)


_node_here: PerSession[dict[str, str]] = PerSession("node here")


def _of_driver(field: str) -> str:
    """Return a field of the node that shares this host with a driver; asks the head until there is
    one."""
    session = _session.current_or_none()
    if session is None:
        return ""
    known = _node_here.known(session)
    if known is None:
        here = boot_id()
        beside = [
            node
            for node in workers.node_infos(session)
            if node["boot_id"] == here and node["state"] != "dead"
        ]
        if not beside:
            return ""
        first = min(beside, key=lambda node: node["name"])
        known = {"node": first["node"], "node_name": first["name"]}
        _node_here.set(session, known)
    return known[field]


def get_runtime_context() -> RuntimeContext:
    """The context of the calling process."""
    return RuntimeContext()


def node_ip_address() -> str:
    """See util.get_node_ip_address()."""
    import socket

    from troupe import state

    session, here = _session.current(), get_runtime_context().get_node_id()
    for node in state.list_nodes(session) if here else []:
        if node["node_id"] == here:
            return str(node["address"].rpartition(":")[0].strip("[]"))
    head = get_runtime_context().gcs_address.rpartition(":")[0].strip("[]")
    with socket.socket(
        socket.AF_INET6 if ":" in head else socket.AF_INET, socket.SOCK_DGRAM
    ) as probe:
        probe.connect((head, 1))  # sends nothing
        return str(probe.getsockname()[0])
