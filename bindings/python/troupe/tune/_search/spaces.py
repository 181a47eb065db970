"""Functions that write a `param_space`: `tune.uniform(0, 1)` and its like.

Bounds are checked where the whole space is known, so that an error names the parameter. Nothing of
this needs numpy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from troupe.tune._search.domains import Categorical, Float, Function, Integer, Normal

_MISSING = object()


def _no_base(base: object) -> None:
    if base is not _MISSING:
        warnings.warn(
            f"base={base!r} means nothing: the logarithm's base changes no value that is drawn",
            DeprecationWarning,
            stacklevel=3,
        )


def uniform(lower: float, upper: float) -> Float:
    """A number from `lower` to `upper`, each as likely.

    param_space={"momentum": tune.uniform(0.8, 0.99)}
    """
    return Float(lower, upper)


def quniform(lower: float, upper: float, q: float) -> Float:
    """A multiple of `q` from `lower` to `upper`, both included; they must be multiples themselves.

    tune.quniform(0.0, 0.5, 0.1)
    """
    return Float(lower, upper, q=q)


def loguniform(lower: float, upper: float, base: object = _MISSING) -> Float:
    """A number from `lower` to `upper`, each order of magnitude as likely.

    The bounds are the values themselves.

    tune.loguniform(1e-4, 1e-1)
    """
    _no_base(base)
    return Float(lower, upper, log=True)


def qloguniform(lower: float, upper: float, q: float, base: object = _MISSING) -> Float:
    """As `loguniform`, rounded to a multiple of `q`; both bounds are included and must be
    multiples.

    tune.qloguniform(0.01, 1.0, 0.01)
    """
    _no_base(base)
    return Float(lower, upper, log=True, q=q)


def randint(lower: int, upper: int) -> Integer:
    """A whole number from `lower` on and below `upper`, which is not included.

    tune.randint(0, 10)          # 0 to 9
    """
    return Integer(lower, upper)


def qrandint(lower: int, upper: int, q: int = 1) -> Integer:
    """A multiple of `q` from `lower` to `upper`, which is included, except with q=1: that is
    `randint`.

    tune.qrandint(8, 64, 8)      # 8, 16, ..., 64
    """
    return Integer(lower, upper, q=q)


def lograndint(lower: int, upper: int, base: object = _MISSING) -> Integer:
    """A whole number from `lower` on and below `upper`, each order of magnitude as likely.

    tune.lograndint(1, 1000)
    """
    _no_base(base)
    return Integer(lower, upper, log=True)


def qlograndint(lower: int, upper: int, q: int, base: object = _MISSING) -> Integer:
    """A multiple of `q` from `lower` to `upper`, which is included except with q=1, each order of
    magnitude as likely.

    tune.qlograndint(16, 1024, 16)
    """
    _no_base(base)
    return Integer(lower, upper, log=True, q=q)


def randn(mean: float = 0.0, sd: float = 1.0) -> Normal:
    """A number of the normal distribution with this mean and standard deviation.

    tune.randn(10, 2)
    """
    return Normal(mean, sd)


def qrandn(mean: float, sd: float, q: float) -> Normal:
    """As `randn`, rounded to a multiple of `q`.

    tune.qrandn(10, 2, 0.5)
    """
    return Normal(mean, sd, q)


def choice(categories: Sequence[Any]) -> Categorical:
    """Choose one of these values, each as likely as another.

    A value may have domains inside: a choice of dicts is a space with conditions.

    tune.choice([{"kind": "adam"}, {"kind": "sgd", "momentum": tune.uniform(0, 1)}])
    """
    return Categorical(list(categories))


def sample_from(func: Callable[..., Any]) -> Function:
    """Use the result of `func`: called with the configuration so far, or without arguments if it
    takes none.

    Other parameters are read as `spec.config.x`, `spec["x"]` or `spec.x`, whatever their order in
    the space; two that need each other are an error. A `grid_search` that it returns makes a trial
    of each point, with the same values of what was drawn before. What it draws of generators of its
    own is not seeded by the sweep, but kept: a resumed sweep has the same value. Raises TypeError.

        {"width": tune.randint(16, 64),
         "heads": tune.sample_from(lambda spec: spec.config.width // 8)}
    """
    return Function.of(func)


def grid_search(values: Iterable[Any]) -> dict[str, list[Any]]:
    """Each of these values, with each combination of the other grids; all of that `num_samples`
    times. No grid is ever made whole.

    {"lr": tune.grid_search([0.1, 0.01]), "seed": tune.grid_search(range(5))}     # 10 trials
    """
    return {"grid_search": list(values)}
