"""Sweeps of command jobs: what `job.sweep(...)` and a file of type sweep say, checked, and the plan
that comes of it.

Method: the pure modules, case by case.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from troupe import azure
from troupe.azure import Input, MLClient, command, sweep
from troupe.azure._sweep_spaces import of
from troupe.tune.schedulers import BanditPolicy, MedianStoppingPolicy

JOB: dict[str, Any] = {
    "command": "python train.py --lr ${{inputs.lr}} --batch ${{inputs.batch}} --data "
    "${{inputs.data}}",
    "inputs": {"lr": 0.01, "batch": 32, "data": Input(type="uri_file", path="./data")},
    "environment": "any",
    "code": "./src",
}


def a_job() -> Any:
    return command(**JOB)


def a_sweep(**more: Any) -> Any:
    return a_job()(lr=sweep.LogUniform(-9, -2), batch=sweep.Choice([16, 32])).sweep(
        **{"primary_metric": "accuracy", "goal": "Maximize", "max_total_trials": 20, **more}
    )


def test_the_guides_form() -> None:
    made = a_sweep(
        compute="gpu-cluster",
        early_termination_policy=sweep.BanditPolicy(slack_factor=0.1, delay_evaluation=5),
    )
    made.experiment_name = "digits"
    made.set_limits(max_concurrent_trials=4, timeout=7200, trial_timeout=600)
    plan = made.plan()
    assert (plan.metric, plan.mode, plan.num_samples, plan.max_total, plan.max_concurrent) == (
        "accuracy",
        "max",
        20,
        20,
        4,
    )
    assert (
        (plan.timeout_s, plan.trial_timeout_s) == (7200.0, 600.0)
        and isinstance(plan.scheduler, BanditPolicy)
        and plan.scheduler.slack_factor == 0.1
    )
    jobs = list(plan.jobs())
    assert len(jobs) == 20 and {job.inputs.batch for job in jobs} == {16, 32}
    assert (
        all(math.exp(-9) <= job.inputs.lr <= math.exp(-2) for job in jobs)
        and len({job.inputs.lr for job in jobs}) == 20
    )
    job = jobs[0]
    assert job.environment_variables == {
        "AZUREML_SWEEP_lr": str(job.inputs.lr),
        "AZUREML_SWEEP_batch": str(job.inputs.batch),
    }
    assert (job.experiment_name, job.compute, job.inputs.data.path, job.swept) == (
        "digits",
        "gpu-cluster",
        "./data",
        {},
    )


def test_the_trial_and_its_values_apart() -> None:
    job = a_job()
    made = job.sweep(
        primary_metric="loss",
        goal="minimize",
        search_space={"lr": sweep.Uniform(0.1, 0.2)},
        early_termination_policy="median_stopping",
    )
    assert (
        made.plan().mode == "min"
        and isinstance(made.plan().scheduler, MedianStoppingPolicy)
        and job.inputs.lr == 0.01
        and job.swept == {}
    )
    made.early_termination = sweep.TruncationSelectionPolicy(truncation_percentage=20)
    made.sampling_algorithm = sweep.RandomSamplingAlgorithm(seed=3)
    made.set_objective(goal="maximize")
    one, other = [[each.inputs.lr for each in made.plan().jobs()] for _ in range(2)]
    assert one == other and len(one) == 1000 and made.plan().mode == "max"
    assert made.to_dict()["sampling_algorithm"] == {"type": "random", "seed": 3}
    assert job(lr=sweep.Uniform(0, 1))(lr=0.5).swept == {} and job(
        lr=sweep.Uniform(0, 1)
    ).swept == {"lr": sweep.Uniform(0, 1)}


def test_a_grid_is_every_combination_up_to_the_most() -> None:
    made = a_job()(lr=sweep.Choice([0.1, 0.2, 0.3]), batch=sweep.Choice([1, 2])).sweep(
        primary_metric="a", goal="minimize", sampling_algorithm="grid"
    )
    assert len({(job.inputs.lr, job.inputs.batch) for job in made.plan().jobs()}) == 6
    made.set_limits(max_total_trials=4)
    assert len(list(made.plan().jobs())) == 4


def test_a_sweep_that_learns() -> None:
    pytest.importorskip("optuna")
    made = a_job()(lr=sweep.QUniform(0.05, 0.5, 0.1), batch=sweep.Choice([1, 2])).sweep(
        primary_metric="a", goal="minimize", sampling_algorithm="bayesian"
    )
    plan = made.plan()
    from troupe.tune._search.adapted import Adapted

    config = (
        Adapted(plan.search_alg, plan.space, plan.num_samples, plan.metric, plan.mode)
        .propose("a")
        .config
    )
    assert plan.job(config).inputs.batch in (1, 2) and any(
        math.isclose(config["lr"], each / 10) for each in range(6)
    )
    with pytest.raises(ValueError, match="no trials before"):
        next(plan.jobs())
    sobol = a_job()(lr=sweep.Uniform(0, 1)).sweep(
        primary_metric="a",
        goal="minimize",
        sampling_algorithm=sweep.RandomSamplingAlgorithm(rule="sobol", seed=1),
    )
    assert type(sobol.plan().search_alg).__name__ == "OptunaSearch"


@pytest.mark.parametrize(
    ("distribution", "is_right"),
    [
        (sweep.Uniform(2, 3), lambda x: 2 <= x <= 3),
        (sweep.LogUniform(-2, 1), lambda x: math.exp(-2) <= x <= math.exp(1)),
        (sweep.QUniform(min_value=0, max_value=10, q=4), lambda x: x in (0, 4, 8, 12)),
        (sweep.QLogUniform(0, 3, 5), lambda x: x in (0, 5, 10, 15, 20)),
        (sweep.Normal(mu=0, sigma=1), lambda x: isinstance(x, float)),
        (sweep.LogNormal(0, 1), lambda x: x > 0),
        (sweep.QNormal(0, 9, 3), lambda x: x % 3 == 0),
        (sweep.QLogNormal(0, 1, 2), lambda x: x >= 0 and x % 2 == 0),
        (sweep.Randint(upper=3), lambda x: x in (0, 1, 2)),
        (sweep.Choice(range(2)), lambda x: x in (0, 1)),
    ],
)
def test_what_is_drawn(distribution: Any, is_right: Any) -> None:
    generator = random.Random(1)
    domain = distribution.domain()
    assert domain.fault() is None and all(is_right(domain.draw(generator)) for _ in range(200))
    assert of("x", distribution.to_dict()) == distribution and of("x", distribution) is distribution


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sweep.Uniform(1, 1), "min_value must be below max_value"),
        (lambda: sweep.Uniform(1), "Uniform needs max_value"),
        (lambda: sweep.Uniform(1, "2"), "max_value must be a number, not '2'"),
        (lambda: sweep.Uniform(1, 2, 3), "takes min_value, max_value"),
        (
            lambda: sweep.Uniform(min_valu=1, max_value=2),
            "Uniform has no 'min_valu': did you mean 'min_value'",
        ),
        (lambda: sweep.QUniform(1, 2, 0), "q must be above 0"),
        (lambda: sweep.Normal(0, -1), "sigma must be above 0"),
        (lambda: sweep.Randint(0), "upper must be at least 1"),
        (lambda: sweep.Randint(1.5), "upper must be a whole number"),
        (lambda: sweep.Choice([]), "values is empty"),
        (lambda: sweep.Choice("ab"), "values must be a list"),
        (lambda: sweep.Choice([{"a": 1}]), "none of an input's"),
        (lambda: of("lr", 3), "search_space: lr must be one of Choice, Uniform"),
        (lambda: of("lr", {"type": "unifrom", "min_value": 1}), "did you mean 'uniform'"),
        (lambda: of("lr", {"type": "uniform"}), "search_space: lr: Uniform needs"),
        (lambda: a_sweep(goal="max"), "goal is 'max'"),
        (lambda: a_sweep(primary_metric=""), "primary_metric is empty"),
        (lambda: a_sweep(sampling_algorithm="bayes"), "did you mean 'bayesian'"),
        (lambda: a_sweep(max_total_trials=0), "max_total_trials must be at least 1"),
        (lambda: a_sweep(timeout="1h"), "timeout must be a number of seconds"),
        (lambda: a_sweep(early_termination_policy="bandits"), "did you mean 'bandit'"),
        (
            lambda: a_sweep(early_termination_policy="truncation_selection"),
            "truncation_percentage must be at least 1",
        ),
        (
            lambda: a_sweep(sampling_algorithm="grid"),
            r"lr is LogUniform.* and grid sampling takes Choice",
        ),
        (
            lambda: a_sweep(sampling_algorithm="bayesian"),
            "bayesian sampling takes Choice and Uniform and QUniform",
        ),
        (lambda: a_sweep(search_space={"rl": sweep.Uniform(0, 1)}), "has no 'rl'"),
        (lambda: a_sweep(priority="highest"), "priority is 'highest'"),
        (lambda: a_job().sweep(primary_metric="a", goal="minimize"), "search_space is empty"),
    ],
)
def test_what_is_refused(make: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError, NotImplementedError)) as refused:
        make()
    assert words in str(refused.value) or __import__("re").search(words, str(refused.value))


def test_what_is_submitted_is_a_job() -> None:
    with pytest.raises(
        ValueError,
        match=r"inputs: lr is Uniform\(min_value=0, max_value=1\), which a sweep draws from",
    ):
        MLClient().jobs.create_or_update(a_job()(lr=sweep.Uniform(0, 1)))


FILE = """
$schema: https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json
type: sweep
trial:
  code: src
  command: python main.py --data ${{inputs.iris}} --c ${{search_space.c_value}} --kernel ${{search_space.kernel}}
  environment: azureml:any@latest
inputs:
  iris: {type: uri_file, path: ./iris.csv}
compute: azureml:cpu-cluster
sampling_algorithm: random
search_space:
  c_value: {type: uniform, min_value: 0.5, max_value: 0.9}
  kernel: {type: choice, values: [rbf, linear]}
objective: {goal: minimize, primary_metric: training_f1_score}
limits: {max_total_trials: 20, max_concurrent_trials: 10, timeout: 7200}
early_termination: {type: bandit, slack_factor: 0.2, evaluation_interval: 1, delay_evaluation: 2}
display_name: sklearn-sweep
"""


def test_a_file_of_type_sweep(tmp_path: Path) -> None:
    (tmp_path / "sweep.yml").write_text(FILE)
    made = azure.load_job(tmp_path / "sweep.yml", params_override=[{"limits.max_total_trials": 3}])
    plan = made.plan()
    jobs = list(plan.jobs())
    assert (
        len(jobs) == 3
        and made.display_name == "sklearn-sweep"
        and plan.scheduler.slack_factor == 0.2
        and plan.max_concurrent == 10
    )
    assert all(
        0.5 <= job.inputs.c_value <= 0.9
        and job.inputs.kernel in ("rbf", "linear")
        and job.base_path == str(tmp_path)
        for job in jobs
    )
    assert (
        "${{inputs.c_value}}" in jobs[0].command
        and jobs[0].inputs.iris.path == "./iris.csv"
        and jobs[0].compute == "azureml:cpu-cluster"
    )
    for text, words in (
        ("objective:", "objectiv: 3\nobjective:"),
        ("type: choice", "type: choices"),
        ("bandit", "bandits"),
    ):
        (tmp_path / "wrong.yml").write_text(FILE.replace(text, words))
        with pytest.raises((ValueError, TypeError), match=r"wrong\.yml.*did you mean"):
            azure.load_job(tmp_path / "wrong.yml")
