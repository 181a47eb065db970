"""Vendors' guides whose programs need DeepSpeed, by `troupe run-as`, unchanged: their `cpu` on
ranks without GPUs; `verbatim` where there are GPUs.

Method: each program in a process of its own, on a cluster by address.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from e2e_conftest import Home
from runs import LIMIT_S, run

GUIDES = Path(__file__).resolve().parents[1] / "guides"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None,
    reason="deepspeed is not installed here: ./test frameworks installs it",
)


def test_b6_deepspeed_torch_distributor(warm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROUPE_CPU_RANKS", "1")
    printed, _ = run(["-m", "troupe", "run-as", str(GUIDES / "torch_distributor/deepspeed_cpu.py")])
    found = re.search(
        r"^output \{'rank': 0, 'world_size': 2, 'accuracy': ([\d.]+)\}$", printed, re.MULTILINE
    )
    assert found is not None and float(found[1]) > 0.9, printed


def test_c5_a_job_that_deepspeeds_launcher_starts(warm: Path) -> None:
    printed, _ = run(["-m", "troupe", "run-as", str(GUIDES / "azure/deepspeed_cpu.py")])
    found = re.search(r"^\[0\] \S+: accuracy ([\d.]+) of 2 processes$", printed, re.MULTILINE)
    assert found is not None and float(found[1]) > 0.9, printed


@pytest.mark.gpu
@pytest.mark.parametrize("guide", ["torch_distributor/deepspeed", "azure/deepspeed"])
def test_verbatim_on_gpus(home: Home, guide: str) -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip(f"the guide asks for 2 GPUs, and this machine has {torch.cuda.device_count()}")
    address = home.json("start", "--head", "--port", "0")["address"]
    done = home.run(
        "run-as",
        str(GUIDES / f"{guide}_verbatim.py"),
        ok=False,
        timeout=LIMIT_S,
        env={"TROUPE_ADDRESS": address},
    )
    assert done.returncode == 0, done.stdout + done.stderr
