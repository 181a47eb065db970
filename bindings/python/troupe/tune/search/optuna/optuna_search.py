"""Optuna's samplers as a searcher."""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from troupe import exceptions
from troupe.tune._core.deciding import Where
from troupe.tune._search import space_tree
from troupe.tune._search.domains import Domain, seed_of
from troupe.tune.search.searcher import Searcher

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage

    from troupe.tune._search.optuna_study import SweepStudy


class OptunaSearch(Searcher):
    """Suggestions by a sampler of Optuna's: TPE, or `sampler`.

    For `TuneConfig(search_alg=...)`; needs `pip install 'troupe[tune]'`.

    `space`: none, then it is `param_space` (choices of dicts with domains inside are conditions;
    normal distributions and functions are drawn beside the sampler); or a dict of Optuna's
    distributions, nested perhaps; or a function of an Optuna trial that suggests, and may return
    constants. `metric` and `mode`: as the sweep's, or lists of both for several objectives.
    `points_to_evaluate`: tried first; with `evaluated_rewards`, their results, they are known and
    not tried. `seed`: of TPE, where no `sampler` is given. `storage`, `study_name`: a storage of
    Optuna's of which the study's earlier trials are known to the sampler, and that gets a copy of
    each trial that is over.

    The sampler runs in a process of its own. Each suggestion is a function of the seed, its number,
    and the trials until then, so a resumed sweep goes on as if it had not stopped; for samplers of
    one's own only if they keep all they know in the study. A trial that was stopped early counts
    with its last value, a failed one and one without a number as failed. Raises ImportError,
    TypeError or ValueError.

        TuneConfig(metric="loss", mode="min", search_alg=OptunaSearch(seed=1), num_samples=50)
        OptunaSearch(sampler=optuna.samplers.CmaEsSampler(seed=1))
    """

    where = Where.PROCESS

    def __init__(
        self,
        space: Mapping[str, Any] | Callable[[Any], dict[str, Any] | None] | None = None,
        metric: str | list[str] | None = None,
        mode: str | list[str] | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        sampler: BaseSampler | None = None,
        study_name: str | None = None,
        storage: BaseStorage | None = None,
        seed: int | None = None,
        evaluated_rewards: Sequence[float] | None = None,
    ) -> None:
        super().__init__(metric, mode)
        if importlib.util.find_spec("optuna") is None:
            raise exceptions.MissingPackageError(
                "OptunaSearch needs Optuna, which is not installed: pip install 'troupe[tune]'",
                name="optuna",
            )
        if sampler is not None and not callable(getattr(sampler, "sample_relative", None)):
            raise TypeError(
                f"OptunaSearch: sampler must be one of optuna.samplers, not {sampler!r}"
            )
        if sampler is not None and seed is not None:
            raise ValueError(
                "OptunaSearch: seed= is of the sampler that is made without sampler=; give yours "
                "its own seed"
            )
        if storage is not None and not callable(getattr(storage, "create_new_trial", None)):
            raise TypeError(
                f"OptunaSearch: storage must be one of optuna.storages, not {storage!r}"
            )
        self._space = self._checked_space(space)
        self._is_param_space = False
        self._points = self._checked_points(points_to_evaluate, evaluated_rewards)
        self._rewards = None if evaluated_rewards is None else list(evaluated_rewards)
        self._sampler, self._storage, self._name = sampler, storage, study_name or "optuna"
        self._seed = seed_of(seed)
        self._identity = uuid.uuid4().hex
        self._made: SweepStudy | None = None

    @staticmethod
    def _checked_space(space: Any) -> Any:
        if space is None or callable(space):
            return space
        if not isinstance(space, Mapping):
            raise TypeError(
                "OptunaSearch: space must be a dict of distributions or a function of an Optuna "
                f"trial, not {space!r}"
            )
        for path, value in space_tree.leaves(space):
            if not isinstance(value, Domain) and not type(value).__module__.startswith(
                "optuna.distributions"
            ):
                raise TypeError(
                    f"OptunaSearch: space: {space_tree.named(path)} must be one of "
                    f"optuna.distributions, not {value!r}"
                )
        if any(isinstance(value, Domain) for _, value in space_tree.leaves(space)):
            space_tree.check(space, "OptunaSearch: space")
        return space

    def _checked_points(self, points: Any, rewards: Any) -> list[dict[str, Any]]:
        if points is not None and (
            isinstance(points, (str, Mapping)) or not isinstance(points, Sequence)
        ):
            raise TypeError(
                f"OptunaSearch: points_to_evaluate must be a list of dicts, not {points!r}"
            )
        for point in points or ():
            if not isinstance(point, Mapping):
                raise TypeError(
                    f"OptunaSearch: points_to_evaluate must be a list of dicts, and {point!r} is "
                    "none"
                )
        if rewards is not None and len(rewards) != len(points or ()):
            raise ValueError(
                f"OptunaSearch: there are {len(points or ())} points_to_evaluate and "
                f"{len(rewards)} evaluated_rewards"
            )
        if rewards is not None and callable(self._space):
            raise TypeError(
                "OptunaSearch: evaluated_rewards= needs a space of distributions: of a function it "
                "is not known which there are"
            )
        return [dict(point) for point in points or ()]

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: Mapping[str, Any], **spec: Any
    ) -> bool:
        self._metric = self._metric if self._metric is not None else metric
        self._mode = self._mode if self._mode is not None else mode
        if not self._metric or not self._mode:
            raise ValueError(
                "OptunaSearch needs what is optimized: TuneConfig(metric=..., mode=...), and has "
                f"metric={self._metric!r} and "
                f"mode={self._mode!r}"
            )
        if isinstance(self._metric, str) != isinstance(self._mode, str):
            raise ValueError(
                f"OptunaSearch: metric={self._metric!r} and mode={self._mode!r} must be two texts, "
                "or two lists"
            )
        if self._space is not None:
            return False
        from troupe.tune._search.optuna_space import has_parameters

        if not has_parameters(config):
            raise ValueError(
                "param_space has nothing that Optuna can suggest: it needs a tune.uniform, "
                "tune.choice, tune.randint or the like"
            )
        self._space, self._is_param_space = config, True
        return True

    @property
    def _study(self) -> SweepStudy:
        if self._made is None:
            if self._space is None:
                self.set_search_properties(None, None, {})
            from troupe.tune._search.optuna_study import SweepStudy

            names = [self._metric] if isinstance(self._metric, str) else list(self._metric or ())
            modes = [self._mode] if isinstance(self._mode, str) else list(self._mode or ())
            self._made = SweepStudy(
                self._space, names, modes, self._sampler, self._seed, self._points, self._rewards
            )
            if self._storage is not None:
                self._made.copy_to(self._storage, self._name, self._identity)
        return self._made

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        suggestion = self._study.suggest(trial_id)
        return Searcher.FINISHED if suggestion is None else suggestion

    def extra_of(self, trial_id: str) -> dict[str, Any]:
        return {"optuna": self._study.kept(trial_id)}

    def on_trial_proposed(
        self, trial_id: str, config: Mapping[str, Any], extra: Mapping[str, Any]
    ) -> None:
        """As `suggest`, of a suggestion that was made before a restart."""
        self._study.proposed(trial_id, extra["optuna"])

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        self._study.reported(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        self._study.ended(trial_id, result, error)

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        self._study.known(parameters, value, error, intermediate_values or [])
