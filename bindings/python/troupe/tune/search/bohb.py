"""TuneBOHB of `ray.tune.search.bohb`, which is refused."""

from troupe.tune._core.refused import refused

TuneBOHB = refused(
    "TuneBOHB",
    "take OptunaSearch of tune.search.optuna, with "
    "sampler=optuna.samplers.TPESampler(multivariate=True), the model of BOHB, and "
    "scheduler=HyperBandScheduler() or ASHAScheduler()",
)
