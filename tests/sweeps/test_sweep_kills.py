"""Sweeps whose engine and whose trials are killed again and again, under schedulers that pause,
promote and exploit (G3, G5, G6).

Method: the engine is a program of its own, killed each time its trials have taken so many more
steps; trials kill themselves at some steps, once. In the end all trials are there, and what each
has reported follows from the checkpoints that it went on from: its score is the sum over its steps.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually

from troupe import tune

PROGRAM = """
import os, sys
from pathlib import Path
import troupe
from troupe import tune

folder, which = Path(sys.argv[1]), sys.argv[2]

def train(config):
    step, total = 0, 0
    if checkpoint := tune.get_checkpoint():
        step, total = map(int, Path(checkpoint.path, "state").read_text().split())
    own = folder / f"own-{tune.get_context().get_trial_id()}"
    own.mkdir(exist_ok=True)
    while step < 12:
        step, total = step + 1, total + config["gain"]
        with open(folder / "steps", "a") as log:
            log.write(".")
        mark = folder / f"killed-{tune.get_context().get_trial_id()}"
        if step == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), 9)
        (own / "state").write_text(f"{step} {total}")
        tune.report({"total": total, "step": step}, checkpoint=tune.Checkpoint(own))

troupe.init(num_cpus=2)
scheduler = (tune.schedulers.ASHAScheduler(type="promotion", max_t=9, reduction_factor=3) if which == "promotion" else
             tune.schedulers.PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=4, quantile_fraction=0.5,
                                                     hyperparam_mutations={"gain": [1, 2, 3, 4, 5, 6]}))
if tune.Tuner.can_restore(folder / "sweep"):
    tuner = tune.Tuner.restore(folder / "sweep", train)
else:
    tuner = tune.Tuner(train, param_space={"gain": tune.grid_search([1, 2, 3, 4, 5, 6])}, tune_config=tune.TuneConfig(
        metric="total", mode="max", scheduler=scheduler), run_config=tune.RunConfig(
        name="sweep", storage_path=folder, failure_config=tune.FailureConfig(max_failures=1), checkpoint_config=tune.CheckpointConfig(num_to_keep=1)))
grid = tuner.fit()
print(len(grid), grid.num_errors, max(each.metrics["step"] for each in grid), flush=True)
"""


@pytest.mark.parametrize("which, most", [("promotion", 9), ("exploits", 12)])
def test_g3_engines_and_trials_are_killed_again_and_again(
    home: Home, tmp_path: Path, which: str, most: int
) -> None:
    script, steps = tmp_path / "script.py", tmp_path / "steps"
    script.write_text(PROGRAM)

    def taken() -> int:
        return len(steps.read_text()) if steps.exists() else 0

    def program() -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, str(script), str(tmp_path), which],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    for more in (4, 5, 7):
        running, goal = program(), taken() + more
        eventually(
            lambda: taken() >= goal or running.poll() is not None,
            timeout=3 * TIMEOUT_S,
            what=f"{more} more steps",
        )
        running.kill()
        running.communicate()
    last = program()
    out, error = last.communicate(timeout=6 * TIMEOUT_S)
    assert out == f"6 0 {most}\n", error
    grid = tune.Tuner.restore(tmp_path / "sweep", print).fit()
    for result in grid:
        history = [
            (each["step"], each["total"], each["training_iteration"])
            for each in result.metrics_history
        ]
        assert [step for step, _, _ in history] == [iteration for _, _, iteration in history]
        assert (
            result.checkpoint is not None
            and Path(result.checkpoint.path, "state").read_text()
            == f"{history[-1][0]} {history[-1][1]}"
        )
        if which == "promotion":
            assert [(step, total) for step, total, _ in history] == [
                (step, step * result.config["gain"]) for step in range(1, len(history) + 1)
            ]
