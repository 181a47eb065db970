"""HyperOptSearch of `ray.tune.search.hyperopt`, which is refused."""

from troupe.tune._core.refused import refused

HyperOptSearch = refused(
    "HyperOptSearch",
    "take OptunaSearch of tune.search.optuna, with "
    "sampler=optuna.samplers.TPESampler(), which is the tree of Parzen estimators that Hyperopt "
    "has",
)
