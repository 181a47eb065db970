"""`@tune.sweep`: what it refuses and with which words, what of a call is searched, constant or
shared, the function run here.

Method: no cluster: all of this is decided before one is asked for.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from troupe import tune
from troupe.tune import schedulers
from troupe.tune._sweep_table import SWEEPS


def function(lr: float, epochs: int = 20, data: Any = None) -> Any:
    for epoch in range(epochs):
        tune.report({"acc": lr * epoch})
    return {"acc": lr * epochs}


SPACE = {"lr": tune.loguniform(1e-4, 1e-1)}
TRAIN = tune.sweep(
    trials=4, metric="acc", mode="max", space=SPACE, stop_early="asha", max_t=20, grace_period=2
)(function)


@pytest.mark.parametrize(
    "made, words",
    [
        (lambda: tune.sweep(trails=3), "@sweep has no trails=: did you mean 'trials'"),
        (
            lambda: tune.sweep(num_samples=3),
            r"@sweep has no num_samples=: trials=N is the number of configurations",
        ),
        (
            lambda: TRAIN.options(num_gpus=1),
            r"options\(\) has no num_gpus=: gpus= is what each rank of a trial has",
        ),
        (lambda: tune.sweep(3), r"@sweep\(3\) does not say what it is"),
        (
            lambda: tune.sweep(space={"lt": 1})(function),
            r"has 'lt', and function\(lr.* has no such parameter",
        ),
        (lambda: tune.sweep(trials=0), "trials=0.*at least 1, or -1"),
        (lambda: tune.sweep(ranks=0), "ranks=0.*the processes of each trial"),
        (lambda: tune.sweep(gpus=1.5), "a fraction of one GPU or whole GPUs"),
        (lambda: tune.sweep(gpu_type="H100"), "gpu_type= goes with gpus="),
        (lambda: tune.sweep(keep=0), "keep=0"),
        (lambda: tune.sweep(metric="acc"), "goes with mode='max' or mode='min'"),
        (lambda: tune.sweep(metric="acc", mode="best"), "'max' or 'min'"),
        (
            lambda: tune.sweep(metric="acc", mode="max", stop_early="ahsa"),
            "there is no scheduler 'ahsa'",
        ),
        (lambda: tune.sweep(grace_period=3), "grace_period=...\\) goes with stop_early="),
        (lambda: tune.sweep(seed=1, search=object()), "search= has a searcher"),
        (lambda: tune.sweep(max_t=3, stop=print), "give one of them"),
        (lambda: tune.sweep(remote="yes"), "remote='yes'.*True or False"),
        (lambda: tune.sweep(runtime_env={"pop": []}), "pop"),
        (lambda: tune.sweep(name="a/b"), "the name of a folder"),
        (lambda: tune.sweep(storage="s3://bucket"), "mount it"),
        (lambda: TRAIN.sweep(epoch=3), r"function\(lr.*unexpected keyword argument 'epoch'"),
        (
            lambda: TRAIN.sweep(trials=3),
            r"trials= as an option of the sweep: function.options\(trials=...\)",
        ),
        (
            lambda: tune.sweep(function).sweep(epochs=1),
            "missing a required argument: 'lr': neither space= nor the call gives it",
        ),
        (
            lambda: TRAIN(tune.uniform(0, 1)),
            r"argument 1 is something to be searched: function.sweep",
        ),
        (lambda: TRAIN(lr=tune.grid_search([1])), r"lr= is something to be searched"),
    ],
)
def test_what_can_never_be_right_is_refused_with_what_to_do(
    made: Callable[[], Any], words: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        made()


def test_what_of_a_call_is_searched_constant_and_shared() -> None:
    """Constants that a person reads are in each configuration; what is large, or an object, is
    shared by all trials."""
    data = [object()]
    space, shared = TRAIN._space((), {"epochs": 3, "data": data})
    assert space == {"lr": SPACE["lr"], "epochs": 3} and shared == {"data": data}
    nested = {"a": [1, tune.choice([1, 2])], "b": ()}
    assert TRAIN._space((0.1, 2), {"data": nested}) == (
        {"lr": 0.1, "epochs": 2, "data": nested},
        {},
    )
    taken = TRAIN.options(space={"lr": 0.5})._space((), {"lr": tune.grid_search([1, 2])})
    assert taken == ({"lr": {"grid_search": [1, 2]}}, {})


def test_a_scheduler_by_name_or_by_object_and_a_number_of_reports_without_one() -> None:
    by_name = TRAIN._options.tune_config().scheduler
    assert (
        isinstance(by_name, schedulers.ASHAScheduler) and TRAIN._options.run_config().stop is None
    )
    own = schedulers.MedianStoppingRule()
    assert TRAIN.options(stop_early=own, grace_period=None)._options.tune_config().scheduler is own
    assert tune.sweep(function).options(max_t=7, stop={"acc": 1})._options.run_config().stop == {
        "acc": 1,
        "training_iteration": 7,
    }


def test_amounts_and_options_reach_the_trials_processes() -> None:
    given = tune.sweep(
        cpus=2,
        gpus=0.5,
        memory="1GiB",
        gpu_type="H100",
        runtime_env={"env_vars": {"A": "1"}},
        priority=3,
    )(function)._options.given(print, {})
    assert given.resources == {"CPU": 2, "GPU": 0.5, "memory": 2**30}
    assert given.options == {
        "runtime_env": {"env_vars": {"A": "1"}},
        "priority": 3,
        "accelerator_type": "H100",
    }


def test_called_it_runs_here_and_shows_what_it_reports(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    saved: list[str] = []

    @tune.sweep(space={"lr": tune.uniform(0, 1)}, metric="acc", mode="max")
    def train(lr: float, folder: str) -> Any:
        assert tune.get_checkpoint() is None and tune.get_context().get_trial_name() == "train"
        for step in range(2):
            Path(folder, "state").write_text(str(step))
            tune.report({"acc": lr + step}, checkpoint=tune.Checkpoint.from_directory(folder))
            kept = tune.get_checkpoint()
            saved.append(Path(kept.path, "state").read_text())
        return inner(lr=lr)

    @tune.sweep
    def inner(lr: float) -> float:
        tune.report({"inner": lr})
        return lr

    assert (
        train(0.5, folder=str(tmp_path)) == 0.5
        and train.options(quiet=True)(lr=0.25, folder=str(tmp_path)) == 0.25
    )
    assert saved == ["0", "1"] * 2
    shown = capsys.readouterr().err
    assert (
        "train · report 1 · acc=0.5" in shown
        and "train · report 3 · inner=0.5" in shown
        and "0.25" not in shown
    )
    with pytest.raises(RuntimeError, match="report"):
        tune.report({"acc": 1})


def test_it_travels_with_its_options() -> None:
    again = pickle.loads(
        pickle.dumps(tune.SweepFunction(print, TRAIN._options.changed({"space": {}, "trials": 9})))
    )
    assert repr(again) == "<sweep of print, 9 trials>" and again._options.max_t == 20


def test_the_table_of_sweeps_is_what_the_decorator_takes_and_says() -> None:
    parameters = inspect.signature(tune.sweep).parameters
    assert list(parameters)[1:] == list(SWEEPS)
    said = (tune.sweep.__doc__ or "").partition("Args:\n")[2]
    made = tune.sweep(function)._options
    for name, each in SWEEPS.items():
        assert f"    {name}: " in said
        assert parameters[name].default == each.default == getattr(made, name)
