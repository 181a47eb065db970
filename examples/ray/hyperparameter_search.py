"""Hyperparameter search: trials with other configurations, the bad ones stopped early, each going
on from its checkpoint where it fails.

    troupe run-as-ray examples/ray/hyperparameter_search.py

Prints:

    8 trials, 0 failed, the best has lr 0.3
    it went on from its checkpoint: report 10, begun again at step 6
    stopped early: 7
"""

import json
import os
import tempfile

from ray import tune
from ray.tune.schedulers import ASHAScheduler


def train(config):
    x, first = 0.0, 1
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder, open(os.path.join(folder, "state.json")) as file:
            x, first = json.load(file)
    for step in range(first, 11):
        x += config["lr"] * (3 - x)
        if step == 6 and first == 1 and config["lr"] == 0.3:
            raise RuntimeError("a machine is lost")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "state.json"), "w") as file:
                json.dump([x, step + 1], file)
            tune.report(
                {"loss": (3 - x) ** 2, "first": first},
                checkpoint=tune.Checkpoint.from_directory(folder),
            )


with tempfile.TemporaryDirectory() as storage:
    tuner = tune.Tuner(
        train,
        param_space={"lr": tune.grid_search([0.3, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02])},
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            max_concurrent_trials=1,
            scheduler=ASHAScheduler(max_t=10, grace_period=2),
        ),
        run_config=tune.RunConfig(
            storage_path=storage, failure_config=tune.FailureConfig(max_failures=1)
        ),
    )
    grid = tuner.fit()
    best = grid.get_best_result()
    print(f"{len(grid)} trials, {grid.num_errors} failed, the best has lr {best.config['lr']}")
    print(
        f"it went on from its checkpoint: report {best.metrics['training_iteration']}, begun again "
        f"at step {best.metrics['first']}"
    )
    early = sum(result.metrics["training_iteration"] < 10 for result in grid)
    print(f"stopped early: {early}")
