"""Bases with type parameters, for classes whose parameters and results type checkers keep.

Checkers and editors read `__init__.pyi` instead. At run time each base is `object`, so that a class
which names one has no other bases, attributes or costs than without it.
"""

from __future__ import annotations


class _Plain:
    """A base that takes any type parameters and is `object`."""

    def __getitem__(self, parameters: object) -> type:
        return object


ActorClassOf = HandleOf = LaunchFunctionOf = LaunchOf = RefsOf = RemoteCall = _Plain()
ActorT = ConstructorT = ElementT = P = R = T = None
