"""OptunaSearch, by the name of `ray.tune.search.optuna`."""

from troupe.tune.search.optuna.optuna_search import OptunaSearch

__all__ = ["OptunaSearch"]
