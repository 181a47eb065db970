"""ZOOptSearch of `ray.tune.search.zoopt`, which is refused."""

from troupe.tune._core.refused import refused

ZOOptSearch = refused(
    "ZOOptSearch",
    "take OptunaSearch of tune.search.optuna, with sampler=optuna.samplers.CmaEsSampler()",
)
