"""`ray.train` as scripts written for Ray have it: under `troupe run-as`, in the driver of a
`@ray_launch` and without one.

Method: scripts in processes of their own, on a cluster by address.
"""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")

SCRIPT = """
import os
import sys
import tempfile

import ray
import ray.train
import ray.train.torch
from ray.train import Checkpoint, CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from serverless_gpu.ray import ray_launch


def train_func(config):
    import torch
    import torch.distributed as dist

    context, start = ray.train.get_context(), 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            start = torch.load(os.path.join(folder, "state.pt"))["step"] + 1
    model = ray.train.torch.prepare_model(torch.nn.Linear(1, 1))
    print(f"rank {context.get_world_rank()} from {start}: {type(model).__name__}, {type(ray).__name__}", flush=True)
    for step in range(start, 4):
        if step == 2 and start == 0 and context.get_world_rank() == 1:
            if config["how"] == "kill":
                os.kill(os.getpid(), 9)
            if config["how"] == "raise":
                raise KeyError("lr")
        dist.all_reduce(torch.ones(1))
        with tempfile.TemporaryDirectory() as folder:
            torch.save({"step": step, "model": model.state_dict()}, os.path.join(folder, "state.pt"))
            ray.train.report({"step": step}, checkpoint=Checkpoint.from_directory(folder) if context.get_world_rank() == 0 else None)


def fit(how, path):
    run = os.path.join(path, "run")
    trainer = TorchTrainer.restore(run) if TorchTrainer.can_restore(run) else TorchTrainer(
        train_func, train_loop_config={"how": how}, scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(name="run", storage_path=path, failure_config=FailureConfig(max_failures=1 if how == "kill" else 0),
                             checkpoint_config=CheckpointConfig(num_to_keep=1)))
    result = trainer.fit()
    return result.metrics, os.path.basename(result.checkpoint.path), len(result.best_checkpoints)


@ray_launch(gpus=2, remote=True)
def drive(how, path):
    import ray.train as inside
    assert inside.report is ray.train.report
    return fit(how, path)


if __name__ == "__main__":
    where, how, path = sys.argv[1:]
    try:
        print(drive.distributed(how, path) if where == "launch" else fit(how, path))
    except KeyError as error:
        failed = isinstance(error.cause if where == "launch" else error, ray.train.TrainingFailedError)
        sys.stdout.write(f"KeyError {failed}\\n")  # in one go: what workers print comes between
        print(error, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def address(shared_home: Home) -> Iterator[str]:
    yield shared_home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"]


def run(home: Home, script: Path, address: str, *args: str) -> subprocess.CompletedProcess:
    script.write_text(SCRIPT)
    return home.run(
        "run-as",
        str(script),
        *args,
        str(script.parent),
        ok=False,
        timeout=3 * TIMEOUT_S,
        env={"TROUPE_ADDRESS": address, "RAY_ADDRESS": address, "TROUPE_CPU_RANKS": "1"},
    )


@pytest.mark.parametrize("where", ["launch", pytest.param("program", marks=pytest.mark.long)])
def test_a_killed_worker_costs_what_came_after_its_checkpoint(
    shared_home: Home, address: str, tmp_path: Path, where: str
) -> None:
    """A13: `import ray` is Troupe in the driver and in the workers."""
    done = run(shared_home, tmp_path / "script.py", address, where, "kill")
    assert done.returncode == 0, done.stdout + done.stderr
    expected = "({'step': 3}, 'checkpoint_000003', 1)"
    assert done.stdout.splitlines()[-1] == (
        f"[{expected}, None]" if where == "launch" else expected
    ), done.stdout
    both = done.stdout + done.stderr
    for begin in (0, 2):
        assert all(
            f"rank {rank} from {begin}: DistributedDataParallel, RayModule" in both
            for rank in (0, 1)
        ), both
    assert (
        "rank 1: " in both
        and "all 2 workers are started again from checkpoint_000001 (failure 1 of 1)" in both
    ), both


@pytest.mark.parametrize("where", ["launch", pytest.param("program", marks=pytest.mark.long)])
def test_a_workers_exception_is_the_callers(
    shared_home: Home, address: str, tmp_path: Path, where: str
) -> None:
    """Through the driver of a launch too, whose error has the training's as its cause, and its
    text."""
    done = run(shared_home, tmp_path / "script.py", address, where, "raise")
    assert done.returncode == 0 and "KeyError True" in done.stdout.splitlines(), (
        done.stdout + done.stderr
    )
    assert (
        "rank 1 of 2 on " in done.stderr
        and "failed: KeyError: 'lr'" in done.stderr
        and 'raise KeyError("lr")' in done.stderr
    ), done.stderr


def test_a_run_that_failed_is_restored_by_another_process(
    shared_home: Home, address: str, tmp_path: Path
) -> None:
    """From what its folder has: the loop and its config too, whatever the second process would have
    given."""
    failed = run(shared_home, tmp_path / "script.py", address, "program", "raise")
    assert failed.returncode == 0 and "KeyError True" in failed.stdout.splitlines(), (
        failed.stdout + failed.stderr
    )
    done = run(shared_home, tmp_path / "script.py", address, "program", "not used")
    assert (
        done.returncode == 0
        and done.stdout.splitlines()[-1] == "({'step': 3}, 'checkpoint_000003', 1)"
    ), done.stdout + done.stderr
    assert all(f"rank {rank} from 2: " in done.stdout + done.stderr for rank in (0, 1)), (
        done.stdout + done.stderr
    )


def test_more_workers_than_the_launch_has(shared_home: Home, address: str, tmp_path: Path) -> None:
    """The launch has two of the cluster's four CPUs."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    text = SCRIPT.replace("num_workers=2", "num_workers=3").replace(
        "except KeyError", "except ZeroDivisionError"
    )
    script.write_text(text)
    done = shared_home.run(
        "run-as",
        str(script),
        "launch",
        "none",
        str(tmp_path),
        ok=False,
        timeout=2 * TIMEOUT_S,
        env={"TROUPE_ADDRESS": address, "TROUPE_CPU_RANKS": "1"},
    )
    assert (
        done.returncode == 1
        and "3 workers cannot be placed: 3 x {CPU: 1} can never be placed" in done.stderr
    ), done.stderr
