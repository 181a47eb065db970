"""A study of Optuna's that a sweep asks for suggestions: each is a function of the seed, its
number, and what the study knows.

So each is made by a sampler that is new but for its arguments, with draws seeded by the number:
what a sampler keeps beside the study would be gone after a restart. What it keeps in the study goes
into the sweep's journal with the suggestion.
"""

from __future__ import annotations

import copy
import json
import math
import random
import warnings
from collections.abc import Mapping
from typing import Any

import numpy
import optuna
from optuna.distributions import distribution_to_json, json_to_distribution
from optuna.trial import TrialState, create_trial

from troupe.tune._core.objective import found
from troupe.tune._search import optuna_space, space_tree
from troupe.tune._search.domains import Domain
from troupe.tune._search.optuna_storage import SweepStorage, directions, final, quiet


class SweepStudy:
    """`space`: a param_space, a dict of distributions, or a function of an Optuna trial.

    `names`, `modes`: what is optimized.

    `points` are suggested first; where `rewards` has their results, they are known instead.
    """

    def __init__(
        self,
        space: Any,
        names: list[str],
        modes: list[str],
        sampler: Any,
        seed: int,
        points: list[dict[str, Any]],
        rewards: list[Any] | None,
    ) -> None:
        self._space, self._names, self._seed = space, names, seed
        self._sampler = (
            sampler if sampler is not None else optuna.samplers.TPESampler(seed=seed % 2**32)
        )
        self._is_known_kind = type(self._sampler).__module__.startswith("optuna.")
        self._storage = SweepStorage()
        self._study = quietly_made(
            storage=self._storage, sampler=self._sampler, directions=directions(modes)
        )
        self._numbers: dict[str, int] = {}  # numbers of unfinished trials
        self._kept: dict[str, dict[str, Any]] = {}  # draws of the last suggestion
        self._asked = 0
        self._exhausted = False
        self._copies: Copies | None = None
        self._points = points if rewards is None else []
        if rewards is not None:
            for point, reward in zip(points, rewards, strict=True):
                self.known(point, reward, False, [])

    def copy_to(self, storage: Any, name: str, identity: str) -> None:
        """Earlier trials of the study of that name are known; each that is over is copied there."""
        self._copies = Copies(storage, name, self._study, identity)

    def suggest(self, trial: str) -> dict[str, Any] | None:
        """A configuration, in which domains may be left that Optuna does not know; None: there is
        none any more."""
        if self._exhausted:
            return None
        sampler = self._study.sampler = self._fresh(self._asked)
        if self._asked < len(self._points):
            self._study.enqueue_trial(self._flat(self._points[self._asked]))
        self._asked += 1
        before = dict(self._study._storage.get_study_system_attrs(self._study._study_id))
        asked = self._study.ask()
        config = self._suggested(asked)
        self._sampler = self._sampler if self._is_known_kind else sampler
        frozen = self._storage.get_trial(asked._trial_id)
        after = self._storage.get_study_system_attrs(self._study._study_id)
        self._numbers[trial] = asked.number
        self._kept = {
            trial: {
                "params": frozen.params,
                "distributions": {
                    name: json.loads(distribution_to_json(each))
                    for name, each in frozen.distributions.items()
                },
                "trial": frozen.system_attrs,
                "study": {
                    name: value for name, value in after.items() if before.get(name) != value
                },
            }
        }
        return config

    def _fresh(self, number: int) -> Any:
        """The sampler as it is for the suggestion of that number."""
        if not self._is_known_kind:
            return self._sampler
        made = copy.deepcopy(self._sampler)
        _seed(made, random.Random((self._seed << 64) + number), set())
        return made

    def _suggested(self, asked: Any) -> dict[str, Any]:
        if callable(self._space):
            constants = self._space(asked)
            if constants is not None and not (
                isinstance(constants, Mapping) and all(isinstance(name, str) for name in constants)
            ):
                raise TypeError(
                    "the function that is OptunaSearch's space must return a dict of constants, "
                    f"or None, not {constants!r}"
                )
            return _nested({**asked.params, **(constants or {})})
        if any(isinstance(node, Domain) for _, node in space_tree.leaves(self._space)):
            found: dict[str, Any] = optuna_space.suggested(self._space, asked)
            return found
        for path, each in space_tree.leaves(self._space):
            optuna_space._asked(asked, space_tree.named(path), each)
        return _nested(asked.params)

    def _flat(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point by the names of parameters."""
        if not callable(self._space) and any(
            isinstance(node, Domain) for _, node in space_tree.leaves(self._space)
        ):
            named = {name: value for name, value, _ in optuna_space.parameters(self._space, point)}
            unknown = [
                space_tree.named(path)
                for path, _ in space_tree.leaves(point)
                if not _reaches(self._space, path)
            ]
            if unknown:
                raise ValueError(
                    f"OptunaSearch: points_to_evaluate: {', '.join(unknown)} is no parameter of "
                    "param_space"
                )
            return named
        return {space_tree.named(path): value for path, value in space_tree.leaves(point)}

    def kept(self, trial: str) -> dict[str, Any]:
        """Return the data that `proposed` needs of the suggestion just made."""
        return self._kept.get(trial, {})

    def proposed(self, trial: str, kept: Mapping[str, Any]) -> None:
        """A suggestion of before a restart."""
        self._asked += 1
        template = create_trial(
            state=TrialState.RUNNING,
            params=dict(kept["params"]),
            system_attrs=dict(kept["trial"]),
            distributions={
                name: json_to_distribution(json.dumps(each))
                for name, each in kept["distributions"].items()
            },
        )
        created = self._storage.create_new_trial(self._study._study_id, template)
        for name, value in kept["study"].items():
            self._storage.set_study_system_attr(self._study._study_id, name, value)
        self._numbers[trial] = self._storage.get_trial_number_from_id(created)

    def reported(self, trial: str, result: Mapping[str, Any]) -> None:
        """A report. Of several objectives Optuna wants none but the last."""
        step, value = result.get("training_iteration"), found(result, self._names[0])
        is_number = isinstance(value, (int, float)) and not math.isnan(value)
        if len(self._names) == 1 and trial in self._numbers and is_number and step is not None:
            self._storage.set_trial_intermediate_value(self._id(trial), int(step), float(value))

    def _id(self, trial: str) -> int:
        found: int = self._storage.get_trial_id_from_study_id_trial_number(
            self._study._study_id, self._numbers[trial]
        )
        return found

    def ended(self, trial: str, result: Mapping[str, Any] | None, failed: bool) -> None:
        """A trial is over."""
        if trial not in self._numbers:
            return
        state, values = final(
            None if result is None else [found(result, name) for name in self._names], failed
        )
        trial_id, number = self._id(trial), self._numbers.pop(trial)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._study.tell(number, values, state=state)
        except RuntimeError:
            if not self._storage.get_trial(trial_id).state.is_finished():
                raise
            self._exhausted = (
                True  # the sampler asks the study to stop: it has suggested all there is
            )
        if self._copies is not None:
            self._copies.add(trial, self._storage.get_trial(trial_id))

    def known(
        self, point: Mapping[str, Any], value: Any, failed: bool, intermediate: list[float]
    ) -> None:
        """A point that was tried elsewhere."""
        params = self._flat(point)
        if any(isinstance(node, Domain) for _, node in space_tree.leaves(self._space)):
            distributions = {
                name: each for name, _, each in optuna_space.parameters(self._space, point)
            }
        else:
            distributions = {
                space_tree.named(path): each for path, each in space_tree.leaves(self._space)
            }
            distributions = {name: distributions[name] for name in params if name in distributions}
        state, values = final(list(value) if isinstance(value, (list, tuple)) else [value], failed)
        self._study.add_trial(
            create_trial(
                state=state,
                values=values,
                params={name: params[name] for name in distributions},
                distributions=distributions,
                intermediate_values=dict(enumerate(intermediate)),
            )
        )


class Copies:
    """A study in a storage of the user's: it gets each trial that is over, once.

    That it cannot be written stops nothing, and is said once.
    """

    def __init__(self, storage: Any, name: str, study: Any, identity: str) -> None:
        self._study = quietly_made(
            storage=storage, study_name=name, directions=study.directions, load_if_exists=True
        )
        self._identity = identity
        self._there: set[str] = set()
        self._has_said = False
        for trial in self._study.get_trials(deepcopy=False):
            if trial.user_attrs.get("sweep") == identity:
                self._there.add(trial.user_attrs["trial"])
            elif trial.state is TrialState.COMPLETE:
                study.add_trial(trial)

    def add(self, trial: str, frozen: Any) -> None:
        """A trial that is over."""
        if trial in self._there:
            return
        self._there.add(trial)
        frozen.user_attrs.update({"sweep": self._identity, "trial": trial})
        try:
            self._study.add_trial(frozen)
        except Exception as error:  # a storage of the user's may raise anything
            if not self._has_said:
                self._has_said = True
                warnings.warn(
                    f"trial {trial} is not in the study {self._study.study_name!r} of "
                    f"OptunaSearch(storage=...): {type(error).__name__}: {error}; "
                    "the sweep goes on, and its own journal has it",
                    stacklevel=2,
                )


def quietly_made(**arguments: Any) -> Any:
    """A study, without the line that Optuna writes for each."""
    with quiet():
        return optuna.create_study(**arguments)


def _seed(thing: Any, generator: random.Random, seen: set[int]) -> None:
    """Seeds all generators of random numbers that a sampler has, and those that it is made of."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    for value in list(getattr(thing, "__dict__", {}).values()):
        if isinstance(value, numpy.random.RandomState):
            value.seed(generator.getrandbits(32))
        elif type(value).__name__ == "LazyRandomState":
            value.rng.seed(generator.getrandbits(32))
        elif type(value).__module__.startswith("optuna."):
            _seed(value, generator, seen)


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in flat.items():
        *above, last = name.split("/")
        inside = made
        for part in above:
            inside = inside.setdefault(part, {})
        inside[last] = value
    return made


def _reaches(space: Any, path: Any) -> bool:
    for key in path:
        if isinstance(space, Domain):
            return True
        try:
            space = space[key]
        except (LookupError, TypeError):
            return False
    return True
