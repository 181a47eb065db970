"""The examples of sweeps run as they are, on real data, and find what they should: each ends with
an error otherwise.

Method: programs of their own, on a cluster of this machine that each makes for itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import Home

EXAMPLES = Path(__file__).parents[2] / "examples"
WITHIN_S = 900


def run(example: str, *args: str) -> str:
    pytest.importorskip("sklearn")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example), *args],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_64_trials_under_asha_and_a_picture_of_the_best(home: Home, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = run("sweep_digits.py", "--picture", str(tmp_path / "best.png"))
    assert out.startswith("64 trials, ") and (tmp_path / "best.png").read_bytes().startswith(
        b"\x89PNG"
    )


def test_a_population_goes_on_from_the_best_ones_checkpoints(home: Home) -> None:
    assert run("pbt_digits.py").count("accuracy") == 4


def test_trials_of_two_ranks_with_ddp(home: Home) -> None:
    assert run("gang_sweep.py").count("on 2 ranks, 1797 samples") == 4
