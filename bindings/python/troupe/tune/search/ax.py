"""AxSearch of `ray.tune.search.ax`, which is refused."""

from troupe.tune._core.refused import refused

AxSearch = refused(
    "AxSearch",
    "take OptunaSearch of tune.search.optuna, with "
    "sampler=optuna.samplers.GPSampler(), which models the objective by Gaussian processes as Ax "
    "does",
)
