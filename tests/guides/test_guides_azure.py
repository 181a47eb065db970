"""The command jobs of guides, as users run them: by `troupe run-as`, unchanged, on a cluster by
address.

Method: each program in a process of its own. `cpu` has the script's device lines changed;
`verbatim` runs where a node has enough GPUs, and elsewhere ends in one error that is looked at.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_conftest import Home

needs_mpirun = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="needs Open MPI: openmpi-bin"
)
HERE = Path(__file__).parent / "azure"
TIMEOUT_S = 400.0

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "sklearn")),
    reason="needs torch and scikit-learn",
)


def run(folder: Path, guide: str, address: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "troupe", "run-as", str(HERE / f"{guide}.py")],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "TROUPE_ADDRESS": address},
    )


def changed(name: str) -> list[str]:
    """Lines of code that differ between the two files."""
    one, other = (
        (HERE / name.format(each)).read_text().partition('"""\n')[2].splitlines()
        for each in ("verbatim", "cpu")
    )
    return [
        line
        for line in difflib.unified_diff(one, other, lineterm="", n=0)
        if re.match(r"[-+](?![-+])", line)
    ]


def test_what_differs_is_the_device() -> None:
    for guide in ("pytorch", "mpi"):
        assert len(changed(guide + "_{}.py")) == 2 and all(
            "train_" in line for line in changed(guide + "_{}.py")
        )
    assert len(changed("deepspeed_{}.py")) == 3 and all(
        "deepspeed_" in line or "DS_ACCELERATOR" in line for line in changed("deepspeed_{}.py")
    )
    assert (
        len(changed("tensorflow_{}.py"))
        == 2
        == len(changed("src/tensorflow_{}.py"))
        == len(changed("src/deepspeed_{}.py"))
    )
    assert len(changed("src/train_{}.py")) == 4 and all(
        "init_process_group" in line or "torch.device" in line
        for line in changed("src/train_{}.py")
    )


@pytest.fixture(scope="module")
def address(shared_home: Home) -> Iterator[str]:
    yield shared_home.json("start", "--head", "--port", "0", "--num-cpus", "8", "--num-gpus", "0")[
        "address"
    ]


@pytest.mark.parametrize(
    "guide", ["pytorch", pytest.param("mpi", marks=[needs_mpirun, pytest.mark.long])]
)
def test_c1_c2_c3_c6_training_with_each_distribution(
    address: str, tmp_path: Path, guide: str
) -> None:
    done = run(tmp_path, f"{guide}_cpu", address)
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.search(r"^\[0\] accuracy ([\d.]+) of 2 processes$", done.stdout, re.M)
    assert said is not None and float(said[1]) > 0.85, done.stdout
    files = tmp_path / "downloaded"
    assert json.loads((files / "artifacts/outputs/metrics.json").read_text())["accuracy"] > 0.85
    assert (files / "named-outputs/model/model.pt").stat().st_size > 0
    assert any("accuracy" in each.read_text() for each in (files / "artifacts/user_logs").iterdir())


@pytest.mark.long
def test_verbatim_without_gpus_is_one_error_and_the_device_line_is_shown(
    address: str, tmp_path: Path
) -> None:
    """NCCL is Gloo; the first line that needs CUDA fails."""
    done = run(tmp_path, "pytorch_verbatim", address)
    assert done.returncode == 1 and done.stderr.count("troupe.exceptions.LaunchError") == 1, (
        done.stderr
    )
    assert (
        "Found no NVIDIA driver"
        in done.stderr[done.stderr.index("troupe.exceptions.LaunchError") :]
    ), done.stderr
    assert done.stderr.count("backend 'nccl' is 'gloo' on these ranks") == 1, done.stderr
    assert "cuda" in done.stderr, "the traceback of each process is shown"


@pytest.mark.gpu
@pytest.mark.parametrize("guide", ["pytorch", pytest.param("mpi", marks=needs_mpirun)])
def test_verbatim_on_gpus(home: Home, tmp_path: Path, guide: str) -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip(f"the guide asks for 2 GPUs, and this machine has {torch.cuda.device_count()}")
    address = home.json("start", "--head", "--port", "0")["address"]
    done = run(tmp_path, f"{guide}_verbatim", address)
    assert done.returncode == 0, done.stdout + done.stderr
