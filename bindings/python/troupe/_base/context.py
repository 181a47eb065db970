"""What an actor's or a task's process knows of itself. Pure."""

from __future__ import annotations

from typing import Any


class ActorContext:
    """What an actor process knows of itself; `current` is None elsewhere."""

    current: ActorContext | None = None

    def __init__(self, begin: dict[str, Any], traits: Any) -> None:
        self.actor = begin["actor"]
        self.name = begin["name"]
        self.class_name = begin["class_name"]
        self.node = begin["node"]
        self.node_name = begin["node_name"]
        self.gpu_ids = list(begin["gpu_ids"])
        self.group = ""  # the user's, not the one that reserves what it holds alone
        self.captures = False  # whether what is made here goes into that group too
        self.resources: dict[str, float] = {}  # that it holds while it runs
        self.incarnation = begin["incarnation"]
        self.socket_path = begin["socket_path"]
        self.traits = traits  # of its class, once that is loaded
