"""Ray's `util` names: placement groups and scheduling strategies, ActorPool, named actors; `queue`
is beside."""

from __future__ import annotations

import importlib
from typing import Any

from troupe._cluster import session as _session
from troupe._cluster.groups import PlacementGroup
from troupe.util.actor_pool import ActorPool
from troupe.util.debug import disable_log_once_globally, enable_periodic_logging, log_once
from troupe.util.helpers import as_completed, map_unordered
from troupe.util.placement_group import (
    get_current_placement_group,
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from troupe.util.serialization import deregister_serializer, register_serializer

_MODULES = {
    "accelerators",
    "actor_pool",
    "annotations",
    "collective",
    "debug",
    "helpers",
    "metrics",
    "queue",
    "scheduling_strategies",
    "serialization",
    "state",
}


def list_named_actors(all_namespaces: bool = False) -> list[Any]:
    """Names of the actors that get_actor() finds: of this namespace as strings, of all as dicts of
    name and namespace."""
    session = _session.current()
    infos = session.request("ListActors", {})[1]["actors"]
    named = [
        each for each in infos if each["name"] and each["state"] != "dead" and not each["unwanted"]
    ]
    if all_namespaces:
        return [{"name": each["name"], "namespace": each["namespace_"]} for each in named]
    return [each["name"] for each in named if each["namespace_"] == session.namespace]


def get_node_ip_address() -> str:
    """Return the address at which other hosts reach this one: that of this process's node or, where
    its host has none, the one that reaches the head. Blocks for a request.
    Raises ConnectionError outside of a session.
    """
    from troupe._api import runtime_context as _runtime_context

    return _runtime_context.node_ip_address()


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # without an import of its own
        return importlib.import_module(f"troupe.util.{name}")
    from troupe.ray_compat._missing import without

    raise AttributeError(
        f"module 'troupe.util' has no attribute {name!r}{without(f'ray.util.{name}')}"
    )


__all__ = [
    "ActorPool",
    "PlacementGroup",
    "as_completed",
    "deregister_serializer",
    "disable_log_once_globally",
    "enable_periodic_logging",
    "get_current_placement_group",
    "get_node_ip_address",
    "get_placement_group",
    "list_named_actors",
    "log_once",
    "map_unordered",
    "placement_group",
    "placement_group_table",
    "register_serializer",
    "remove_placement_group",
]
