"""Search spaces of sweeps of command jobs: the distributions of `azure.ai.ml.sweep`, and their
equivalents in a sweep here. Pure.

LogUniform's and QLogUniform's bounds are exponents: exp(uniform(min_value, max_value)). The q forms
are round(value / q) * q.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from troupe._code import field_checks
from troupe.azure import _schema
from troupe.tune._search import spaces
from troupe.tune._search.domains import Domain


class SweepDistribution:
    """A distribution from which an input's values are drawn; `job(lr=Uniform(0.01, 0.1))`.

    Two with the same arguments are equal.
    """

    type: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ()
    wholes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        if len(values) > len(self.fields):
            raise TypeError(
                f"{type(self).__name__} takes {', '.join(self.fields)}, and was given "
                f"{len(values)} values"
            )
        given = dict(zip(self.fields, values, strict=False))
        for name, value in named.items():
            if name == "type":
                continue
            field_checks.known(type(self).__name__, name, self.fields)
            if name in given:
                raise TypeError(f"{type(self).__name__}: {name} is given twice")
            given[name] = value
        for name in self.fields:
            if given.get(name) is None:
                raise TypeError(f"{type(self).__name__} needs {name}")
            setattr(self, name, given[name])
        self.check()

    def check(self) -> None:
        """Raises TypeError or ValueError."""
        for name in self.fields:
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not math.isfinite(value)
            ):
                raise TypeError(f"{type(self).__name__}: {name} must be a number, not {value!r}")
            if name in self.wholes and value != int(value):
                raise TypeError(
                    f"{type(self).__name__}: {name} must be a whole number, not {value!r}"
                )
            if name in ("sigma", "q") and not value > 0:
                raise ValueError(f"{type(self).__name__}: {name} must be above 0, not {value!r}")
        if "max_value" in self.fields and not self.min_value < self.max_value:  # type: ignore[attr-defined]
            raise ValueError(f"{self!r}: min_value must be below max_value")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.fields)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Return the distribution as it stands in a file."""
        return {"type": self.type, **{name: getattr(self, name) for name in self.fields}}

    def domain(self) -> Any:
        """Return the distribution as a domain of a sweep here."""
        return Drawn(self)

    def draw(self, generator: random.Random) -> Any:
        """Draw a value."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Drawn(Domain):
    """A distribution that spaces have no name of their own for."""

    distribution: SweepDistribution

    def __repr__(self) -> str:
        return repr(self.distribution)

    def fault(self) -> str | None:
        return None

    def draw(self, generator: random.Random) -> Any:
        return self.distribution.draw(generator)

    def is_valid(self, value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rounded(value: float, q: float) -> float:
    return round(value / q) * q


class Choice(SweepDistribution):
    """A choice among `values`: texts and numbers.

    Choice(values=[16, 32, 64])
    """

    type = "choice"
    fields = ("values",)
    values: Any

    def check(self) -> None:
        values = self.values
        if (
            isinstance(values, (str, Mapping))
            or not isinstance(values, Sequence)
            and not isinstance(values, range)
        ):
            raise TypeError(f"Choice: values must be a list, not {values!r}")
        if not values:
            raise ValueError("Choice: values is empty")
        for value in values:
            if isinstance(value, Mapping):
                raise NotImplementedError(
                    f"Choice: a value with a space of its own, as {value!r}, is none of an "
                    "input's: make an input of each of its keys"
                )
            if not isinstance(value, (str, int, float)):
                raise TypeError(f"Choice: a value must be a text or a number, not {value!r}")
        self.values = list(values)

    def domain(self) -> Any:
        return spaces.choice(self.values)


class Uniform(SweepDistribution):
    """A number from `min_value` to `max_value`."""

    type = "uniform"
    fields = ("min_value", "max_value")

    def domain(self) -> Any:
        return spaces.uniform(self.min_value, self.max_value)  # type: ignore[attr-defined]


class LogUniform(Uniform):
    """exp(uniform(min_value, max_value)): the bounds are exponents.

    LogUniform(-9.2, -2.3)     # 1e-4 to 1e-1
    """

    type = "loguniform"

    def domain(self) -> Any:
        return spaces.loguniform(math.exp(self.min_value), math.exp(self.max_value))  # type: ignore[attr-defined]


class _Rounded(SweepDistribution):
    """Multiples of q."""

    def exact(self, generator: random.Random) -> float:
        """The value before it is rounded."""
        raise NotImplementedError

    def draw(self, generator: random.Random) -> Any:
        q = self.q  # type: ignore[attr-defined]
        return _rounded(self.exact(generator), q)


class QUniform(_Rounded):
    """round(uniform(min_value, max_value) / q) * q."""

    type = "quniform"
    fields = ("min_value", "max_value", "q")

    def exact(self, generator: random.Random) -> float:
        return generator.uniform(self.min_value, self.max_value)  # type: ignore[attr-defined]

    def steps(self) -> Any:
        """Return the as a domain that a sampler can learn, where there are several."""
        lower, upper, q = _rounded(self.min_value, self.q), _rounded(self.max_value, self.q), self.q  # type: ignore[attr-defined]
        return spaces.choice([lower]) if lower == upper else spaces.quniform(lower, upper, q)


class QLogUniform(QUniform):
    """round(exp(uniform(min_value, max_value)) / q) * q: the bounds are exponents."""

    type = "qloguniform"

    def exact(self, generator: random.Random) -> float:
        return math.exp(super().exact(generator))


class Normal(SweepDistribution):
    """A number of the normal distribution."""

    type = "normal"
    fields = ("mu", "sigma")

    def domain(self) -> Any:
        return spaces.randn(self.mu, self.sigma)  # type: ignore[attr-defined]


class LogNormal(Normal):
    """exp(normal(mu, sigma))."""

    type = "lognormal"

    def domain(self) -> Any:
        return Drawn(self)

    def draw(self, generator: random.Random) -> Any:
        return math.exp(generator.gauss(self.mu, self.sigma))  # type: ignore[attr-defined]


class QNormal(_Rounded):
    """round(normal(mu, sigma) / q) * q."""

    type = "qnormal"
    fields = ("mu", "sigma", "q")

    def exact(self, generator: random.Random) -> float:
        return generator.gauss(self.mu, self.sigma)  # type: ignore[attr-defined]


class QLogNormal(QNormal):
    """round(exp(normal(mu, sigma)) / q) * q."""

    type = "qlognormal"

    def exact(self, generator: random.Random) -> float:
        return math.exp(super().exact(generator))


class Randint(SweepDistribution):
    """A whole number from 0 on and below `upper`."""

    type = "randint"
    fields = ("upper",)
    wholes = ("upper",)

    def check(self) -> None:
        super().check()
        if self.upper < 1:  # type: ignore[attr-defined]
            raise ValueError(f"Randint: upper must be at least 1, not {self.upper!r}")  # type: ignore[attr-defined]

    def domain(self) -> Any:
        return spaces.randint(0, int(self.upper))  # type: ignore[attr-defined]


KINDS: dict[str, type[SweepDistribution]] = {
    each.type: each
    for each in (
        Choice,
        Uniform,
        LogUniform,
        QUniform,
        QLogUniform,
        Normal,
        LogNormal,
        QNormal,
        QLogNormal,
        Randint,
    )
}


def of(name: str, given: Any) -> SweepDistribution:
    """The distribution of an input, given as one or as a dict with `type`.

    Raises TypeError or ValueError, naming the input.
    """
    if isinstance(given, SweepDistribution):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(
            f"search_space: {name} must be one of "
            f"{', '.join(each.__name__ for each in KINDS.values())}, not {given!r}"
        )
    fields = dict(given)
    kind = _schema.one_of(f"search_space: {name}: type", fields.pop("type", None), KINDS)
    try:
        return KINDS[kind](**fields)
    except (TypeError, ValueError) as error:
        raise type(error)(f"search_space: {name}: {error}") from None
