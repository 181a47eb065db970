"""Optuna's samplers: spaces with conditions, points, several objectives, a copy in a storage, and
that a restart changes no suggestion.

Method: searchers asked and told in a random order, beside others that are brought to the same point
by what a journal keeps.
"""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import pytest

from troupe import tune
from troupe.tune._core.deciding import End, Mode, Proposal, Report, Where
from troupe.tune._search.adapted import Adapted
from troupe.tune.search import ConcurrencyLimiter

optuna = pytest.importorskip("optuna")
from troupe.tune._search import optuna_space
from troupe.tune.search.optuna import OptunaSearch

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = {
    "lr": tune.loguniform(1e-4, 1e-1),
    "batch": tune.qrandint(8, 64, 8),
    "kept": 3,
    "m": {"drop": tune.quniform(0, 0.5, 0.1)},
    "opt": tune.choice([{"kind": "adam"}, {"kind": "sgd", "momentum": tune.uniform(0, 1)}]),
    "act": tune.choice(["relu", None]),
    "noise": tune.randn(0, 1),
    "twice": tune.sample_from(lambda spec: spec.config.batch * 2),
    "l": [tune.randint(0, 3), 7],
}


def loss(config: Any) -> float:
    return abs(config["lr"] - 0.01) * 10 + config["batch"] / 64 + config["opt"].get("momentum", 0.5)


def adapted(
    search: Any, space: Any = None, samples: int = 200, metric: Any = "loss", mode: Any = "min"
) -> Adapted:
    made = Adapted(search, SPACE if space is None else space, samples, metric, mode)
    made._seed = 5
    return made


def run(
    made: Adapted,
    number: int,
    *,
    seed: int = 0,
    first: int = 0,
    calls: list | None = None,
    value: Any = loss,
) -> list[Proposal]:
    """Asks and tells in a random order; `calls` gets what a journal would have."""
    generator, proposals, running, calls = (
        random.Random(seed),
        [],
        {},
        [] if calls is None else calls,
    )
    while len(proposals) < number or running:
        if (
            len(proposals) < number
            and len(running) < 4
            and (not running or generator.random() < 0.5)
        ):
            trial = f"t{first + len(proposals)}"
            proposal = made.propose(trial)
            assert proposal is not None
            proposals.append(proposal)
            running[trial] = proposal
            calls.append(
                (
                    "proposed",
                    trial,
                    json.loads(json.dumps({"extra": proposal.extra, "config": proposal.config})),
                )
            )
            continue
        trial = generator.choice(list(running))
        for step in (1, 2):
            last = Report(
                trial,
                step,
                {"loss": value(running[trial].config) * (3 - step), "training_iteration": step},
                0.0,
            )
            made.reported(last)
            calls.append(("reported", last))
        end = generator.choice([End.COMPLETED, End.STOPPED, End.FAILED])
        made.ended(trial, end, last)
        calls.append(("ended", trial, end, last))
        del running[trial]
    return proposals


def again(made: Adapted, calls: list) -> Adapted:
    for name, *arguments in calls:
        if name == "proposed":
            made.proposed(arguments[0], Proposal(arguments[1]["config"], arguments[1]["extra"]))
        else:
            getattr(made, name)(*arguments)
    return made


def test_what_it_suggests() -> None:
    made = adapted(OptunaSearch(seed=1))
    assert made.where is Where.PROCESS
    found = [proposal.config for proposal in run(made, 40)]
    for config in found:
        assert (
            1e-4 <= config["lr"] <= 1e-1
            and config["batch"] in range(8, 65, 8)
            and config["kept"] == 3
            and config["l"][0] in (0, 1, 2)
        )
        assert (
            config["twice"] == 2 * config["batch"]
            and isinstance(config["noise"], float)
            and config["l"][1] == 7
        )
        assert (
            config["opt"] == {"kind": "adam"}
            or config["opt"]["kind"] == "sgd"
            and 0 <= config["opt"]["momentum"] <= 1
        )
        assert round(config["m"]["drop"] * 10) in range(6) and config["act"] in ("relu", None)
    assert {config["opt"]["kind"] for config in found} == {"adam", "sgd"}
    trials = made._search._study._study.trials
    assert {trial.state.name for trial in trials} == {"COMPLETE", "FAIL"}
    assert all(
        set(trial.params)
        in (
            {"lr", "batch", "m/drop", "opt", "act", "l/0"},
            {"lr", "batch", "m/drop", "opt", "opt[1]/momentum", "act", "l/0"},
        )
        for trial in trials
    )


SAMPLERS = {
    "tpe": lambda: None,
    "multivariate": lambda: optuna.samplers.TPESampler(
        multivariate=True, group=True, n_startup_trials=4
    ),
    "random": lambda: optuna.samplers.RandomSampler(),
    "qmc": lambda: optuna.samplers.QMCSampler(seed=3, warn_independent_sampling=False),
    "nsga2": lambda: optuna.samplers.NSGAIISampler(population_size=6),
    "cmaes": lambda: optuna.samplers.CmaEsSampler(
        n_startup_trials=3, warn_independent_sampling=False
    ),
    "partial": lambda: optuna.samplers.PartialFixedSampler(
        {"lr": 0.01}, optuna.samplers.TPESampler(n_startup_trials=4)
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLERS)
def test_G10_after_a_restart_the_same_suggestions(name: str) -> None:
    if name == "cmaes":
        pytest.importorskip("cmaes")
    space = {
        "lr": tune.loguniform(1e-4, 1e-1),
        "batch": tune.uniform(0, 64),
        "opt": {"momentum": tune.uniform(0, 1)},
    }
    search = OptunaSearch(
        sampler=SAMPLERS[name](), seed=1 if name == "tpe" else None, metric="loss", mode="min"
    )
    fresh = pickle.dumps(search)
    calls: list = []
    one = adapted(pickle.loads(fresh), space)
    run(one, 24, seed=3, calls=calls)
    other = again(adapted(pickle.loads(fresh), space), calls)
    assert [one.propose(f"n{number}") for number in range(3)] == [
        other.propose(f"n{number}") for number in range(3)
    ]


def test_it_learns() -> None:
    def best(made: Adapted) -> float:
        values = []
        for number in range(60):
            proposal = made.propose(f"t{number}")
            value = abs(proposal.config["x"] - 0.3) + abs(proposal.config["y"] + 2)
            values.append(value)
            made.ended(
                f"t{number}",
                End.COMPLETED,
                Report(f"t{number}", 1, {"loss": value, "training_iteration": 1}, -value),
            )
        return sum(values[30:])

    space = {"x": tune.uniform(-5, 5), "y": tune.uniform(-5, 5)}
    assert best(adapted(OptunaSearch(seed=1), space)) < 0.6 * best(
        adapted(OptunaSearch(sampler=optuna.samplers.RandomSampler(seed=1)), space)
    )


def test_a_space_of_its_own() -> None:
    nested = {
        "a": {"x": optuna.distributions.FloatDistribution(0, 1)},
        "n": optuna.distributions.IntDistribution(1, 3),
    }
    config = adapted(OptunaSearch(nested), {"kept": 1, "a": {"z": 2}}).propose("t").config
    assert set(config) == {"kept", "a", "n"} and set(config["a"]) == {"x", "z"}

    def define(trial: Any) -> dict:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        if kind == "b":
            trial.suggest_float("only/b", 0, 1)
        return {"constant": 5}

    found = [
        proposal.config
        for proposal in run(adapted(OptunaSearch(define), {}), 12, value=lambda config: 1.0)
    ]
    assert all(
        config["constant"] == 5 and ("only" in config) == (config["kind"] == "b")
        for config in found
    )
    assert {config["kind"] for config in found} == {"a", "b"}
    own = (
        adapted(OptunaSearch({"x": tune.uniform(0, 1), "opt": SPACE["opt"]}), {"kept": 1})
        .propose("t")
        .config
    )
    assert set(own) == {"kept", "x", "opt"}


def test_points_first_and_points_that_are_known() -> None:
    points = [{"lr": 0.05, "opt": {"kind": "sgd", "momentum": 0.25}}, {"batch": 16, "act": None}]
    made = adapted(OptunaSearch(points_to_evaluate=points, seed=1))
    first, second = made.propose("a").config, made.propose("b").config
    assert (
        first["lr"] == 0.05
        and first["opt"] == {"kind": "sgd", "momentum": 0.25}
        and second["batch"] == 16
        and second["act"] is None
    )
    calls: list = []
    run(
        one := adapted(pickle.loads(pickle.dumps(OptunaSearch(points_to_evaluate=points, seed=1)))),
        5,
        calls=calls,
    )
    other = again(adapted(OptunaSearch(points_to_evaluate=points, seed=1)), calls)
    assert one.propose("n") == other.propose("n")
    whole = {"x": tune.uniform(0, 1), "y": tune.choice(["a", "b"])}
    known = adapted(
        OptunaSearch(points_to_evaluate=[{"x": 0.5, "y": "a"}], evaluated_rewards=[0.25]), whole
    )
    known.propose("a")
    trial = known._search._study._study.trials[0]
    assert trial.value == 0.25 and trial.params == {"x": 0.5, "y": "a"}
    with pytest.raises(ValueError, match="points_to_evaluate: z is no parameter"):
        adapted(OptunaSearch(points_to_evaluate=[{"z": 1}])).propose("a")


def test_several_objectives() -> None:
    search = OptunaSearch(
        metric=["loss", "time"], mode=["min", "max"], sampler=optuna.samplers.NSGAIISampler(seed=1)
    )
    made = adapted(search, {"x": tune.uniform(0, 1)}, metric=None, mode=None)
    made.propose("a")
    made.reported(
        report := Report("a", 1, {"loss": 1.0, "time": 2.0, "training_iteration": 1}, 0.0)
    )
    made.ended("a", End.COMPLETED, report)
    assert search._study._study.trials[0].values == [1.0, 2.0]


def test_what_has_no_number_has_failed() -> None:
    made = adapted(OptunaSearch(seed=1), {"x": tune.uniform(0, 1)})
    for trial, value in (("a", float("nan")), ("b", None), ("c", 1.0)):
        made.propose(trial)
        made.reported(
            report := Report(
                trial, 1, {"loss": value, "training_iteration": 1}, Mode.MIN.score(value)
            )
        )
        made.ended(trial, End.COMPLETED, report)
    made.propose("d")
    made.ended("d", End.FAILED, None)
    assert [trial.state.name for trial in made._search._study._study.trials] == [
        "FAIL",
        "FAIL",
        "COMPLETE",
        "FAIL",
    ]
    assert made._search._study._study.trials[2].intermediate_values == {1: 1.0}


def test_it_ends_when_the_sampler_has_nothing_left() -> None:
    sampler = optuna.samplers.GridSampler({"x": [1, 2, 3]}, seed=1)
    made = adapted(
        OptunaSearch({"x": optuna.distributions.IntDistribution(1, 3)}, sampler=sampler),
        {},
        samples=-1,
    )
    found = []
    while (proposal := made.propose(f"t{len(found)}")) is not None:
        made.ended(
            f"t{len(found)}",
            End.COMPLETED,
            Report(f"t{len(found)}", 1, {"loss": 1.0, "training_iteration": 1}, 0.0),
        )
        found.append(proposal.config["x"])
    assert sorted(found) == [1, 2, 3] and made.finished()


def test_a_copy_in_a_storage_of_the_users_once_each() -> None:
    storage = optuna.storages.InMemoryStorage()
    earlier = optuna.create_study(study_name="mine", storage=storage)
    earlier.add_trial(
        optuna.create_trial(
            params={"x": 0.5},
            distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
            value=0.1,
        )
    )
    space = {"x": tune.uniform(0, 1)}
    search = OptunaSearch(storage=storage, study_name="mine", seed=1)
    identity, calls = search._identity, []
    one = adapted(search, space)
    run(one, 5, calls=calls, value=lambda config: config["x"])
    assert one._search._study._study.trials[0].value == 0.1 and len(earlier.trials) == 6
    other = OptunaSearch(storage=storage, study_name="mine", seed=1)
    other._identity = identity
    assert (
        again(adapted(other, space), calls).propose("n") == one.propose("n")
        and len(earlier.trials) == 6
    )


def test_few_at_a_time_is_no_other_searcher() -> None:
    limited = adapted(ConcurrencyLimiter(OptunaSearch(seed=1), 1), {"x": tune.uniform(0, 1)})
    assert (
        limited.where is Where.PROCESS
        and limited.propose("a").config
        == adapted(OptunaSearch(seed=1), {"x": tune.uniform(0, 1)}).propose("a").config
    )
    assert limited.propose("b") is None


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: OptunaSearch(3), TypeError, "space must be a dict of distributions"),
        (lambda: OptunaSearch({"a": {"b": 3}}), TypeError, "space: a/b must be"),
        (lambda: OptunaSearch(sampler=3), TypeError, "sampler must be one of optuna.samplers"),
        (lambda: OptunaSearch(storage=3), TypeError, "storage must"),
        (
            lambda: OptunaSearch(sampler=optuna.samplers.TPESampler(), seed=1),
            ValueError,
            "give yours its own seed",
        ),
        (lambda: OptunaSearch(points_to_evaluate={"a": 1}), TypeError, "must be a list of dicts"),
        (
            lambda: OptunaSearch(points_to_evaluate=[{"a": 1}], evaluated_rewards=[1, 2]),
            ValueError,
            "there are 1 points_to_evaluate and 2",
        ),
        (
            lambda: OptunaSearch(
                lambda trial: None, points_to_evaluate=[{"a": 1}], evaluated_rewards=[1]
            ),
            TypeError,
            "needs a space of distributions",
        ),
        (
            lambda: OptunaSearch({"a": tune.choice([])}),
            ValueError,
            "OptunaSearch: space: a: choice",
        ),
        (lambda: adapted(OptunaSearch(), {"a": 1}), ValueError, "nothing that Optuna can suggest"),
        (lambda: adapted(OptunaSearch(), metric=None), ValueError, "needs what is optimized"),
        (
            lambda: adapted(
                OptunaSearch({"x": optuna.distributions.FloatDistribution(0, 1)}),
                {"y": tune.uniform(0, 1)},
            ),
            ValueError,
            "space of its own",
        ),
    ],
)
def test_what_is_refused(make: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        make()


def test_parameters_of_configurations_that_others_have_made() -> None:
    space = {
        "g": tune.grid_search([1, 2]),
        "x": tune.uniform(0, 1),
        "opt": SPACE["opt"],
        "n": tune.randn(),
    }
    found = {
        name: value
        for name, value, _ in optuna_space.parameters(
            space, {"g": 2, "x": 5.0, "opt": {"kind": "sgd", "momentum": 0.5}, "n": 1.0}
        )
    }
    assert found == {"g": 2, "opt": 1, "opt[1]/momentum": 0.5}
    assert all(
        str(each)
        for _, _, each in optuna_space.parameters(
            space, {"g": 1, "x": 0.5, "opt": {"kind": "adam"}}
        )
    )
