"""Programs of other launchers' front doors, as examples that run: they learn what they learn under
torchrun, or under a plain mpirun.

Method: TorchDistributor by `troupe run-as` with pyspark's import line, command jobs of the Azure ML
SDK by a script of its own words; losses by the rule of `losses.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from losses import Losses, said, verdict
from runs import LIMIT_S, PROGRAMS, VARIABLES, by_torchrun, program, run

JOB = """
import sys
from azure.ai.ml import MLClient, MpiDistribution, PyTorchDistribution, command

kind = {"pytorch": PyTorchDistribution, "mpi": MpiDistribution}[sys.argv[1]]
job = command(code=sys.argv[2], command=f"python {sys.argv[3]}", environment="any@latest", environment_variables=dict(each.split("=", 1) for each in sys.argv[4:]),
              distribution=kind(process_count_per_instance=2))
jobs = MLClient().jobs
jobs.stream(jobs.create_or_update(job).name)
"""


@pytest.fixture(scope="module")
def torchrun(warm: Path) -> Losses:
    return by_torchrun("ddp", "--epochs", "1")


def by_job(folder: Path, kind: str, line: str) -> Losses:
    """Return the losses of a command job of two processes."""
    script = folder / "submit.py"
    script.write_text(JOB)
    return said(
        run(
            [
                "-m",
                "troupe",
                "run-as",
                str(script),
                kind,
                str(PROGRAMS),
                line,
                *(f"{name}={value}" for name, value in VARIABLES.items()),
            ]
        )[0],
        2,
    )


def test_b1_torch_distributor_trains_on_the_digits(warm: Path, torchrun: Losses) -> None:
    printed, _ = run(
        ["-m", "troupe", "run-as", program("through_distributor"), "ddp", "2", "--epochs", "1"]
    )
    found = verdict(torchrun, said(printed, 2), lambda: by_torchrun("ddp", "--epochs", "1"))
    assert not found.why and "output 0" in printed, found.why or printed


def test_c2_a_job_with_the_pytorch_distribution(
    warm: Path, torchrun: Losses, tmp_path: Path
) -> None:
    found = verdict(
        torchrun,
        by_job(tmp_path, "pytorch", "ddp.py --epochs 1"),
        lambda: by_torchrun("ddp", "--epochs", "1"),
    )
    assert not found.why, found.why


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs Open MPI: openmpi-bin")
def test_c3_a_job_with_mpi4py(warm: Path, tmp_path: Path) -> None:
    import sys

    def by_mpirun() -> Losses:
        root = (
            {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            if os.geteuid() == 0
            else {}
        )
        done = subprocess.run(
            [
                "mpirun",
                "--oversubscribe",
                "--bind-to",
                "none",
                "-np",
                "2",
                sys.executable,
                program("mpi_digits"),
            ],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, **VARIABLES, **root},
            check=True,
        )
        return said(done.stdout, 2)

    found = verdict(by_mpirun(), by_job(tmp_path, "mpi", "mpi_digits.py"), by_mpirun)
    assert not found.why, found.why
