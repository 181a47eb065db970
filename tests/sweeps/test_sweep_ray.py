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
    tune.with_resources(objective, {"cpu": 1}), param_space={"a": tune.grid_search([0.1, 10.0]), "b": tune.choice([1, 2])},
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
LOGGERS = """
import csv, os, sys
from ray import air, tune
from ray.tune.logger import CSVLoggerCallback, JsonLoggerCallback, LoggerCallback
from ray.tune.logger.json import JsonLoggerCallback as same

class Own(LoggerCallback):
    def log_trial_end(self, trial, failed=False):
        trial.init_local_path()
        open(os.path.join(trial.local_path, "own"), "w").write(str(failed))

def objective(config):
    for step in range(5):
        tune.report({"score": step, "by": {"a": step}})

assert same is JsonLoggerCallback
tune.Tuner(objective, run_config=air.RunConfig(name="exp", storage_path=sys.argv[1], stop={"score": 2}, callbacks=[
    CSVLoggerCallback(), JsonLoggerCallback(), Own()])).fit()
(folder,) = (each.path for each in os.scandir(os.path.join(sys.argv[1], "exp")) if each.is_dir())
print(sorted(os.listdir(folder)), [row["by/a"] for row in csv.DictReader(open(os.path.join(folder, "progress.csv")))])
for name in ("ray.tune.logger.aim", "ray.air.integrations.wandb"):
    try:
        __import__(name)
    except ImportError as error:
        print(str(error).rpartition("; ")[2])
"""


@pytest.mark.parametrize(
    "script, says",
    [
        (
            TUNER,
            "4 0 10.0 8 True\n4 0\n",
        ),  # the first trial of the larger a is the best of each rung by then, whatever its b
        (
            OLDER,
            "{'by': 3} 12 [4, 8, 12]\nuse the rows that a sweep shows by itself, or a "
            "ray.tune.Callback\n",
        ),
        (
            LOGGERS,
            "['own', 'params.json', 'params.pkl', 'progress.csv', 'result.json'] ['0', '1', '2']\n"
            + 2
            * (
                "use that library's own calls in the trial's function, or a "
                "ray.tune.logger.LoggerCallback of one's own\n"
            ),
        ),
    ],
    ids=["tuner", "run", "loggers"],
)
def test_a_script_for_ray_tune_runs_unchanged(
    home: Home, tmp_path: Path, script: str, says: str
) -> None:
    (tmp_path / "script.py").write_text(script)
    done = home.run("run-as", str(tmp_path / "script.py"), str(tmp_path), timeout=4 * TIMEOUT_S)
    assert done.stdout == says, done.stderr


TWICE = """
import os, sys, tempfile
import ray
from ray import tune

def objective(config):
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "file"), "w").write("x")
        tune.report({"x": config["a"]}, checkpoint=tune.Checkpoint.from_directory(folder))

ray.init(num_cpus=2)
for base in map(int, sys.argv[2:]):
    tuner = tune.Tuner(objective, param_space={"a": tune.grid_search([base, base + 1])}, run_config=tune.RunConfig(name="exp", storage_path=sys.argv[1]))
    tuner.fit()
    print(sorted(each.metrics["x"] for each in tuner.get_results()), all(os.path.isdir(each.checkpoint.path) for each in tuner.get_results()))
print(sorted(each.metrics["x"] for each in tune.Tuner.restore(os.path.join(sys.argv[1], "exp"), objective).fit()))
"""


def test_a_program_that_is_run_again_has_its_trials_beside_those_of_the_first_run(
    home: Home, tmp_path: Path
) -> None:
    """In another process, and in the same one.

    Nothing of the earlier runs is lost; Troupe's own programs are told that the name is taken.
    """
    from troupe import tune
    from troupe.tune._journal import view

    script = tmp_path / "script.py"
    script.write_text(TWICE)
    for given, lines in (
        (["1"], "[1, 2] True\n[1, 2]\n"),
        (["3", "5"], "[3, 4] True\n[5, 6] True\n[5, 6]\n"),
    ):
        assert (
            home.run("run-as", str(script), str(tmp_path), *given, timeout=4 * TIMEOUT_S).stdout
            == lines
        )
    folder = tmp_path / "exp"
    assert len([each for each in folder.iterdir() if each.name.startswith("objective_")]) == 6
    earlier = [view.of(each) for each in folder.iterdir() if each.name.startswith(".earlier-")]
    assert sorted(
        sorted(each.value_of(trial) or trial.last.metrics["x"] for trial in each.trials.values())
        for each in earlier
    ) == [[1, 2], [3, 4]]
    with pytest.raises(FileExistsError, match="there is a sweep in .*/exp already"):
        tune.Tuner(
            lambda config: {"x": 1}, run_config=tune.RunConfig(name="exp", storage_path=tmp_path)
        ).fit()
