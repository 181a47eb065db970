"""A ResNet-18 from `@ray_launch`, by training actors and by `ray.train` (A16), as users run it: by
`troupe run-as`, on a cluster by address.

Method: as test_guides_serverless_gpu.py: `cpu` with TROUPE_CPU_RANKS=1, a few steps; `verbatim`
where a node has enough GPUs, and elsewhere it ends in one error that is looked at.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_conftest import Home

HERE = Path(__file__).parent / "serverless_gpu"
GUIDES = ("resnet_actors", "resnet_train")
LAUNCHER = re.compile(
    r"serverless_gpu|@ray_launch|\.distributed\(|ray\.train|ray\.get|collective\.allreduce|TorchTrainer"
)
TIMEOUT_S = 300.0
NEEDED_GPUS = 4
PARAMETERS = 11_181_642
"""Of a ResNet-18 with ten classes."""

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "sklearn")),
    reason="needs torch and scikit-learn",
)


@pytest.fixture(scope="module")
def address(shared_home: Home) -> Iterator[str]:
    yield shared_home.json("start", "--head", "--port", "0", "--num-cpus", "4", "--num-gpus", "0")[
        "address"
    ]


def run(home: Home, guide: str, address: str, **env: str) -> subprocess.CompletedProcess:
    return home.run(
        "run-as",
        str(HERE / f"{guide}.py"),
        ok=False,
        timeout=TIMEOUT_S,
        env={"TROUPE_ADDRESS": address, **env},
    )


def program(guide: str) -> list[str]:
    """Return the program's lines, without its docstring."""
    return (HERE / f"{guide}.py").read_text().partition('"""\n')[2].splitlines()


@pytest.mark.parametrize("guide", GUIDES)
def test_the_launchers_lines_are_the_guides(guide: str) -> None:
    differences = difflib.unified_diff(
        program(f"{guide}_verbatim"), program(f"{guide}_cpu"), lineterm="", n=0
    )
    changed = [line for line in differences if re.match(r"[-+](?![-+])", line)]
    assert 0 < len(changed) <= 12 and not any(LAUNCHER.search(line) for line in changed), changed


def test_it_is_a_resnet_18() -> None:
    import sys

    sys.path.insert(0, str(HERE))
    try:
        from resnet18 import resnet18
    finally:
        sys.path.remove(str(HERE))
    assert sum(each.numel() for each in resnet18(num_classes=10).parameters()) == PARAMETERS


@pytest.mark.long
def test_resnet_by_actors(shared_home: Home, address: str) -> None:
    """Four actors in a placement group add up their gradients; all have one model after it."""
    done = run(shared_home, "resnet_actors_cpu", address, TROUPE_CPU_RANKS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "results 4 ranks; loss falls True", done.stdout
    assert all(f"epoch {epoch} loss " in done.stdout for epoch in range(4)), done.stdout


def test_resnet_by_ray_train(shared_home: Home, address: str) -> None:
    """Four workers, a checkpoint after each epoch, of which the last stays."""
    done = run(shared_home, "resnet_train_cpu", address, TROUPE_CPU_RANKS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "results 4 ranks; epoch 3 loss True", done.stdout
    kept = re.search(r"kept the state of epoch 3, (\d+) numbers", done.stdout)
    assert kept is not None and int(kept[1]) > PARAMETERS, (
        done.stdout
    )  # and what batch norms have seen
    assert all(f"epoch {epoch} loss " in done.stdout for epoch in range(4)), done.stdout


@pytest.mark.long
@pytest.mark.parametrize("guide", GUIDES)
def test_verbatim_without_gpus_is_one_error(shared_home: Home, address: str, guide: str) -> None:
    """The error names the decorator's line and what to do."""
    done = run(shared_home, f"{guide}_verbatim", address, TROUPE_CPU_RANKS="0")
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1, done.stderr
    text = done.stderr[done.stderr.index("PlacementError") :]
    assert (
        f"{guide}_verbatim.py, line" in text
        and "with TROUPE_CPU_RANKS=1, gpus=N means N processes without GPUs" in text
    ), text


@pytest.mark.long
def test_ray_train_verbatim_trains_on_cpu_ranks(shared_home: Home, address: str) -> None:
    """use_gpu=True means workers with CPUs there, whose group is Gloo; its torch.device is what
    there is."""
    done = run(shared_home, "resnet_train_verbatim", address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "results 4 ranks; epoch 3 loss True", done.stdout
    assert (
        done.stderr.count("so its actors, tasks and placement groups that ask for GPUs get CPUs")
        == 1
    ), done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("guide", GUIDES)
def test_verbatim_on_gpus(home: Home, guide: str) -> None:
    import torch

    if (count := torch.cuda.device_count()) < NEEDED_GPUS:
        pytest.skip(f"the guide asks for {NEEDED_GPUS} GPUs, and this machine has {count}")
    address = home.json("start", "--head", "--port", "0", "--labels", "gpu_type=A10")["address"]
    done = run(home, f"{guide}_verbatim", address)
    assert done.returncode == 0, done.stdout + done.stderr
