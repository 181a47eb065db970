"""Serializers of the user's for classes that cannot be pickled, or not well. Ray's names."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from typing import Any

from troupe._base import exception_pickles as _exception_pickles

_own: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
_installed = False


def register_serializer(
    cls: type, *, serializer: Callable[[Any], Any], deserializer: Callable[[Any], Any]
) -> None:
    """From now on this process sends instances of `cls` as what `serializer` makes of them.

    View: this process; call it in an actor too where instances are to come back from there.
    `deserializer` travels along and makes the instance where it arrives. Of `cls` itself, not of
    its subclasses. It goes for arguments, results, put() and what is captured, and for cloudpickle
    in this process; plain pickle stays as it is. Raises TypeError for what is no class or cannot be
    called.

        register_serializer(Reader, serializer=lambda reader: reader.path, deserializer=Reader)
    """
    if not isinstance(cls, type):
        raise TypeError(f"register_serializer() takes a class, not {cls!r}")
    for name, each in (("serializer", serializer), ("deserializer", deserializer)):
        if not callable(each):
            raise TypeError(f"{name} must be callable, not {each!r}")
    _install()
    _own[cls] = lambda value: (deserializer, (serializer(value),))
    _exception_pickles.told.add(cls)


def deregister_serializer(cls: type) -> None:
    """Instances of `cls` are sent as ever again. Nothing where it has no serializer."""
    _own.pop(cls, None)
    _exception_pickles.told.discard(cls)


def _install() -> None:
    global _installed
    if _installed:
        return
    import copyreg

    import cloudpickle

    from troupe._base.bridge import native
    from troupe._code import cloudpickle as _cloudpickle

    native.pickler_type().dispatch_table = ChainMap(_own, copyreg.dispatch_table)
    for pickler in (cloudpickle.Pickler, _cloudpickle.Pickler):
        pickler.dispatch_table = ChainMap(_own, pickler.dispatch_table)
    _installed = True
