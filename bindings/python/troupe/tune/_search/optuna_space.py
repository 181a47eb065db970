"""A `param_space` as Optuna has it: parameters with names and distributions, some of which are
there only under a condition.

A choice of plain values is Optuna's own; of anything else it is one of their numbers. What stands
inside a value of a choice is a parameter only where that value is chosen, and its name says so:
`optimizer[1]/momentum`. Normal distributions and functions are none of Optuna's: they are drawn,
and the sampler does not know them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from troupe import exceptions
from troupe.tune._search import space_tree
from troupe.tune._search.domains import Categorical, Domain, Float, Integer, grid_values
from troupe.tune._search.space_tree import Path, named

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial


def import_optuna(what: str) -> Any:
    """The package. Raises ImportError, which says how to have it."""
    try:
        import optuna
    except ImportError:
        raise exceptions.MissingPackageError(
            f"{what} needs Optuna, which is not installed: pip install 'troupe[tune]'",
            name="optuna",
        ) from None
    return optuna


def _is_plain(values: Any) -> bool:
    return all(
        value is None or isinstance(value, (bool, int, float, str)) for value in values
    ) and len(set(values)) == len(values)


def choices(domain: Any) -> list[Any]:
    """Return the values of a choice, or of a grid."""
    return list(domain.categories) if isinstance(domain, Categorical) else grid_values(domain) or []


def distribution(domain: Any) -> BaseDistribution | None:
    """Return the Optuna distribution of a domain; None if Optuna has none."""
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(domain, Float):
        step = None if domain.log else domain.q
        return FloatDistribution(
            float(domain.lower), float(domain.upper), log=domain.log, step=step
        )
    if isinstance(domain, Integer):
        return IntDistribution(
            domain.least, domain.greatest, log=domain.log, step=1 if domain.log else domain.step
        )
    if isinstance(domain, Categorical) or grid_values(domain) is not None:
        values = choices(domain)
        return CategoricalDistribution(values if _is_plain(values) else range(len(values)))
    return None


def _value(domain: Any, raw: Any) -> Any:
    """Return the configuration's value for a parameter's value in Optuna."""
    if isinstance(domain, (Float, Integer)):
        step = (domain.q if isinstance(domain, Float) else domain.step) if domain.log else None
        if step:
            return domain.__class__(domain.lower, domain.upper, q=domain.q).draw(_Fixed(raw))  # type: ignore[arg-type]
        return raw
    values = choices(domain)
    return raw if _is_plain(values) else values[raw]


class _Fixed:
    """A generator of random numbers that draws what was drawn already."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def uniform(self, lower: float, upper: float) -> float:
        found: float = self._value
        return found

    def randrange(self, first: int, end: int) -> int:
        found: int = self._value
        return found


def _inside(domain: Any, raw: Any, name: str) -> str | None:
    """The name before parameters that stand inside a chosen value; None: nothing stands there."""
    values = choices(domain)
    return None if not values or _is_plain(values) else f"{name}[{raw}]"


def suggested(node: Any, trial: Trial, path: Path = (), prefix: str = "") -> Any:
    """The space with what the trial suggests in place of its domains.

    What Optuna has no distribution for is left.
    """
    if isinstance(node, Domain):
        found = distribution(node)
        if found is None:
            return node
        name = _name(prefix, path)
        raw = _asked(trial, name, found)
        inside = _inside(node, raw, name)
        value = _value(node, raw)
        return value if inside is None else suggested(value, trial, (), inside)
    if isinstance(node, Mapping):
        return {key: suggested(value, trial, (*path, key), prefix) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        made = [suggested(value, trial, (*path, key), prefix) for key, value in enumerate(node)]
        return made if isinstance(node, list) else tuple(made)
    return node


def _name(prefix: str, path: Path) -> str:
    return f"{prefix}/{named(path)}" if prefix and path else prefix or named(path)


def _asked(trial: Trial, name: str, found: Any) -> Any:
    kind = type(found).__name__
    if kind == "FloatDistribution":
        return trial.suggest_float(name, found.low, found.high, step=found.step, log=found.log)
    if kind == "IntDistribution":
        return trial.suggest_int(name, found.low, found.high, step=found.step, log=found.log)
    return trial.suggest_categorical(name, found.choices)


def has_parameters(space: Any) -> bool:
    """Return True if the space has a parameter that Optuna can suggest."""
    return any(
        isinstance(node, (Float, Integer, Categorical)) for _, node in space_tree.leaves(space)
    )


def parameters(
    node: Any, config: Any, path: Path = (), prefix: str = ""
) -> Iterator[tuple[str, Any, BaseDistribution]]:
    """Name, value and distribution of each parameter of a configuration, whoever has made it; those
    whose value is none of the domain are left out."""
    if isinstance(node, Domain) or grid_values(node) is not None:
        found = distribution(node)
        if found is None:
            return
        name, values = _name(prefix, path), choices(node)
        raw = config
        if values and not _is_plain(values):
            raw = next(
                (number for number, value in enumerate(values) if _fits(value, config)), None
            )
        if raw is None and not (values and _is_plain(values)) or not _contains(found, raw):
            return
        yield name, raw, found
        if (inside := _inside(node, raw, name)) is not None:
            yield from parameters(values[raw], config, (), inside)
        return
    for key, value in space_tree.items(node):
        try:
            below = config[key]
        except (LookupError, TypeError):
            continue
        yield from parameters(value, below, (*path, key), prefix)


def _contains(found: Any, raw: Any) -> bool:
    try:
        return bool(found._contains(found.to_internal_repr(raw)))
    except (ValueError, TypeError):
        return False


def _fits(value: Any, config: Any) -> bool:
    """Return True if a configuration may come from that value of a choice: all parts of the value
    that are no domains are there."""
    if isinstance(value, Domain):
        return (
            value.is_valid(config)
            or isinstance(value, Categorical)
            and any(_fits(each, config) for each in value.categories)
        )
    if isinstance(value, Mapping):
        return (
            isinstance(config, Mapping)
            and set(value) == set(config)
            and all(_fits(each, config[key]) for key, each in value.items())
        )
    if isinstance(value, (list, tuple)):
        return (
            isinstance(config, (list, tuple))
            and len(value) == len(config)
            and all(map(_fits, value, config))
        )
    return value is config or bool(value == config)
