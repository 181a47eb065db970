"""Ray's `ray.actor`: the classes that actors' handles are of, and `exit_actor`, by their names
there.

import troupe as ray
ray.actor.exit_actor()  # in a method: this actor ends when the method is over
isinstance(handle, ray.actor.ActorHandle)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troupe import _pickled
from troupe._actors.classes import ActorClass
from troupe._actors.handle import ActorHandle, ActorMethod
from troupe._api.session import exit_actor

_pickled.named_in(__name__, ActorClass, ActorHandle, ActorMethod, exit_actor)
if TYPE_CHECKING:
    from troupe._typed import ActorProxy
else:
    ActorProxy = ActorHandle
"""For annotations: ActorProxy[A] is a handle of an A, of which checkers know the methods that have
`@troupe.method`, with their types, and no others."""

__all__ = ["ActorClass", "ActorHandle", "ActorMethod", "ActorProxy", "exit_actor"]
