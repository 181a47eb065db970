"""Resources of a trial: amounts, or bundles of which the first is its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from troupe import _pickled
from troupe._base import strategies as _strategies
from troupe._cluster import selectors

DEFAULT = {"CPU": 1.0}
_NAMES = {"cpu": "CPU", "gpu": "GPU"}
_OF_GROUP = ("priority", "infeasible", "label_selector", "accelerator_type")
_OPTIONS = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}


class PlacementGroupFactory:
    """Bundles that each trial holds together: the first is the trial's own, the others are for the
    actors and tasks that it makes.

    `strategy`: as of placement groups. Raises ValueError for what is no bundle. As Ray's
    `tune.PlacementGroupFactory`.

        gang = tune.PlacementGroupFactory([{"CPU": 1}, {"CPU": 4}, {"CPU": 4}], strategy="SPREAD")
        tune.with_resources(train, gang)
    """

    def __init__(self, bundles: Sequence[Mapping[str, float]], strategy: str = "PACK") -> None:
        if not bundles or isinstance(bundles, (str, Mapping)):
            raise ValueError(
                f"PlacementGroupFactory({bundles!r}): a list of bundles, [{{'CPU': 1}}, {{'GPU': "
                f"1}}]"
            )
        _strategies.check(strategy)
        self.bundles = [amounts(bundle) for bundle in bundles]
        self.strategy = strategy

    @property
    def required_resources(self) -> dict[str, float]:
        """All bundles together."""
        found: dict[str, float] = {}
        for bundle in self.bundles:
            for name, amount in bundle.items():
                found[name] = found.get(name, 0.0) + amount
        return found

    def __repr__(self) -> str:
        return f"PlacementGroupFactory({self.bundles}, strategy={self.strategy!r})"


def amounts(resources: Any) -> dict[str, float]:
    """By the runtime's names. Raises ValueError for what is no amount."""
    if not isinstance(resources, Mapping):
        raise ValueError(
            f"a trial's resources are a dict of amounts, {{'cpu': 2, 'gpu': 0.5}}, or a "
            f"PlacementGroupFactory, not {resources!r}"
        )
    found = {}
    for name, amount in resources.items():
        if (
            not isinstance(name, str)
            or isinstance(amount, bool)
            or not isinstance(amount, (int, float))
            or not amount >= 0
        ):
            raise ValueError(
                f"a trial's resources {dict(resources)!r}: {name!r}: {amount!r} is no amount of a "
                "resource"
            )
        if amount:
            found[_NAMES.get(name, name)] = float(amount)
    return found


def shape_of(resources: Any) -> str:
    """A text that is the same for the same resources; of None that of the default."""
    if isinstance(resources, PlacementGroupFactory):
        if len(resources.bundles) > 1:
            return json.dumps(
                {"bundles": resources.bundles, "strategy": resources.strategy}, sort_keys=True
            )
        resources = resources.bundles[0]
    return json.dumps(DEFAULT if resources is None else amounts(resources), sort_keys=True)


def bundles_of(shape: str) -> tuple[list[dict[str, float]], str]:
    """The bundles of a shape, and their strategy; "" where there is one alone, which needs no
    group."""
    held = json.loads(shape)
    return (
        (held["bundles"], held["strategy"])
        if isinstance(held.get("bundles"), list)
        else ([held], "")
    )


def held_by(shape: str) -> dict[str, float]:
    """Return the resources that the trial's own process holds."""
    return bundles_of(shape)[0][0]


def options_of(shape: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the actor that is the trial's process; `given`: further options, which
    for several bundles belong to their group."""
    held = held_by(shape)
    own = {
        name: value
        for name, value in given.items()
        if not bundles_of(shape)[1] or name not in _OF_GROUP
    }
    return {**own, **amounts_as_options(held)}


def amounts_as_options(held: Mapping[str, float]) -> dict[str, Any]:
    """Return the options of an actor that holds these amounts."""
    options: dict[str, Any] = {
        "num_cpus": 0,
        **{_OPTIONS[each]: amount for each, amount in held.items() if each in _OPTIONS},
    }
    options["resources"] = {each: amount for each, amount in held.items() if each not in _OPTIONS}
    return options


def group_options(
    bundles: Sequence[Mapping[str, float]], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of the placement group of several bundles."""
    labels = dict(given.get("label_selector") or {})
    wanted = [
        {
            **labels,
            **(
                {selectors.GPU_TYPE: given["accelerator_type"]}
                if given.get("accelerator_type") and bundle.get("GPU")
                else {}
            ),
        }
        for bundle in bundles
    ]
    found: dict[str, Any] = {
        name: given[name] for name in ("priority", "infeasible") if name in given
    }
    return {**found, "bundle_label_selector": wanted} if any(wanted) else found


_pickled.named_in("troupe.tune", PlacementGroupFactory)
