"""NevergradSearch of `ray.tune.search.nevergrad`, which is refused."""

from troupe.tune._core.refused import refused

NevergradSearch = refused(
    "NevergradSearch",
    "take OptunaSearch of tune.search.optuna, with "
    "sampler=optuna.samplers.CmaEsSampler(), or QMCSampler() for quasi-random points",
)
