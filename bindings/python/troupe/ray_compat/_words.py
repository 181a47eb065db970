"""Words of Ray's errors that programs look for: in front of Troupe's own, where `import ray` gives Troupe."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe import ray_compat


def of_death(failure: Mapping[str, Any], *, raised: bool) -> str:
    """What begins the text of a dead actor; `raised`: its constructor did. Empty in other programs."""
    if not ray_compat.is_installed():
        return ""
    cause = failure["cause"]
    if raised:
        return "The actor died because of an error raised in its creation task: "
    if cause.startswith("killed"):
        return "The actor is dead because it was killed by `ray.kill`: "
    if cause.startswith("all references to the actor"):
        return "The actor is dead because all references to the actor were removed: "
    return "The actor is dead because its worker process has died: "


def of_taken_name(name: str, namespace: str, text: str) -> str:
    """What is said of a name that is taken: `text` in other programs."""
    if not ray_compat.is_installed():
        return text
    return (f"The name {name} (namespace={namespace}) is already taken. Please use a different name or get the existing actor using "
            f"ray.get_actor({name!r}, namespace={namespace!r})")
