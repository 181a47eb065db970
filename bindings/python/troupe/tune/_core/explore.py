"""Pure.

How population based training changes a configuration: some parameters are drawn anew, the others
moved a little.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from troupe.tune._search import spaces
from troupe.tune._search.domains import Categorical, Domain, Float, Function, Integer
from troupe.tune._search.space_tree import Path, named


def check(mutations: Any, path: Path = ()) -> None:
    """Raises TypeError or ValueError for what cannot be mutated by, naming the parameter."""
    for key, rule in mutations.items():
        where = f"hyperparam_mutations: {named((*path, key))}"
        if isinstance(rule, Mapping):
            check(rule, (*path, key))
        elif isinstance(rule, Function):
            raise ValueError(
                f"{where}: sample_from() is drawn with the rest: give a function without "
                "arguments, or tune.uniform and the like"
            )  # noqa: TRY004
        elif isinstance(rule, Domain):
            if fault := rule.fault():
                raise ValueError(f"{where}: {rule!r}: {fault}")
        elif isinstance(rule, (list, tuple)):
            if not rule:
                raise ValueError(f"{where}: {rule!r} has no values")
        elif not callable(rule):
            raise TypeError(
                f"{where}: a list of values, a domain as tune.uniform(0, 1), a function, or a dict "
                f"of these, not {rule!r}"
            )


def completed(space: Mapping[str, Any], mutations: Mapping[str, Any]) -> dict[str, Any]:
    """The space with those parameters that it has not: drawn as the mutations say."""
    return {
        **space,
        **{key: _drawn_by(rule) for key, rule in mutations.items() if key not in space},
    }


def _drawn_by(rule: Any) -> Any:
    if isinstance(rule, Mapping):
        return {key: _drawn_by(inner) for key, inner in rule.items()}
    if isinstance(rule, (list, tuple)):
        return spaces.choice(rule)
    return rule if isinstance(rule, Domain) else spaces.sample_from(rule)


class Explorer:
    """Changes configurations. Raises TypeError or ValueError for mutations that are none."""

    def __init__(
        self,
        mutations: Mapping[str, Any],
        resample_probability: float,
        factors: Sequence[float],
        custom: Callable[[dict[str, Any]], dict[str, Any]] | None,
    ) -> None:
        check(mutations)
        self._mutations, self._resample_probability, self._factors, self._custom = (
            mutations,
            resample_probability,
            factors,
            custom,
        )

    def explored(
        self, config: Mapping[str, Any], generator: random.Random
    ) -> tuple[dict[str, Any], str]:
        """Another configuration, and what was done, for a person.

        Raises what the user's function raises, and TypeError where it returns none.
        """
        made = self._changed(config, self._mutations, generator)
        said = ", ".join(self._differences(config, made, self._mutations, ()))
        if self._custom is not None:
            made = self._custom(made)
            if not isinstance(made, Mapping):
                raise TypeError(
                    f"custom_explore_fn must return the configuration, and has returned {made!r}"
                )
            said = f"{said}, then custom_explore_fn" if said else "custom_explore_fn"
        return dict(made), said

    def _changed(
        self, config: Mapping[str, Any], mutations: Mapping[str, Any], generator: random.Random
    ) -> dict[str, Any]:
        made = copy.deepcopy(dict(config))
        for key, rule in mutations.items():
            if isinstance(rule, Mapping):
                made[key] = self._changed(made.get(key) or {}, rule, generator)
            elif isinstance(rule, (list, tuple, Categorical)):
                made[key] = self._neighbour(
                    made, key, rule.categories if isinstance(rule, Categorical) else rule, generator
                )
            else:
                made[key] = self._moved(made, key, rule, generator)
        return made

    def _neighbour(
        self, config: dict[str, Any], key: Any, values: Sequence[Any], generator: random.Random
    ) -> Any:
        place = next(
            (
                number
                for number, value in enumerate(values)
                if key in config and (value is config[key] or value == config[key])
            ),
            None,
        )
        if generator.random() < self._resample_probability or place is None:
            return generator.choice(values)
        return values[min(max(place + generator.choice((-1, 1)), 0), len(values) - 1)]

    def _moved(self, config: dict[str, Any], key: Any, rule: Any, generator: random.Random) -> Any:
        old: Any = config.get(key)
        is_number = isinstance(old, (int, float)) and not isinstance(old, bool)
        if generator.random() < self._resample_probability or key not in config:
            new = rule.draw(generator) if isinstance(rule, Domain) else rule()
        elif is_number:
            new = old * generator.choice(self._factors)
        else:
            return old  # a value that is not a number can only be drawn anew
        if isinstance(old, bool):
            return bool(new)
        if is_number and isinstance(rule, (Float, Integer)):
            new = _within(rule, new)
        return round(new) if isinstance(old, int) else new

    def _differences(
        self, old: Any, new: Any, mutations: Mapping[str, Any], path: Path
    ) -> Iterator[str]:
        for key, rule in mutations.items():
            before = old.get(key) if isinstance(old, Mapping) else None
            if isinstance(rule, Mapping):
                yield from self._differences(before, new[key], rule, (*path, key))
            else:
                yield f"{named((*path, key))} {before!r} -> {new[key]!r}"


def _within(rule: Float | Integer, value: float) -> float:
    """The value within the bounds, and on a step where there are steps."""
    lower, upper = (
        (rule.least, rule.greatest) if isinstance(rule, Integer) else (rule.lower, rule.upper)
    )
    step = rule.step if isinstance(rule, Integer) else rule.q
    if step:
        value = round(value / step) * step
    return min(max(value, lower), upper)
