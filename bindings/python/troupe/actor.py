"""Ray's `ray.actor`: the classes that actors' handles are of, and `exit_actor`, by their names there.

    import troupe as ray
    ray.actor.exit_actor()                         # in a method: this actor ends when the method is over
    isinstance(handle, ray.actor.ActorHandle)
"""
from __future__ import annotations

from troupe import _pickled
from troupe._actors.classes import ActorClass
from troupe._actors.handle import ActorHandle, ActorMethod
from troupe._api import exit_actor

_pickled.named_in(__name__, ActorClass, ActorHandle, ActorMethod, exit_actor)
ActorProxy = ActorHandle
"""For annotations: ActorProxy[A]."""

__all__ = ["ActorClass", "ActorHandle", "ActorMethod", "ActorProxy", "exit_actor"]
