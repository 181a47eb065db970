"""The serverless GPU guides' programs, as users run them: by `troupe run-as`, unchanged, on a
cluster by address.

Method: each program in a process of its own. `cpu` runs with TROUPE_CPU_RANKS=1; `verbatim` runs
where a node has enough GPUs, and elsewhere ends in one error that is looked at.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Iterator

import guides
import pytest
from e2e_conftest import Home

GUIDES = ("mlp", "actors")
LAUNCHER = re.compile(r"serverless_gpu|@distributed|@ray_launch|\.distributed\(")
NEEDED_GPUS = {"mlp": 8, "actors": 16}

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "sklearn")),
    reason="needs torch and scikit-learn",
)


@pytest.fixture(scope="module")
def address(shared_home: Home) -> Iterator[str]:
    """The address of a cluster of one node, with CPUs enough for each guide's ranks."""
    yield shared_home.json("start", "--head", "--port", "0", "--num-cpus", "16", "--num-gpus", "0")[
        "address"
    ]


def run(home: Home, guide: str, address: str, **env: str) -> subprocess.CompletedProcess:
    return guides.run(home, f"serverless_gpu/{guide}", address, **env)


@pytest.mark.parametrize("guide", GUIDES)
def test_the_launchers_lines_are_the_guides(guide: str) -> None:
    guides.check_pair(f"serverless_gpu/{guide}", LAUNCHER)


def test_mlp_with_ddp(shared_home: Home, address: str) -> None:
    """A1, A7, A8, A11, A16: eight ranks, results by rank, losses of one model on all."""
    done = run(shared_home, "mlp_cpu", address, TROUPE_CPU_RANKS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "ranks [0, 1, 2, 3, 4, 5, 6, 7]" in lines, done.stdout
    accuracies = re.search(r"^accuracy \[([\d.]+)\]$", done.stdout, re.M)
    assert accuracies is not None and float(accuracies[1]) >= 0.9, (
        done.stdout
    )  # equal on all ranks, as the model is
    assert sum("epoch 2 loss" in line for line in lines) == 1, done.stdout
    assert (
        done.stderr.count(
            "TROUPE_CPU_RANKS is set: gpus=8 of run_train means 8 processes without GPUs, and "
            "gpu_type='A10' is ignored"
        )
        == 1
    )


def test_actors_of_ray_launch(shared_home: Home, address: str) -> None:
    """A12, A13: rank 0 drives actors in a placement group of the launch's nodes; `import ray` is
    Troupe."""
    done = run(shared_home, "actors_cpu", address, TROUPE_CPU_RANKS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "results 16 ranks; first True" in done.stdout and "with 4 actors on 1 nodes" in done.stdout
    ), done.stdout


@pytest.mark.parametrize("guide", ["mlp", pytest.param("actors", marks=pytest.mark.long)])
def test_verbatim_without_gpus_is_one_error(shared_home: Home, address: str, guide: str) -> None:
    """The error names the decorator's line, the device's lines and what to do, where CPU ranks are
    not wanted."""
    done = run(shared_home, f"{guide}_verbatim", address, TROUPE_CPU_RANKS="0")
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1, done.stderr
    text = done.stderr[done.stderr.index("PlacementError") :]
    assert (
        f"{guide}_verbatim.py, line" in text
        and "with TROUPE_CPU_RANKS=1, gpus=N means N processes without GPUs" in text
    ), text
    device = 'dist.init_process_group("nccl")' if guide == "mlp" else 'torch.device("cuda")'
    assert re.search(rf"{guide}_verbatim\.py, line \d+: .*{re.escape(device)}", text), text


def test_verbatim_on_cpu_ranks_runs_to_the_first_line_that_needs_cuda(home: Home) -> None:
    """Without a cluster and without GPUs all eight ranks run, and NCCL is Gloo; no call of CUDA's
    is faked, and the line is named."""
    done = run(home, "mlp_verbatim", "")
    assert done.returncode == 1 and done.stderr.count("troupe.exceptions.LaunchError(") == 1, (
        done.stderr
    )
    assert (
        "one of this machine is started, which ends with this program; " in done.stderr
        and "gpus=8 of run_train means 8 processes" in done.stderr
    )
    assert (
        re.search(r"8 ranks on 1 node", done.stderr)
        and done.stderr.count("backend 'nccl' is 'gloo' on these ranks") == 1
    ), done.stderr
    assert re.search(
        r"try: mlp_verbatim\.py, line \d+: torch\.cuda\.set_device\(.*\)\n\s+needs a GPU, and these ranks have none",
        done.stderr,
    ), done.stderr


@pytest.mark.long
def test_verbatim_actors_get_cpus_and_run_to_the_first_line_that_needs_cuda(home: Home) -> None:
    done = run(home, "actors_verbatim", "")
    assert (
        done.returncode == 1
        and "so its actors, tasks and placement groups that ask for GPUs get CPUs" in done.stderr
    ), done.stderr
    assert re.search(
        r"try: actors_verbatim\.py, line \d+: self\.x, .*\.to\(self\.device\)\n\s+needs a GPU, and these ranks have none",
        done.stderr,
    ), done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("guide", GUIDES)
def test_verbatim_on_gpus(home: Home, guide: str) -> None:
    import torch

    count = torch.cuda.device_count()
    if count < NEEDED_GPUS[guide]:
        pytest.skip(f"the guide asks for {NEEDED_GPUS[guide]} GPUs, and this machine has {count}")
    address = home.json("start", "--head", "--port", "0", "--labels", "gpu_type=A10")["address"]
    done = run(home, f"{guide}_verbatim", address)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_importable_without_run_as(shared_home: Home) -> None:
    """The import line is the only one that changes without `run-as`."""
    import troupe.serverless_gpu.launcher
    import troupe.serverless_gpu.ray
    import troupe.serverless_gpu.runtime

    assert troupe.serverless_gpu.distributed is troupe.serverless_gpu.launcher.distributed
    assert troupe.serverless_gpu.ray.ray_launch is troupe.serverless_gpu.ray_launch
    assert troupe.serverless_gpu.runtime.get_global_rank() == 0
