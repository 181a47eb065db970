"""Schedulers and spaces on a real cluster: what they decide is done with real trials, checkpoints
and all.

Method: a training whose quality is its rate of progress. What schedulers decide:
tests/bindings/tune.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from e2e_conftest import Home

from troupe import tune
from troupe.tune import CheckpointConfig, ResultGrid, RunConfig, TuneConfig, Tuner

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def sweep(
    function: Any,
    folder: Path,
    space: dict[str, Any],
    keep: CheckpointConfig | None = None,
    **tuned: Any,
) -> ResultGrid:
    return Tuner(
        function,
        param_space=space,
        tune_config=TuneConfig(metric="acc", mode="max", **tuned),
        run_config=RunConfig(name="sweep", storage_path=folder, checkpoint_config=keep),
    ).fit()


def with_checkpoints(config: dict) -> dict | None:
    """A copy of a donor that has finished has nothing left to do: what it is at is what it
    returns."""
    done, total = 0, 0.0
    if checkpoint := tune.get_checkpoint():
        done, total = (
            kind(each)
            for kind, each in zip(
                (int, float), Path(checkpoint.path, "state").read_text().split(), strict=True
            )
        )
    own = Path(config["path"]) / tune.get_context().get_trial_id()
    own.mkdir(exist_ok=True)
    for step in range(done + 1, 21):
        total += config["lr"]
        (own / "state").write_text(f"{step} {total}")
        tune.report({"acc": total, "step": step}, checkpoint=tune.Checkpoint(own))
    return {"acc": total, "step": done} if done == 20 else None


def test_asha_stops_the_worse_ones_early(idle: Home, tmp_path: Path) -> None:
    def train(config: dict) -> None:
        for step in range(1, 21):
            tune.report({"acc": config["lr"] * step})

    grid = sweep(
        train,
        tmp_path,
        {"lr": tune.loguniform(1e-4, 1e-1)},
        num_samples=64,
        scheduler=tune.schedulers.ASHAScheduler(max_t=20),
    )
    best = grid.get_best_result()
    assert len(grid) == 64 and not grid.errors and best.metrics["training_iteration"] == 20
    assert best.config["lr"] == max(
        each.config["lr"] for each in grid if each.metrics["training_iteration"] == 20
    )
    assert sum(each.metrics["training_iteration"] < 20 for each in grid) > 16
    stopped = next(each for each in grid if each.metrics["training_iteration"] < 20)
    assert stopped.stopped and len(stopped.metrics_history) == stopped.metrics[
        "training_iteration"
    ] in (1, 4, 16)


def test_asha_promotes_from_checkpoints(idle: Home, tmp_path: Path) -> None:
    """Each trial goes on where it paused: no step twice, and few come to the end."""
    grid = sweep(
        with_checkpoints,
        tmp_path,
        {"lr": tune.uniform(0, 1), "path": str(tmp_path)},
        num_samples=12,
        scheduler=tune.schedulers.ASHAScheduler(type="promotion", max_t=16, reduction_factor=4),
    )
    reached = sorted(each.metrics["step"] for each in grid)
    assert not grid.errors and len(grid) == 12 and reached[0] == 1 and reached[-1] >= 4
    assert all(
        [each["step"] for each in result.metrics_history]
        == list(range(1, result.metrics["step"] + 1))
        for result in grid
    )


def test_a_pause_without_a_checkpoint_is_an_error_that_names_the_scheduler(
    idle: Home, tmp_path: Path
) -> None:
    def train(config: dict) -> None:
        for step in range(20):
            tune.report({"acc": step})

    with pytest.raises(
        tune.TuneError,
        match="AsyncHyperBandScheduler pauses trials and goes on from their checkpoints, and trial "
        ".* has reported none",
    ):
        sweep(
            train,
            tmp_path,
            {},
            num_samples=4,
            scheduler=tune.schedulers.ASHAScheduler(type="promotion", max_t=16),
        )


def test_g6_population_based_training_exploits_with_one_checkpoint_kept(
    idle: Home, tmp_path: Path
) -> None:
    """A copier goes on from its donor's step, with another rate, though each trial keeps one
    checkpoint alone: whichever trial is the first to get anywhere, as its first report after that
    shows."""
    rates = [0.1, 0.2, 0.9, 1.0]
    scheduler = tune.schedulers.PopulationBasedTraining(
        time_attr="training_iteration",
        perturbation_interval=4,
        quantile_fraction=0.5,
        hyperparam_mutations={"lr": tune.uniform(0.1, 1.0)},
    )
    grid = sweep(
        with_checkpoints,
        tmp_path,
        {"lr": tune.grid_search(rates), "path": str(tmp_path)},
        scheduler=scheduler,
        keep=CheckpointConfig(num_to_keep=1),
    )
    assert not grid.errors and [each.metrics["step"] for each in grid] == [20] * 4
    reports = [[(each["step"], each["acc"]) for each in result.metrics_history] for result in grid]
    exploited = [
        number for number, result in enumerate(grid) if result.config["lr"] != rates[number]
    ]
    assert exploited
    for number in exploited:
        before, after = first_copied(reports[number], rates[number])
        others = [each for other, own in enumerate(reports) if other != number for each in own]
        from_donor = [
            total
            for step, total in others
            if step == after[0] - 1 and 0.1 - 1e-9 <= after[1] - total <= 1.0 + 1e-9
        ]
        finished = after[0] == 20 and after in others
        assert (from_donor and max(from_donor) > before[1]) or finished, (
            reports[number],
            rates[number],
        )
    assert all(len(list(Path(each.path).iterdir())) == 1 for each in grid)


def first_copied(
    reports: list[tuple[int, float]], rate: float
) -> tuple[tuple[int, float], tuple[int, float]]:
    """The last report of a trial that is its own training's, and the first that is not."""
    total = 0.0
    for place, (step, reported) in enumerate(reports):
        total += rate
        if step != place + 1 or abs(reported - total) > 1e-9:
            return reports[place - 1], reports[place]
    raise AssertionError(f"{reports} are all by the rate {rate}")
