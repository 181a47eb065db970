"""Troupe: an actor runtime for multi-node GPU training.

    import troupe as ray                              # actors, placement groups: Ray's names
    from troupe.launch import distributed, ray_launch  # functions run by many ranks

Importing starts no thread and no process; what a name needs is loaded when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if sys.implementation.name != "cpython" or not (3, 11) <= sys.version_info[:2] <= (3, 13):
    raise ImportError(
        f"troupe supports CPython 3.11 to 3.13, not {sys.implementation.name} "
        f"{sys.version_info.major}.{sys.version_info.minor}"
    )
if "t" in sys.abiflags:  # sysconfig would say the same, after a millisecond
    raise ImportError(
        "troupe does not support free-threaded builds of Python yet; use the ordinary build"
    )

if "multiprocessing.process" in sys.modules:
    from troupe._code import main_import

    main_import.watch()

_WHERE = {
    "init": "_api.session",
    "shutdown": "_api.session",
    "is_initialized": "_api.session",
    "remote": "_tasks.remote",
    "get": "_tasks.objects",
    "put": "_tasks.objects",
    "wait": "_tasks.objects",
    "cancel": "_tasks.objects",
    "nodes": "_api.session",
    "cluster_resources": "_api.session",
    "available_resources": "_api.session",
    "get_gpu_ids": "_api.gpu_ids",
    "exit_actor": "_api.session",
    "ClusterContext": "_api.session",
    "kill": "_actors.classes",
    "get_actor": "_actors.classes",
    "ActorClass": "_actors.classes",
    "ActorHandle": "_actors.handle",
    "method": "_actors.method_options",
    "get_runtime_context": "_api.runtime_context",
    "ObjectRef": "_base.calls",
    "ObjectRefGenerator": "_actors.streams",
    "DynamicObjectRefGenerator": "_actors.streams",
    "timeline": "_tracing.timeline",
    "LaunchError": "exceptions",
    "PlacementError": "exceptions",
    "JoinError": "exceptions",
    "ConnectionError": "exceptions",
    "TroupeError": "exceptions",
    "GetTimeoutError": "exceptions",
}
_MODULES = {
    "actor",
    "cli",
    "cluster_utils",
    "cross_language",
    "dag",
    "data",
    "exceptions",
    "job_submission",
    "launch",
    "ray_compat",
    "state",
    "train",
    "tune",
    "util",
}
__all__ = sorted(
    [*_WHERE, *_MODULES - {"data"}, "__version__"]
)  # data needs pyarrow, which `from troupe import *` must not

if TYPE_CHECKING:  # each by its own name, which says that it is public
    from troupe import (
        actor as actor,
        cluster_utils as cluster_utils,
        cross_language as cross_language,
        dag as dag,
        data as data,
        exceptions as exceptions,
        job_submission as job_submission,
        launch as launch,
        ray_compat as ray_compat,
        state as state,
        train as train,
        tune as tune,
        util as util,
    )
    from troupe._actors.classes import (
        ActorClass as ActorClass,
        get_actor as get_actor,
        kill as kill,
    )
    from troupe._actors.handle import ActorHandle as ActorHandle
    from troupe._actors.method_options import method as method
    from troupe._actors.streams import (
        DynamicObjectRefGenerator as DynamicObjectRefGenerator,
        ObjectRefGenerator as ObjectRefGenerator,
    )
    from troupe._api.gpu_ids import get_gpu_ids as get_gpu_ids
    from troupe._api.runtime_context import get_runtime_context as get_runtime_context
    from troupe._api.session import (
        ClusterContext as ClusterContext,
        available_resources as available_resources,
        cluster_resources as cluster_resources,
        exit_actor as exit_actor,
        init as init,
        is_initialized as is_initialized,
        nodes as nodes,
        shutdown as shutdown,
    )
    from troupe._base.calls import ObjectRef as ObjectRef
    from troupe._tasks.objects import cancel as cancel, get as get, put as put, wait as wait
    from troupe._tasks.remote import remote as remote
    from troupe._tracing.timeline import timeline as timeline
    from troupe.exceptions import (
        ConnectionError as ConnectionError,
        GetTimeoutError as GetTimeoutError,
        JoinError as JoinError,
        LaunchError as LaunchError,
        PlacementError as PlacementError,
        TroupeError as TroupeError,
    )


if not TYPE_CHECKING:  # else checkers would take any name for one of the package

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"troupe.{name}")
        where = _WHERE.get(name)
        if where is None:
            from troupe.ray_compat._missing import without  # for those who imported it as ray

            raise AttributeError(
                f"module 'troupe' has no attribute {name!r}{without(f'ray.{name}')}"
            )
        value = getattr(importlib.import_module(f"troupe.{where}"), name)
        importlib.import_module("troupe._pickled").named_in(__name__, value)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
