"""Searchers by the names of `ray.tune.search`: who proposes configurations."""
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troupe.tune._search.spaces import grid_search
    from troupe.tune.search.basic_variant import BasicVariantGenerator

_WHERE = {
    "BasicVariantGenerator": "troupe.tune.search.basic_variant",
    "grid_search": "troupe.tune._search.spaces",
}
__all__ = ["BasicVariantGenerator", "grid_search"]


def __getattr__(name: str) -> Any:
    """What is public, from the module that has it."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)
