"""Facts about its own process that an actor or task can read. Pure."""

from __future__ import annotations

from typing import Any


class ActorContext:
    """Facts about an actor's process; `current` is None elsewhere."""

    current: ActorContext | None = None

    def __init__(self, begin: dict[str, Any], traits: Any) -> None:
        self.actor = begin["actor"]
        self.name = begin["name"]
        self.class_name = begin["class_name"]
        self.node = begin["node"]
        self.node_name = begin["node_name"]
        self.gpu_ids = list(begin["gpu_ids"])
        self.group = ""  # the user's, not the one that reserves what it holds alone
        self.captures = False  # true if actors and tasks made here go into that group too
        self.resources: dict[str, float] = {}  # resources held while it runs
        self.incarnation = begin["incarnation"]
        self.socket_path = begin["socket_path"]
        self.traits = traits  # traits of its class, once that is loaded
