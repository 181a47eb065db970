"""Actors in another language: `ray.cross_language` of Ray.

    from troupe.cross_language import cpp_actor_class
    counter = cpp_actor_class("build/hello_actor", "Counter").options(num_cpus=1).remote(5)
    print(troupe.get(counter.Add.remote(2)))      # 7

How classes are written in C++: docs/guides/cpp.md.
"""

from __future__ import annotations

from troupe import _pickled
from troupe._actors.cpp_classes import CppActorClass, cpp_actor_class

_pickled.named_in(__name__, CppActorClass, cpp_actor_class)
__all__ = ["CppActorClass", "cpp_actor_class"]
