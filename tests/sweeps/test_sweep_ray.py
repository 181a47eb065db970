"""Scripts that were written for Ray Tune run unchanged.

Method: scripts under `troupe run-as`, in the forms that Ray's own pages have.
"""
from __future__ import annotations

from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home

TUNER = """
import os, sys, tempfile
import ray
from ray import train, tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.stopper import MaximumIterationStopper

def objective(config):
    start = 0
    if train.get_checkpoint():
        with train.get_checkpoint().as_directory() as folder:
            start = int(open(os.path.join(folder, "step")).read()) + 1
    for step in range(start, 30):
        with tempfile.TemporaryDirectory() as folder:
            open(os.path.join(folder, "step"), "w").write(str(step))
            train.report({"score": config["a"] * step + config["b"]}, checkpoint=train.Checkpoint.from_directory(folder))

ray.init(num_cpus=2)
tuner = tune.Tuner(
    tune.with_resources(objective, {"cpu": 1}), param_space={"a": tune.grid_search([0.1, 1.0]), "b": tune.choice([1, 2])},
    tune_config=tune.TuneConfig(metric="score", mode="max", num_samples=2, scheduler=ASHAScheduler(grace_period=2, max_t=8)),
    run_config=train.RunConfig(name="exp", storage_path=sys.argv[1], checkpoint_config=train.CheckpointConfig(num_to_keep=1)))
results = tuner.fit()
best = results.get_best_result()
print(len(results), results.num_errors, best.config["a"], best.metrics["training_iteration"], os.path.isdir(best.checkpoint.path))
restored = tune.Tuner.restore(os.path.join(sys.argv[1], "exp"), trainable=objective)
print(len(restored.fit()), restored.get_results().num_errors)
"""
OLDER = """
import sys
from ray import tune

class Count(tune.Trainable):
    def setup(self, config):
        self.x = 0
    def step(self):
        self.x += self.config["by"]
        return {"x": self.x}

analysis = tune.run(Count, config={"by": tune.grid_search([1, 2, 3])}, stop={"training_iteration": 4}, metric="x", mode="max", storage_path=sys.argv[1],
                    name="older", verbose=0)
print(analysis.best_config, analysis.best_result["x"], sorted(each["x"] for each in analysis.results.values()))
try:
    tune.CLIReporter()
except AttributeError as error:
    print(str(error).partition("; ")[2])
"""


@pytest.mark.parametrize("script, says", [
    (TUNER, "4 0 1.0 8 True\n4 0\n"),
    (OLDER, "{'by': 3} 12 [4, 8, 12]\nuse the rows that a sweep shows by itself, or a ray.tune.Callback\n")], ids=["tuner", "run"])
def test_a_script_for_ray_tune_runs_unchanged(home: Home, tmp_path: Path, script: str, says: str) -> None:
    (tmp_path / "script.py").write_text(script)
    done = home.run("run-as", str(tmp_path / "script.py"), str(tmp_path), timeout=4 * TIMEOUT_S)
    assert done.stdout == says, done.stderr
