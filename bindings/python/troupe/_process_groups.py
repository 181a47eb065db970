"""Process groups of torch that are made, destroyed and made again: the store's keys of each are its own.

torch names its groups by a counter that destroying the default group sets back to 0, and finds the other ranks' addresses in the
store under that name. The store outlives the group here, as under torchrun: a group made anew would read the addresses of the former
one, and connect to ports that nobody listens at. So the counter goes on from a number that no group before has had. All ranks of
an epoch destroy the same groups, so they count alike; another epoch has a store of its own.
"""
from __future__ import annotations

import sys
from typing import Any

_MODULE = "torch.distributed.distributed_c10d"
GROUPS_OF_A_WORLD = 1 << 20
_worlds = 0  # default groups that were destroyed here


def name_each_once() -> None:
    """Wraps torch.distributed.destroy_process_group, now or when torch.distributed is imported."""
    module = sys.modules.get(_MODULE)
    if module is not None:
        _wrap(module)
    elif not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())


def _wrap(module: Any) -> None:
    destroy = module.destroy_process_group
    if hasattr(destroy, "_troupe_original"):
        return

    def destroy_process_group(group: Any = None) -> Any:
        global _worlds
        there = module.is_initialized()
        done = destroy(group)
        if there and not module.is_initialized():
            _worlds += 1
            module._world.group_count = _worlds * GROUPS_OF_A_WORLD
        return done

    destroy_process_group.__doc__ = destroy.__doc__
    destroy_process_group._troupe_original = destroy  # type: ignore[attr-defined]
    module.destroy_process_group = destroy_process_group
    package = sys.modules.get("torch.distributed")
    if package is not None and hasattr(package, "destroy_process_group"):
        package.destroy_process_group = destroy_process_group  # type: ignore[attr-defined]


class _AfterImport:
    """Meta-path finder that wraps the module right after it has been executed."""

    def find_spec(self, name: str, path, target=None):
        if name != _MODULE:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module) -> None:
            run(module)
            _wrap(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
