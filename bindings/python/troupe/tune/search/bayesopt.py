"""BayesOptSearch of `ray.tune.search.bayesopt`, which is refused."""

from troupe.tune._core.refused import refused

BayesOptSearch = refused(
    "BayesOptSearch",
    "take OptunaSearch of tune.search.optuna, with "
    "sampler=optuna.samplers.GPSampler(), which models the objective by a Gaussian process too",
)
