"""Searchers by the names of `ray.tune.search`: who proposes configurations."""

import importlib
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from troupe.tune._search.spaces import grid_search
    from troupe.tune.search.basic_variant import BasicVariantGenerator
    from troupe.tune.search.concurrency_limiter import ConcurrencyLimiter
    from troupe.tune.search.repeater import Repeater
    from troupe.tune.search.searcher import Searcher

_WHERE = {
    "BasicVariantGenerator": "troupe.tune.search.basic_variant",
    "ConcurrencyLimiter": "troupe.tune.search.concurrency_limiter",
    "Repeater": "troupe.tune.search.repeater",
    "Searcher": "troupe.tune.search.searcher",
    "grid_search": "troupe.tune._search.spaces",
}
_BY_WORD = {
    "variant_generator": ("troupe.tune.search.basic_variant", "BasicVariantGenerator"),
    "random": ("troupe.tune.search.basic_variant", "BasicVariantGenerator"),
    "optuna": ("troupe.tune.search.optuna", "OptunaSearch"),
    "ax": ("troupe.tune.search.ax", "AxSearch"),
    "bayesopt": ("troupe.tune.search.bayesopt", "BayesOptSearch"),
    "bohb": ("troupe.tune.search.bohb", "TuneBOHB"),
    "hebo": ("troupe.tune.search.hebo", "HEBOSearch"),
    "hyperopt": ("troupe.tune.search.hyperopt", "HyperOptSearch"),
    "nevergrad": ("troupe.tune.search.nevergrad", "NevergradSearch"),
    "zoopt": ("troupe.tune.search.zoopt", "ZOOptSearch"),
}
__all__ = [
    "BasicVariantGenerator",
    "ConcurrencyLimiter",
    "Repeater",
    "Searcher",
    "create_searcher",
    "grid_search",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it."""
    if name not in _WHERE:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    return getattr(importlib.import_module(_WHERE[name]), name)


def create_searcher(search_alg: str, **kwargs: Any) -> Any:
    """The searcher of that name, with those of the keywords that it knows; the others are dropped,
    so that searchers can be exchanged.

    Raises ValueError for a name that is none, NotImplementedError for one that is refused, and what
    the searcher itself raises.

        tune.create_searcher("optuna", seed=1)
    """
    if not isinstance(search_alg, str) or search_alg.lower() not in _BY_WORD:
        raise ValueError(f"there is no searcher {search_alg!r}; there are {', '.join(_BY_WORD)}")
    module, name = _BY_WORD[search_alg.lower()]
    made = getattr(importlib.import_module(module), name)
    parameters = inspect.signature(made).parameters
    return made(**{each: value for each, value in kwargs.items() if each in parameters})
