"""TorchDistributor's programs, as users run them: by `troupe run-as`, unchanged, on a cluster by
address.

Method: each program in a process of its own. `cpu` runs with TROUPE_CPU_RANKS=1; `verbatim` runs
where there are GPUs enough, and elsewhere ends in one error that is looked at.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator

import guides
import pytest
from e2e_conftest import Home

GUIDES = ("torch_distributor/function", "torch_distributor/file")
LAUNCHER = re.compile(r"pyspark|TorchDistributor|\.run\(")
NEEDED_GPUS = 2

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "sklearn")),
    reason="needs torch and scikit-learn",
)


@pytest.fixture(scope="module")
def address(shared_home: Home) -> Iterator[str]:
    """The address of a cluster of one node without GPUs."""
    yield shared_home.json("start", "--head", "--port", "0", "--num-cpus", "4", "--num-gpus", "0")[
        "address"
    ]


@pytest.mark.parametrize("guide", [*GUIDES, "torch_distributor/deepspeed"])
def test_the_launchers_lines_are_the_guides(guide: str) -> None:
    guides.check_pair(guide, LAUNCHER)


def test_b1_digits_in_function_mode(shared_home: Home, address: str) -> None:
    """B1, B3: rank 0's output of two, and what the ranks write."""
    done = guides.run(shared_home, "torch_distributor/function_cpu", address, TROUPE_CPU_RANKS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    output = re.search(
        r"^output \{'rank': 0, 'world_size': 2, 'accuracy': ([\d.]+)\}$", done.stdout, re.M
    )
    assert output is not None and float(output[1]) >= 0.9, done.stdout
    assert re.search(r"^\[0\] epoch 3 loss ", done.stdout, re.M), done.stdout
    assert (
        done.stderr.count(
            "TROUPE_CPU_RANKS is set: use_gpu=True of TorchDistributor means 2 processes without "
            "GPUs"
        )
        == 1
    )


@pytest.mark.long
def test_b2_digits_in_file_mode(shared_home: Home, address: str) -> None:
    """B2: the script on both ranks, one model in the end; None for the caller."""
    done = guides.run(shared_home, "torch_distributor/file_cpu", address, TROUPE_CPU_RANKS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^\[[01]\] rank ([01]) of 2 accuracy ([\d.]+)$", done.stdout, re.M)
    assert {rank for rank, _ in found} == {"0", "1"} and len(
        {accuracy for _, accuracy in found}
    ) == 1, done.stdout
    assert float(found[0][1]) >= 0.9 and done.stdout.endswith("output None\n"), done.stdout


@pytest.mark.parametrize("guide", [GUIDES[0], pytest.param(GUIDES[1], marks=pytest.mark.long)])
def test_verbatim_without_gpus_is_one_error(shared_home: Home, address: str, guide: str) -> None:
    """The error says which cluster has no GPU, and what to do, where CPU ranks are not wanted."""
    done = guides.run(shared_home, f"{guide}_verbatim", address, TROUPE_CPU_RANKS="0")
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1, done.stderr
    text = done.stderr[done.stderr.index("DistributorError") :]
    assert (
        f"TorchDistributor was given use_gpu=True, and no node of the cluster at {address} has a "
        "GPU"
        in text
        and "use_gpu=False" in text
    ), text


@pytest.mark.long
def test_verbatim_on_cpu_ranks_names_the_device_line(shared_home: Home, address: str) -> None:
    """NCCL is Gloo there; the first line that needs CUDA is named."""
    done = guides.run(shared_home, "torch_distributor/file_verbatim", address)
    assert (
        done.returncode == 1
        and "troupe.spark.DistributorError: rank " in done.stderr
        and "has no GPU: use_gpu=True of TorchDistributor" in done.stderr
    ), done.stderr
    assert re.search(
        r"try: file_verbatim\.py, line \d+: model = DDP\(.*\n\s+needs a GPU, and these ranks have none",
        done.stderr,
    ), done.stderr
    assert (
        "Command ['" in done.stderr
        and "failed with return code 1. The task output is included below" in done.stderr
    )


@pytest.mark.gpu
@pytest.mark.parametrize("guide", GUIDES)
def test_verbatim_on_gpus(home: Home, guide: str) -> None:
    import torch

    count = torch.cuda.device_count()
    if count < NEEDED_GPUS:
        pytest.skip(f"the guide asks for {NEEDED_GPUS} GPUs, and this machine has {count}")
    address = home.json("start", "--head", "--port", "0")["address"]
    done = guides.run(home, f"{guide}_verbatim", address)
    assert done.returncode == 0, done.stdout + done.stderr
