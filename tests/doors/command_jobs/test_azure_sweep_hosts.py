"""Sweeps of command jobs whose trials run on two nodes, as of two hosts: truncation selection, and
what limits end.

Method: two workers by --force-tcp; each trial has a process on both. The better trial goes on until
the test has seen the worse one end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure_jobs import LIMIT_S, folder_of
from e2e_conftest import eventually

from troupe import exceptions
from troupe.azure import MLClient, command, sweep

MLFLOW = "def log_metric(key, value, step=None): pass\n"
TRAIN = """
import os, sys, mlflow
from pathlib import Path
folder, level, rank = Path(sys.argv[1]), float(sys.argv[2]), os.environ["RANK"]
(folder / f"{level}-{rank}").write_text(os.environ["WORLD_SIZE"])
if rank == "0":
    while not (folder / f"{level}-1").exists() or level < 0.5 and not (folder / "ahead").exists():  # a trial that is stopped has begun on both
        os.sched_yield()
    for step in range(20):
        mlflow.log_metric("accuracy", level, step=step)
    (folder / "ahead").touch()
while not (folder / "go").exists():
    os.sched_yield()
"""


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of sweeps are in a home of the test's own."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def a_sweep(tmp_path: Path, levels: list[float], **more: Any) -> Any:
    code = folder_of(tmp_path / "src", **{"train.py": TRAIN, "mlflow.py": MLFLOW})
    job = command(
        code=str(code),
        command=f"python train.py {tmp_path} ${{{{inputs.level}}}}",
        inputs={"level": 0.0},
        environment="any",
        instance_count=2,
        distribution={"type": "pytorch", "process_count_per_instance": 1},
    )
    return job(level=sweep.Choice(levels)).sweep(
        **{"primary_metric": "accuracy", "goal": "maximize", "sampling_algorithm": "grid", **more}
    )


def test_c8_truncation_ends_the_worse_of_two_trials_on_two_nodes(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    jobs = MLClient().jobs
    made = a_sweep(
        tmp_path,
        [0.9, 0.1],
        early_termination_policy=sweep.TruncationSelectionPolicy(
            truncation_percentage=50, evaluation_interval=2, delay_evaluation=4
        ),
    )
    made.set_limits(max_concurrent_trials=2, max_total_trials=2)
    jobs.create_or_update(made)
    eventually(
        lambda: jobs.get(made.name).trials.get("stopped") == 1,
        what="the end of the worse trial",
        timeout=LIMIT_S,
    )
    (tmp_path / "go").touch()
    jobs.stream(made.name)
    ended = jobs.get(made.name)
    assert (ended.status, ended.best_value, ended.trials) == (
        "Completed",
        0.9,
        {"completed": 1, "stopped": 1},
    )
    assert sorted((path.name, path.read_text()) for path in tmp_path.glob("0.*")) == [
        (f"{level}-{rank}", "2") for level in (0.1, 0.9) for rank in (0, 1)
    ]


def test_c8_trial_timeout_ends_each_trial_and_says_so(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    jobs = MLClient().jobs
    made = a_sweep(tmp_path, [0.9, 0.8, 0.7])
    made.set_limits(trial_timeout=3, max_total_trials=2)
    jobs.create_or_update(made)
    with pytest.raises(
        exceptions.LaunchError, match="(?s)all of its 2 trials have failed.*timed out after 3.0 s"
    ):
        jobs.stream(made.name)
    assert jobs.get(made.name).trials == {"failed": 2}


def test_c8_timeout_ends_the_sweep_with_what_it_has(hosts: dict[str, str], tmp_path: Path) -> None:
    jobs = MLClient().jobs
    made = a_sweep(tmp_path, [0.9, 0.8, 0.7])
    made.set_limits(timeout=5, max_concurrent_trials=1, max_total_trials=3)
    jobs.create_or_update(made)
    jobs.stream(made.name)
    ended = jobs.get(made.name)
    assert (
        ended.status == "Completed"
        and ended.trials.get("stopped", 0) >= 1
        and not ended.trials.get("completed")
    ), ended.trials
    eventually(
        lambda: all(job.status != "Running" for job in jobs.list()),
        what="the end of its trials' jobs",
        timeout=LIMIT_S,
    )
