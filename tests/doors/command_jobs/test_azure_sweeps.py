"""Sweeps of command jobs: each trial a job, its metric by mlflow.log_metric of the unchanged
script, policies that end trials, the best child.

Method: real sweeps on a cluster of this process, their trials' scripts beside a module `mlflow` of
the test's own; values say which trials live.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from azure_jobs import LIMIT_S, folder_of, needs_mpirun
from e2e_conftest import Home, eventually

from troupe import exceptions
from troupe.azure import MLClient, command, load_job as azure_file, sweep
from troupe.tune._journal import view

MLFLOW = (
    "def log_metric(key, value, step=None): print('logged', key, value)\ndef "
    "log_metrics(metrics): print(metrics)\n"
)
TRAIN = """
import os, sys, mlflow
level, steps = float(sys.argv[1]), int(sys.argv[2])
assert float(os.environ["AZUREML_SWEEP_level"]) == level
open("outputs/level.txt", "w").write(sys.argv[1])
for step in range(steps):
    mlflow.log_metric("loss", 1 - level, step=step)
    mlflow.log_metric("accuracy", level, step=step)
print("done", level)
"""


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of sweeps are in a home of the test's own."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "troupe_results"


def code_of(tmp_path: Path, train: str = TRAIN) -> str:
    return str(folder_of(tmp_path / "src", **{"train.py": train, "mlflow.py": MLFLOW}))


def a_sweep(code: str, levels: list[float], *, steps: int = 2, **more: Any) -> Any:
    job = command(
        code=code,
        command="python train.py ${{inputs.level}} ${{inputs.steps}}",
        inputs={"level": 0.0, "steps": steps},
        environment="any",
    )
    return job(level=sweep.Choice(levels)).sweep(
        **{"primary_metric": "accuracy", "goal": "maximize", "sampling_algorithm": "grid", **more}
    )


def test_c8_the_guides_form_runs_and_tells_its_best_child(idle: Home, tmp_path: Path) -> None:
    client = MLClient()
    made = a_sweep(code_of(tmp_path), [0.25, 0.75, 0.5])
    made.set_limits(max_concurrent_trials=2, max_total_trials=10)
    submitted = client.create_or_update(made)
    client.jobs.stream(submitted.name)
    ended = client.jobs.get(submitted.name)
    assert (ended.type, ended.status, ended.trials) == ("sweep", "Completed", {"completed": 3})
    assert (ended.best_value, ended.best_parameters) == (0.75, {"level": 0.75})
    assert client.jobs.get(ended.best_child_run_id).status == "Completed"
    client.jobs.download(submitted.name, download_path=tmp_path / "got")
    assert (tmp_path / "got/artifacts/outputs/level.txt").read_text() == "0.75"
    assert "done 0.75" in (tmp_path / "got/artifacts/user_logs/std_log.txt").read_text()
    assert submitted.name in {job.name for job in client.jobs.list()}
    children = [job.name for job in client.jobs.list(parent_job_name=submitted.name)]
    assert sorted(children) == [f"{submitted.name}_0000{number}" for number in range(3)]
    assert [
        job.name for job in client.jobs.list(parent_job_name=submitted.name, max_results=2)
    ] == children[:2]


def test_c8_bandit_ends_trials_in_log_metric_and_the_others_go_on(
    idle: Home, tmp_path: Path
) -> None:
    """Trials run one at a time, so that the first is the best there is when the second reports."""
    jobs = MLClient().jobs
    made = jobs.create_or_update(
        a_sweep(
            code_of(tmp_path),
            [0.9, 0.1],
            steps=4,
            max_concurrent_trials=1,
            early_termination_policy=sweep.BanditPolicy(slack_factor=0.1, evaluation_interval=2),
        )
    )
    jobs.stream(made.name)
    ended = jobs.get(made.name)
    assert (ended.status, ended.best_value, ended.trials) == (
        "Completed",
        0.9,
        {"completed": 1, "stopped": 1},
    )
    worse = jobs.get(f"{made.name}_00001")
    lines = list(jobs.handle(jobs.info(worse.name)).logs())
    assert (
        worse.status == "Canceled"
        and len([line for line in lines if "logged accuracy" in line]) == 2
    ), lines


def test_c8_tune_report_works_too_and_its_finally_blocks_run(idle: Home, tmp_path: Path) -> None:
    jobs = MLClient().jobs
    code = code_of(
        tmp_path,
        """
import sys
from troupe import tune
try:
    for step in range(4):
        tune.report({"accuracy": float(sys.argv[1])})
    print("done", sys.argv[1])
finally:
    print("cleaned up after", step, flush=True)
""",
    )
    made = jobs.create_or_update(
        a_sweep(
            code,
            [0.9, 0.1],
            max_concurrent_trials=1,
            early_termination_policy=sweep.MedianStoppingPolicy(delay_evaluation=2),
        )
    )
    jobs.stream(made.name)
    assert jobs.get(made.name).trials == {"completed": 1, "stopped": 1}
    assert "[0] cleaned up after 1" in list(jobs.handle(jobs.info(f"{made.name}_00001")).logs())


def test_c8_what_trials_fail_of_is_told(idle: Home, tmp_path: Path) -> None:
    jobs = MLClient().jobs
    made = jobs.create_or_update(
        a_sweep(
            code_of(tmp_path, "raise SystemExit('no such data')"), [0.1, 0.2], max_total_trials=1
        )
    )
    with pytest.raises(
        exceptions.LaunchError,
        match=r"(?s)all of its 1 trials have failed.*exited with code 1.*no such data",
    ):
        jobs.stream(made.name)
    assert jobs.get(made.name).status == "Failed"
    with pytest.raises(ValueError, match="no trial has reported accuracy"):
        jobs.download(made.name, download_path=tmp_path)


def test_c8_a_sweep_whose_metric_never_came_fails_with_the_metrics_that_did(
    idle: Home, tmp_path: Path
) -> None:
    jobs = MLClient().jobs
    job = command(command="echo ${{inputs.level}}", inputs={"level": 0.0}, environment="any")
    made = jobs.create_or_update(
        job(level=sweep.Choice([1, 2])).sweep(
            primary_metric="accuracy", goal="maximize", sampling_algorithm="grid"
        )
    )
    assert jobs.get(made.name).status in ("Preparing", "Running", "Failed")
    with pytest.raises(
        exceptions.LaunchError,
        match=r"(?s)all of its 2 trials have failed.*ended without accuracy, .*: it logged no metric at all",
    ):
        jobs.stream(made.name)
    assert (jobs.get(made.name).status, jobs.get(made.name).best_child_run_id) == ("Failed", None)
    code = code_of(
        tmp_path,
        "import mlflow\nmlflow.log_metric('acc', 1)\nmlflow.log_metrics({'loss': 2, 'acc': 3})\n",
    )
    made = jobs.create_or_update(a_sweep(code, [0.5]))
    with pytest.raises(
        exceptions.LaunchError, match=r"(?s)ended without accuracy, .*: it logged acc, loss\n"
    ):
        jobs.stream(made.name)


EVERY_WAY = """
import multiprocessing, sys, threading
import mlflow
from mlflow.entities import Metric

def child(value):
    mlflow.log_metric("accuracy", value)

if __name__ == "__main__":
    with mlflow.start_run() as run:
        client = mlflow.MlflowClient()
        mlflow.log_metric("accuracy", 1)
        mlflow.log_metrics({"accuracy": 2, "loss": 0})
        client.log_metric(run.info.run_id, "accuracy", 3)
        client.log_batch(run.info.run_id, metrics=[Metric("accuracy", 5, 0, 1), Metric("loss", 1, 0, 1), Metric("accuracy", 4, 0, 0)])
        thread = threading.Thread(target=mlflow.log_metric, args=("accuracy", 6), kwargs={"run_id": run.info.run_id})
        thread.start()
        thread.join()
        process = multiprocessing.get_context("fork").Process(target=child, args=(7,))
        process.start()
        process.join()
    mlflow.sklearn.autolog()
    from sklearn.dummy import DummyClassifier
    DummyClassifier().fit([[0], [1]], [0, 1])
    mlflow.log_metric("accuracy", 8)
"""


def test_c8_every_way_of_mlflow_to_log_reports(idle: Home, tmp_path: Path) -> None:
    """Fluent calls, the client's, a batch in the order of its steps, a thread, a child, autolog:
    each is one report, with what came since the last."""
    pytest.importorskip("mlflow")
    pytest.importorskip("sklearn")
    jobs, code = MLClient().jobs, str(folder_of(tmp_path / "src", **{"train.py": EVERY_WAY}))
    job = command(
        code=code,
        command="python train.py ${{inputs.level}}",
        inputs={"level": 0.0},
        environment="any",
        environment_variables={"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db"},
    )
    made = jobs.create_or_update(
        job(level=sweep.Choice([1])).sweep(
            primary_metric="accuracy", goal="maximize", sampling_algorithm="grid"
        )
    )
    jobs.stream(made.name)
    ended = jobs.get(made.name)
    assert (ended.status, ended.best_child_run_id) == ("Completed", f"{made.name}_00000")
    assert (
        ended.properties == {"best_child_run_id": f"{made.name}_00000"}
        and ended.studio_url == Path(ended.path).as_uri()
    )
    (trial,) = view.of(Path(ended.path)).current()
    last = trial.last.metrics
    assert (last["accuracy"], last["training_iteration"], last["training_score"]) == (8, 8, 0.5)


def test_c8_cancel_ends_the_trials_jobs(idle: Home, tmp_path: Path) -> None:
    jobs = MLClient().jobs
    (tmp_path / "began").mkdir()
    code = code_of(
        tmp_path,
        f"import os, signal, sys\nopen({str(tmp_path)!r} + '/began/' + sys.argv[1], "
        "'w').close()\nsignal.pause()\n",
    )
    made = jobs.create_or_update(a_sweep(code, [0.1, 0.2], max_concurrent_trials=2))
    eventually(lambda: len(list((tmp_path / "began").iterdir())) == 2)
    assert jobs.get(made.name).status == "Running"
    jobs.cancel(made.name)
    assert jobs.get(made.name).status == "Canceled"
    eventually(
        lambda: all(
            jobs.get(f"{made.name}_0000{number}").status in ("Canceled", "Failed")
            for number in (0, 1)
        )
    )
    with pytest.raises(exceptions.LaunchCancelledError):
        jobs.stream(made.name)


@pytest.mark.long
@needs_mpirun
def test_c8_processes_that_mpirun_starts_report_by_the_first(
    idle: Home, tmp_path: Path, storage: Path
) -> None:
    jobs = MLClient().jobs
    train = (
        "import os, sys, mlflow\nmlflow.log_metric('accuracy', float(sys.argv[1]) + 10 * "
        "int(os.environ['OMPI_COMM_WORLD_RANK']))\n"
    )
    made = a_sweep(code_of(tmp_path, train), [0.5])
    made.trial.distribution = {"type": "mpi", "process_count_per_instance": 2}
    jobs.create_or_update(made)
    jobs.stream(made.name)
    (trial,) = view.of(storage / made.name).trials.values()
    assert trial.last is not None and (
        trial.last.metrics["accuracy"],
        trial.last.metrics["training_iteration"],
    ) == (0.5, 1)


@pytest.mark.long
def test_c8_a_file_of_the_service_by_its_command_with_two_processes_a_trial(
    idle: Home, tmp_path: Path, storage: Path
) -> None:
    """Rank 0's metric is the trial's."""
    train = (
        "import os, sys, mlflow\nmlflow.log_metrics({'accuracy': float(sys.argv[1]) + 10 * "
        "int(os.environ['RANK']), 'rank': int(os.environ['RANK'])})\n"
    )
    code_of(tmp_path, train)
    (tmp_path / "sweep.yml").write_text("""
$schema: https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json
type: sweep
name: by-file
trial:
  code: src
  command: python train.py ${{search_space.level}}
  environment: azureml:pytorch@latest
  distribution: {type: pytorch, process_count_per_instance: 2}
search_space:
  level: {type: uniform, min_value: 1, max_value: 2}
sampling_algorithm: {type: random, seed: 7}
objective: {goal: maximize, primary_metric: accuracy}
limits: {max_total_trials: 2, max_concurrent_trials: 1}
""")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "troupe",
            "azure",
            "job",
            "create",
            "-f",
            str(tmp_path / "sweep.yml"),
            "--stream",
            "--address",
            idle.json("status")["address"],
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert "2 completed; best accuracy=1." in done.stderr
    _, head, rows = done.stderr.partition("TRIAL   STATE       REPORTS   ACCURACY")
    assert head and [line.split()[:2] for line in rows.splitlines() if line[:5].isdigit()] == [
        ["00000", "running"],
        ["00000", "completed"],
        ["00001", "running"],
        ["00001", "completed"],
    ]
    assert "best so far: accuracy=1." in rows and "level=1." in rows
    ended = MLClient().jobs.get("by-file")
    assert (
        ended.status == "Completed"
        and 1 <= ended.best_value <= 2
        and ended.path == str(storage / "by-file")
    )
    with pytest.raises(ValueError, match="there is a sweep with the name 'by-file' already"):
        MLClient().jobs.create_or_update(azure_file(tmp_path / "sweep.yml"))
