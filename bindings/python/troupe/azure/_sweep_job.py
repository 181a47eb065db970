"""`command(...).sweep(...)`: a sweep of command jobs as people write it, checked, and what it is to
a sweep's engine. Pure."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from troupe._code import field_checks
from troupe.azure import _entities, _schema, _sweep_spaces
from troupe.azure._jobs.job import Described
from troupe.azure._sweep_spaces import SweepDistribution
from troupe.tune._search import spaces

if TYPE_CHECKING:
    from troupe.azure._command import Command

TOTAL_OTHERWISE = 1000
"""Trials of a sweep that says no number."""
ALGORITHMS = ("random", "grid", "bayesian")
POLICIES = {
    "bandit": "BanditPolicy",
    "median_stopping": "MedianStoppingPolicy",
    "truncation_selection": "TruncationSelectionPolicy",
}
LIMITS = ("max_concurrent_trials", "max_total_trials", "timeout", "trial_timeout")


class Objective(_entities.Part):
    """The objective of a sweep: the metric that the trials log, and whether to maximize it.

    Objective(goal="maximize", primary_metric="accuracy")
    """

    def __init__(self, goal: str | None = None, primary_metric: str | None = None) -> None:
        self.goal = _schema.one_of("goal", goal, ("minimize", "maximize"))
        self.primary_metric = field_checks.text("primary_metric", primary_metric)


class SweepJobLimits(_entities.Part):
    """`max_total_trials`: 1000 without.

    `timeout` of the sweep, `trial_timeout` of each trial: seconds.
    """

    def __init__(
        self,
        *,
        max_concurrent_trials: int | None = None,
        max_total_trials: int | None = None,
        timeout: float | None = None,
        trial_timeout: float | None = None,
    ) -> None:
        self.max_concurrent_trials = (
            None
            if max_concurrent_trials is None
            else _schema.whole("max_concurrent_trials", max_concurrent_trials)
        )
        self.max_total_trials = (
            None
            if max_total_trials is None
            else _schema.whole("max_total_trials", max_total_trials)
        )
        self.timeout, self.trial_timeout = (
            _schema.seconds("timeout", timeout),
            _schema.seconds("trial_timeout", trial_timeout),
        )


class SamplingAlgorithm(_entities.Part):
    """Base of the three."""

    type = ""

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, **super().to_dict()}


class RandomSamplingAlgorithm(SamplingAlgorithm):
    """Draws; `rule="sobol"` spreads the points evenly.

    `seed` makes it draw the same again. `logbase` changes no value that is drawn.
    """

    type = "random"

    def __init__(
        self,
        *,
        rule: str | None = None,
        seed: int | None = None,
        logbase: float | str | None = None,
    ) -> None:
        self.rule = None if rule is None else _schema.one_of("rule", rule, ("random", "sobol"))
        self.seed = None if seed is None else _schema.whole("seed", seed, least=0)
        self.logbase = logbase


class GridSamplingAlgorithm(SamplingAlgorithm):
    """Every combination of Choices."""

    type = "grid"


class BayesianSamplingAlgorithm(SamplingAlgorithm):
    """Learns from the trials that are over, by Optuna's TPE; of Choice, Uniform and QUniform."""

    type = "bayesian"


def algorithm_of(given: Any) -> SamplingAlgorithm:
    """Given by its name, as a dict with `type`, or as one. Raises TypeError or ValueError."""
    if isinstance(given, SamplingAlgorithm):
        return given
    fields = dict(given) if isinstance(given, Mapping) else {"type": given}
    kind = _schema.one_of("sampling_algorithm", fields.pop("type", None), ALGORITHMS)
    if kind == "random":
        return RandomSamplingAlgorithm(
            **_schema.mapping("sampling_algorithm", fields, ("rule", "seed", "logbase"))
        )
    _schema.mapping("sampling_algorithm", fields, ())
    return GridSamplingAlgorithm() if kind == "grid" else BayesianSamplingAlgorithm()


def check_sampled(algorithm: SamplingAlgorithm, name: str, each: SweepDistribution) -> None:
    """Raise ValueError where the algorithm cannot draw from the distribution of the input
    `name`."""
    allowed = {"grid": ("choice",), "bayesian": ("choice", "uniform", "quniform")}.get(
        algorithm.type
    )
    if allowed is not None and each.type not in allowed:
        names = " and ".join(_sweep_spaces.KINDS[kind].__name__ for kind in allowed)
        raise ValueError(
            f"search_space: {name} is {each!r}, and {algorithm.type} sampling takes {names}"
        )


def policy_of(given: Any) -> Any:
    """A policy of early termination, given by its name, as a dict with `type`, or as one; None:
    none. Raises TypeError or ValueError."""
    from troupe.tune.schedulers import early_termination

    if given is None or isinstance(given, early_termination.EarlyTerminationPolicy):
        return given
    fields = dict(given) if isinstance(given, Mapping) else {"type": given}
    kind = _schema.one_of("early_termination_policy", fields.pop("type", None), POLICIES)
    policy = getattr(early_termination, POLICIES[kind])
    given = _schema.mapping(
        f"a policy of type {kind}", fields, inspect.signature(policy).parameters
    )
    return policy(**{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True)
class SweepPlan:
    """The engine's part of a sweep: `space` and `search_alg` choose the trials, `scheduler` ends
    some early (None: none)."""

    trial: Command
    space: Mapping[str, Any]
    search_alg: Any
    scheduler: Any
    metric: str
    mode: str
    num_samples: int
    max_total: int
    max_concurrent: int
    timeout_s: float | None
    trial_timeout_s: float | None

    def job(self, config: Mapping[str, Any]) -> Command:
        """The command job of one trial.

        Its processes have the values as `AZUREML_SWEEP_<name>` too.
        """
        made = self.trial(**config)
        made.environment_variables.update(
            {f"AZUREML_SWEEP_{name}": str(value) for name, value in config.items()}
        )
        return made

    def jobs(self) -> Iterator[Command]:
        """The jobs of all trials, each made when it is asked for, where no trial depends on the
        results of others. Raises ValueError for a sweep that learns."""
        if not hasattr(self.search_alg, "searcher"):
            raise ValueError(
                "a sweep that learns from its trials has no trials before the first of them have "
                "ended"
            )
        searcher = self.search_alg.searcher(self.space, self.num_samples)
        for number in range(min(self.max_total, searcher.total() or self.max_total)):
            proposal = searcher.propose(f"t{number}")
            if proposal is None:
                return
            yield self.job(proposal.config)


class Sweep(Described):
    """A sweep of command jobs: what `command(...).sweep(...)` and a YAML file with `type: sweep`
    give. Its attributes may be set until it runs."""

    type = "sweep"
    studio_url: str | None = None
    services: Mapping[str, Any] = {}

    def __init__(
        self,
        trial: Command,
        search_space: Mapping[str, Any],
        objective: Any,
        *,
        sampling_algorithm: Any = "random",
        limits: Any = None,
        early_termination: Any = None,
        queue_settings: Any = None,
        **about: Any,
    ) -> None:
        self.name: str | None = about.get("name")
        self.id: str | None = None
        self.status: str | None = None
        self.display_name, self.description = about.get("display_name"), about.get("description")
        self.experiment_name, self.compute = about.get("experiment_name"), about.get("compute")
        self.tags, self.properties = (
            _schema.mapping("tags", about.get("tags")),
            _schema.mapping("properties", about.get("properties")),
        )
        self.trial = trial
        self.search_space: dict[str, Any] = dict(search_space)
        self.objective, self.sampling_algorithm = objective, sampling_algorithm
        self.limits, self.early_termination, self.queue_settings = (
            limits,
            early_termination,
            queue_settings,
        )
        self.check()

    @property
    def inputs(self) -> Any:
        """Inputs of the trials."""
        return self.trial.inputs

    @property
    def outputs(self) -> Any:
        """Outputs of the trials; those of the best one are the sweep's."""
        return self.trial.outputs

    def __repr__(self) -> str:
        return (
            f"<sweep {self.name or self.display_name or 'without a name'} of "
            f"{', '.join(self.search_space)}: {self.trial.command!r}>"
        )

    def set_limits(
        self,
        *,
        max_concurrent_trials: int | None = None,
        max_total_trials: int | None = None,
        timeout: float | None = None,
        trial_timeout: float | None = None,
    ) -> None:
        """Sets those that are given. Raises TypeError or ValueError."""
        given = {
            "max_concurrent_trials": max_concurrent_trials,
            "max_total_trials": max_total_trials,
            "timeout": timeout,
            "trial_timeout": trial_timeout,
        }
        self.limits = SweepJobLimits(
            **{
                **self.limits.to_dict(),
                **{name: value for name, value in given.items() if value is not None},
            }
        )

    def set_objective(self, *, goal: str | None = None, primary_metric: str | None = None) -> None:
        """Sets what is given of what is optimized. Raises TypeError or ValueError."""
        self.objective = Objective(
            goal or self.objective.goal, primary_metric or self.objective.primary_metric
        )

    def check(self) -> None:
        """Check all that can be checked without a cluster.

        Raises TypeError, ValueError or NotImplementedError.
        """
        self.objective = _entities.part(
            Objective, "objective", self.objective, ("goal", "primary_metric")
        )
        self.limits = _entities.part(SweepJobLimits, "limits", self.limits, LIMITS)
        self.queue_settings = _entities.part(
            _entities.QueueSettings, "queue_settings", self.queue_settings, _schema.QUEUE
        )
        self.sampling_algorithm = algorithm_of(self.sampling_algorithm)
        self.early_termination = policy_of(self.early_termination)
        self.search_space = {
            name: _sweep_spaces.of(name, value)
            for name, value in _schema.mapping("search_space", self.search_space).items()
        }
        if not self.search_space:
            raise ValueError(
                "search_space is empty: job(lr=Uniform(0.01, 0.1)).sweep(...), or "
                "search_space={'lr': Uniform(0.01, 0.1)}"
            )
        for name in self.search_space:
            field_checks.known("the job's inputs", name, self.trial.inputs)
        for name, each in self.search_space.items():
            check_sampled(self.sampling_algorithm, name, each)

    def plan(self) -> SweepPlan:
        """Return the engine's part.

        Raises what `check` raises, and ImportError for a sampling that needs Optuna where that is
        not installed.
        """
        self.check()
        total = self.limits.max_total_trials or TOTAL_OTHERWISE
        concurrent = self.limits.max_concurrent_trials or total
        kind = self.sampling_algorithm.type
        trial = copy.deepcopy(self.trial)
        trial.swept = {}
        for name in ("compute", "experiment_name"):
            if getattr(self, name) is not None:
                setattr(trial, name, getattr(self, name))
        return SweepPlan(
            trial,
            {name: self._domain(each) for name, each in self.search_space.items()},
            self._search_alg(),
            copy.deepcopy(self.early_termination),
            self.objective.primary_metric,
            "min" if self.objective.goal == "minimize" else "max",
            1 if kind == "grid" else total,
            total,
            concurrent,
            self.limits.timeout,
            self.limits.trial_timeout,
        )

    def _domain(self, each: SweepDistribution) -> Any:
        kind = self.sampling_algorithm.type
        if kind == "grid":
            return spaces.grid_search(each.values)  # type: ignore[attr-defined]
        return (
            each.steps()
            if kind == "bayesian" and isinstance(each, _sweep_spaces.QUniform)
            else each.domain()
        )

    def _search_alg(self) -> Any:
        seed = getattr(self.sampling_algorithm, "seed", None)
        if self.sampling_algorithm.type == "bayesian":
            from troupe.tune.search.optuna import OptunaSearch

            return OptunaSearch()
        if getattr(self.sampling_algorithm, "rule", None) == "sobol":
            from troupe.tune._search.optuna_space import import_optuna
            from troupe.tune.search.optuna import OptunaSearch

            samplers = import_optuna("sampling_algorithm: rule sobol").samplers
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warns that its interface can change
                return OptunaSearch(
                    sampler=samplers.QMCSampler(
                        qmc_type="sobol", seed=seed, warn_independent_sampling=False
                    )
                )
        from troupe.tune.search.basic_variant import BasicVariantGenerator

        found = BasicVariantGenerator(random_state=seed)
        found.most = self.limits.max_total_trials or TOTAL_OTHERWISE
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, as they would stand in a file."""
        found = {
            "type": "sweep",
            "trial": self.trial.to_dict(),
            "search_space": {name: each.to_dict() for name, each in self.search_space.items()},
            "objective": self.objective.to_dict(),
            "limits": self.limits.to_dict(),
            "sampling_algorithm": self.sampling_algorithm.to_dict(),
            "queue_settings": self.queue_settings.to_dict(),
        }
        about = {
            name: getattr(self, name)
            for name in (
                "name",
                "display_name",
                "description",
                "experiment_name",
                "compute",
                "tags",
                "properties",
            )
        }
        return {
            **found,
            **{name: value for name, value in about.items() if value},
            **({"status": self.status, "id": self.id} if self.status else {}),
        }


def of_command(
    job: Command,
    *,
    primary_metric: Any,
    goal: Any,
    sampling_algorithm: Any,
    search_space: Any,
    early_termination_policy: Any,
    compute: Any,
    limits: Mapping[str, Any],
    queue_settings: Any,
) -> Sweep:
    """Return the sweep made by `job.sweep(...)`. Raises TypeError, ValueError or
    NotImplementedError."""
    trial = copy.deepcopy(job)
    trial.name = trial.id = trial.status = None
    return Sweep(
        trial,
        {**job.swept, **_schema.mapping("search_space", search_space)},
        Objective(goal, primary_metric),
        sampling_algorithm=sampling_algorithm,
        limits=SweepJobLimits(**limits),
        early_termination=early_termination_policy,
        queue_settings=queue_settings,
        compute=compute or job.compute,
        experiment_name=job.experiment_name,
        display_name=job.display_name,
    )
