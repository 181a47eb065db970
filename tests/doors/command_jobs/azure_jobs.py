"""Parts shared by the tests of command jobs: folders with a job in them, jobs that were run, and
skips without the library for files."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S

from troupe.azure import MLClient, command

LIMIT_S = 4 * TIMEOUT_S
needs_mpirun = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="needs Open MPI: openmpi-bin"
)

JOB = """
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
command: >-
  echo "rank $RANK epochs ${{inputs.epochs}}" $[[--lr ${{inputs.lr}}]] $(cat ${{inputs.data}}) && echo made by $RANK > ${{outputs.model}}/$RANK.txt
code: src
inputs:
  epochs: 3
  lr: {type: number, optional: true}
  data: {type: uri_file, path: ./data.txt}
outputs:
  model: {type: uri_folder, path: ./model}
environment: azureml:pytorch@latest
compute: azureml:cpu-cluster
distribution: {type: pytorch, process_count_per_instance: 2}
resources: {instance_count: 1}
"""


def folder_of(path: Path, **files: str) -> Path:
    """A folder with these files, by their paths, `/` written as `__`."""
    for name, text in files.items():
        file = path / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    path.mkdir(exist_ok=True)
    return path


def a_job_file(path: Path) -> Path:
    """`job.yml` with what it names beside it."""
    folder_of(path, src__train="x", **{"data.txt": "text", "job.yml": JOB})
    return path / "job.yml"


def ran(**fields: Any) -> Sequence[str]:
    """The lines that a job's processes printed, in order, without their ranks; it has to
    succeed."""
    _, lines = run(**fields)
    return sorted(line.partition("] ")[2] for line in lines)


def run(**fields: Any) -> tuple[Any, list[str]]:
    """A job that has succeeded, and its lines with their ranks."""
    jobs = MLClient().jobs
    job = jobs.create_or_update(command(**fields))
    handle = jobs.handle(jobs.info(job.name))
    handle.result(timeout=LIMIT_S)
    return job, list(handle.logs())
