"""Pure.

The values that a parameter may have, and how they are drawn: what `tune.uniform(0, 1)` and its like
make.

A domain takes whatever it is given; `fault()` says what is wrong with it, and who has the whole
space says where that is. Draws are made from a `random.Random`, so that numpy is not needed and the
same seed draws the same on every machine.
"""

from __future__ import annotations

import inspect
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


def seed_of(random_state: Any) -> int:
    """A seed, of a whole number or of a generator of `random` or numpy, from which it is drawn;
    None: one that nobody has said.

    Raises TypeError for what is none of these.
    """
    if random_state is None:
        return random.SystemRandom().getrandbits(63)
    if isinstance(random_state, int) and not isinstance(random_state, bool):
        return random_state
    if isinstance(random_state, random.Random):
        return random_state.getrandbits(63)
    for name in ("integers", "randint"):  # methods of a Generator, and of a RandomState
        if callable(draw := getattr(random_state, name, None)):
            return int(draw(0, 2**31 - 1))
    raise TypeError(
        f"a seed is a whole number, or a generator of random numbers, not {random_state!r}"
    )


class Domain(ABC):
    """The values that one parameter may have."""

    @abstractmethod
    def fault(self) -> str | None:
        """Return the fault of the domain; None if there is none."""

    @abstractmethod
    def draw(self, generator: random.Random) -> Any:
        """Draw a value."""

    @abstractmethod
    def is_valid(self, value: Any) -> bool:
        """Return True if `value` is one of the values or, for numbers, within the bounds."""

    def sample(self, config: Any = None, size: int = 1, random_state: Any = None) -> Any:
        """Return a value, or a list of `size` ones, for use outside of a sweep.

        Raises ValueError for a domain that has none.
        """
        if fault := self.fault():
            raise ValueError(f"{self!r}: {fault}")
        generator = (
            random_state
            if isinstance(random_state, random.Random)
            else random.Random(seed_of(random_state))
        )
        drawn = [self.draw(generator) for _ in range(size)]
        return drawn if size > 1 else drawn[0]


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        or hasattr(value, "__float__")
        and hasattr(value, "dtype")
    )


def _bounds_fault(lower: Any, upper: Any, log: bool) -> str | None:
    for name, bound in (("lower", lower), ("upper", upper)):
        if not _is_number(bound):
            return f"the {name} bound must be a number, not {bound!r}"
        if not math.isfinite(bound):
            return f"the {name} bound must be finite, not {bound!r}"
    if not lower < upper:
        return f"the lower bound must be below the upper one, and {lower!r} is not below {upper!r}"
    if log and not lower > 0:
        return (
            f"the lower bound must be above 0, not {lower!r}: bounds are values themselves, not "
            "their logarithms"
        )
    return None


def _steps(bound: float, step: float, up: bool) -> int:
    """How many steps from 0 the bound is, or the next multiple inwards, where the bound is none by
    more than rounding."""
    ratio = bound / step
    if math.isclose(ratio, round(ratio), rel_tol=1e-9, abs_tol=1e-12):
        return round(ratio)
    return math.ceil(ratio) if up else math.floor(ratio)


def _draw_between(generator: random.Random, lower: float, upper: float, log: bool) -> float:
    if log:
        return min(max(math.exp(generator.uniform(math.log(lower), math.log(upper))), lower), upper)
    return generator.uniform(lower, upper)


@dataclass(frozen=True)
class Float(Domain):
    """Numbers between two bounds, even or even in their logarithm; with `q` its multiples, both
    bounds included."""

    lower: float
    upper: float
    log: bool = False
    q: float | None = None

    def __repr__(self) -> str:
        name = f"{'q' if self.q is not None else ''}{'log' if self.log else ''}uniform"
        return (
            f"{name}({self.lower!r}, {self.upper!r}{f', {self.q!r}' if self.q is not None else ''})"
        )

    def fault(self) -> str | None:
        if found := _bounds_fault(self.lower, self.upper, self.log):
            return found
        if self.q is None:
            return None
        if not _is_number(self.q) or not 0 < self.q < math.inf:
            return f"the step must be a number above 0, not {self.q!r}"
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if not math.isclose(bound / self.q, round(bound / self.q), rel_tol=1e-9, abs_tol=1e-12):
                return f"the {name} bound {bound!r} is no multiple of the step {self.q!r}"
        return None

    def draw(self, generator: random.Random) -> float:
        drawn = _draw_between(generator, float(self.lower), float(self.upper), self.log)
        if self.q is None:
            return drawn
        return float(min(max(round(drawn / self.q) * self.q, self.lower), self.upper))

    def is_valid(self, value: Any) -> bool:
        return _is_number(value) and self.lower <= value <= self.upper


@dataclass(frozen=True)
class Normal(Domain):
    """Numbers of a normal distribution; with `q` the nearest multiple of it."""

    mean: float = 0.0
    sd: float = 1.0
    q: float | None = None

    def __repr__(self) -> str:
        return (
            f"{'q' if self.q is not None else ''}randn({self.mean!r}, "
            f"{self.sd!r}{f', {self.q!r}' if self.q is not None else ''})"
        )

    def fault(self) -> str | None:
        if not _is_number(self.mean) or not math.isfinite(self.mean):
            return f"the mean must be a finite number, not {self.mean!r}"
        if not _is_number(self.sd) or not 0 < self.sd < math.inf:
            return f"the standard deviation must be a number above 0, not {self.sd!r}"
        if self.q is not None and (not _is_number(self.q) or not 0 < self.q < math.inf):
            return f"the step must be a number above 0, not {self.q!r}"
        return None

    def draw(self, generator: random.Random) -> float:
        drawn = generator.gauss(self.mean, self.sd)
        return drawn if self.q is None else float(round(drawn / self.q) * self.q)

    def is_valid(self, value: Any) -> bool:
        return _is_number(value) and not math.isnan(value)


@dataclass(frozen=True)
class Integer(Domain):
    """Whole numbers from `lower` on, below `upper`; with `q` above 1 its multiples, `upper`
    included where it is one."""

    lower: int
    upper: int
    log: bool = False
    q: int | None = None

    def __repr__(self) -> str:
        name = f"{'q' if self.q is not None else ''}{'log' if self.log else ''}randint"
        return (
            f"{name}({self.lower!r}, {self.upper!r}{f', {self.q!r}' if self.q is not None else ''})"
        )

    @property
    def step(self) -> int:
        """Between two of its values, where they are not spread by their logarithms."""
        return 1 if self.q is None else int(self.q)

    @property
    def least(self) -> int:
        """The least of its values."""
        return _steps(self.lower, self.step, up=True) * self.step

    @property
    def greatest(self) -> int:
        """The greatest of its values."""
        return (
            int(self.upper) - 1
            if self.step == 1
            else _steps(self.upper, self.step, up=False) * self.step
        )

    def fault(self) -> str | None:
        for name, value in (
            ("lower bound", self.lower),
            ("upper bound", self.upper),
            ("step", 1 if self.q is None else self.q),
        ):
            if not _is_number(value) or not math.isfinite(value) or int(value) != value:
                return f"the {name} must be a whole number, not {value!r}"
        if found := _bounds_fault(self.lower, self.upper, self.log):
            return found
        if self.step < 1:
            return f"the step must be at least 1, not {self.q!r}"
        if self.greatest < self.least:
            return f"there is no multiple of {self.q!r} between {self.lower!r} and {self.upper!r}"
        return None

    def draw(self, generator: random.Random) -> int:
        first, end = self.least // self.step, self.greatest // self.step + 1
        if not self.log:
            return generator.randrange(first, end) * self.step
        return min(math.floor(_draw_between(generator, first, end, True)), end - 1) * self.step

    def is_valid(self, value: Any) -> bool:
        return _is_number(value) and self.lower <= value <= self.upper


@dataclass(frozen=True, eq=False)
class Categorical(Domain):
    """A domain of some values, each as likely as another."""

    categories: Sequence[Any]

    def __repr__(self) -> str:
        return f"choice({self.categories!r})"

    def __len__(self) -> int:
        return len(self.categories)

    def fault(self) -> str | None:
        return None if self.categories else "there is nothing to choose from"

    def draw(self, generator: random.Random) -> Any:
        return self.categories[generator.randrange(len(self.categories))]

    def is_valid(self, value: Any) -> bool:
        return any(value is each or _same(value, each) for each in self.categories)


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # raised by arrays
        return False


@dataclass(frozen=True, eq=False)
class Function(Domain):
    """The result of a user's function, called with the rest of the configuration if it takes an
    argument."""

    function: Callable[..., Any]
    takes_config: bool = field(default=False)

    def __repr__(self) -> str:
        return f"sample_from({getattr(self.function, '__name__', self.function)})"

    @classmethod
    def of(cls, function: Any) -> Function:
        """Raises TypeError for what cannot be called with one argument, or with none."""
        if not callable(function):
            raise TypeError(f"sample_from() takes a function, not {function!r}")
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # raised by some functions written in C
            return cls(function, False)
        for arguments in (1, 0):
            try:
                signature.bind(*[None] * arguments)
            except TypeError:
                continue
            return cls(function, arguments == 1)
        raise TypeError(
            f"sample_from(): {function!r} must be callable with one argument, the configuration, "
            "or with none"
        )

    def fault(self) -> str | None:
        return None

    def draw(self, generator: random.Random, config: Any = None) -> Any:
        return self.function(config) if self.takes_config else self.function()

    def is_valid(self, value: Any) -> bool:
        return True


def grid_values(value: Any) -> list[Any] | None:
    """The values of a grid, of what `grid_search()` makes, as JSON or YAML may have it too; None:
    it is no grid."""
    if isinstance(value, Mapping) and len(value) == 1 and "grid_search" in value:
        values = value["grid_search"]
        return (
            list(values)
            if isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))
            else []
        )
    return None
