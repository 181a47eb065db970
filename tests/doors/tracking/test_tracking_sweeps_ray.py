"""Ray's callback and setup_mlflow, under Ray's paths.

Method: a script under `troupe run-as`, and a real server of MLflow's, which is asked over its HTTP
interface.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home
from servers import Server, needs_mlflow

pytestmark = needs_mlflow
LIMIT_S = 8 * TIMEOUT_S
SCRIPT = """
import sys
from ray import tune
from ray.air.integrations.mlflow import MLflowLoggerCallback, setup_mlflow
from ray.tune.logger.mlflow import MLflowLoggerCallback as same

def train(config):
    mlflow = setup_mlflow(config, tracking_uri=sys.argv[1], experiment_name="inside", create_experiment_if_not_exists=True, tags={"team": "b"})
    for step in range(3):
        mlflow.log_metric("inner", config["lr"] * step, step=step)
        tune.report({"loss": step})

assert same is MLflowLoggerCallback
tune.Tuner(train, param_space={"lr": tune.grid_search([1, 2])},
           run_config=tune.RunConfig(name="of ray", storage_path=sys.argv[2], callbacks=[MLflowLoggerCallback(
               tracking_uri=sys.argv[1], experiment_name="outside", save_artifact=True, log_params_on_trial_end=True)])).fit()
try:
    from ray.air.integrations.wandb import WandbLoggerCallback
except ImportError as error:
    print(error)
"""


@pytest.mark.long
def test_a_script_of_rays_with_its_callback_and_runs_of_the_trials_own(
    home: Home, server: Server, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = home.run("run-as", str(script), server.uri, str(tmp_path), timeout=LIMIT_S)
    assert "use that library's own calls in the trial's function" in done.stdout
    own, trials = server.runs_of_sweep("of ray")
    assert own["status"] == "FINISHED" and sorted(
        each["params"]["lr"] for each in trials.values()
    ) == ["1", "2"]
    inside = [each for each in server.runs() if each["tags"].get("team") == "b"]
    assert sorted(
        (each["params"]["lr"], each["metrics"]["inner"], each["status"], each["name"])
        for each in inside
    ) == [("1", 2.0, "FINISHED", "inside"), ("2", 4.0, "FINISHED", "inside")]
