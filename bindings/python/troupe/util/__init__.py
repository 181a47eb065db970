"""Ray's `util` names: placement groups and scheduling strategies, ActorPool, named actors; `queue` is beside."""
from __future__ import annotations

from typing import Any

from troupe.util.actor_pool import ActorPool
from troupe.util.placement_group import (
    PlacementGroup,
    get_current_placement_group,
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from troupe.util.serialization import deregister_serializer, register_serializer


def list_named_actors(all_namespaces: bool = False) -> list[Any]:
    """Names of the actors that are not dead: of this namespace as strings, of all as dicts of name and namespace."""
    from troupe import _session, state

    session = _session.current()
    named = [each for each in state.list_actors(session) if each["name"] and each["state"] != "dead"]
    if all_namespaces:
        return [{"name": each["name"], "namespace": each["namespace"]} for each in named]
    return [each["name"] for each in named if each["namespace"] == session.namespace]


__all__ = ["ActorPool", "PlacementGroup", "deregister_serializer", "get_current_placement_group", "get_placement_group",
           "list_named_actors", "placement_group", "placement_group_table", "register_serializer",
           "remove_placement_group"]
