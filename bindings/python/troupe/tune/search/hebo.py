"""HEBOSearch of `ray.tune.search.hebo`, which is refused."""

from troupe.tune._core.refused import refused

HEBOSearch = refused(
    "HEBOSearch",
    "take OptunaSearch of tune.search.optuna, with sampler=optuna.samplers.GPSampler()",
)
