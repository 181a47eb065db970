"""Faults in a job or a run, by a command or script as people start it: one error names the fault
and the nearest name, and nothing has started.

Method: `troupe azure job create` with files, and scripts by `troupe run-as` with their launchers'
own imports, each a process of its own, on one cluster.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from azure_jobs import folder_of
from e2e_conftest import Home
from submits import troupe_in

import troupe

GOOD = "command: echo ran\nenvironment: e\n"
FILES = {
    "an unknown distribution": (
        GOOD + "distribution: {type: horovod}\n",
        "ValueError: job.yml:3:22: distribution: type is 'horovod', which is none; it has mpi, "
        "pytorch",
    ),
    "a misspelt distribution": (
        GOOD + "distribution: {type: pytroch}\n",
        "did you mean 'pytorch'?",
    ),
    "an unknown launcher": (
        GOOD + "distribution: {type: pytorch, launcher: deepsped}\n",
        "did you mean 'deepspeed'?",
    ),
    "an expression without an input": (
        "command: echo ${{inputs.typo}}\nenvironment: e\ninputs: {type: 1}\n",
        "the job has no input 'typo': did you mean 'type'?",
    ),
    "an input that is not there": (
        GOOD + "inputs:\n  data: {type: uri_file, path: ./none.csv}\n",
        "FileNotFoundError: job.yml:4:32: inputs: data: there is no ./none.csv",
    ),
    "a code folder that is not there": (
        GOOD + "code: ./none\n",
        "FileNotFoundError: job.yml:3:7: there is no code folder ./none",
    ),
    "a code folder of 5 GB": (GOOD + "code: ./large\n", "weights.bin (5.0 GiB"),
    "a tab": ("command: x\n\tcode: y\n", "there is a tab: YAML is indented by spaces alone"),
    "an unknown key": (
        GOOD + "comput: x\n",
        "ValueError: job.yml:3:1: a command job has no 'comput': did you mean 'compute'?",
    ),
    "a file for what is a folder": (
        GOOD + "inputs:\n  data: {type: uri_folder, path: ./job.yml}\n",
        "type='uri_file'",
    ),
}


def launches() -> int:
    return len(troupe.state.list_launches())


def address() -> dict[str, str]:
    return {"TROUPE_ADDRESS": troupe.get_runtime_context().gcs_address}


@pytest.mark.parametrize("what", FILES)
def test_c1_a_job_file_that_is_wrong_is_one_error(cluster: Home, tmp_path: Path, what: str) -> None:
    text, words = FILES[what]
    folder_of(tmp_path, **{"job.yml": text, "large/a": "x"})
    with open(tmp_path / "large" / "weights.bin", "wb") as file:
        file.truncate(5 << 30)  # sparse
    before = launches()
    done = troupe_in(tmp_path, "azure", "job", "create", "-f", "job.yml", env=address())
    assert (
        done.returncode == 1
        and done.stdout == ""
        and words in done.stderr
        and "Traceback" not in done.stderr
    ), done.stderr
    assert launches() == before


SCRIPT = """
import os, threading
from pyspark.ml.torch.distributor import TorchDistributor
{}
print("returned", flush=True)
"""
RUNS = {
    "num_processes=-1": (
        "TorchDistributor(-1, use_gpu=False)",
        "\nValueError: num_processes has to be a positive integer, not -1",
        0,
    ),
    "num_processes=0": (
        "TorchDistributor(0, use_gpu=False)",
        "\nValueError: num_processes has to be a positive integer, not 0",
        0,
    ),
    "use_gpu without GPUs": (
        "TorchDistributor(2, local_mode=False, use_gpu=True)",
        "has a GPU\n  use_gpu=False trains on CPUs",
        0,
    ),
    "a result that cannot be pickled": (
        "TorchDistributor(1, False, False).run(lambda: {'lock': threading.Lock()})",
        "result['lock'] (_thread.lock)",
        1,
    ),
    "a rank that exits 0 without a result": (
        "TorchDistributor(1, False, False).run(lambda: os._exit(0))",
        "exited with code 0 without returning a value",
        1,
    ),
    "a script that is not there": (
        "TorchDistributor(1, False, False).run('none.py')",
        "there is no script",
        0,
    ),
}


@pytest.mark.parametrize("what", RUNS)
def test_b1_a_run_that_is_wrong_is_one_error(cluster: Home, tmp_path: Path, what: str) -> None:
    line, words, started = RUNS[what]
    (tmp_path / "script.py").write_text(SCRIPT.format(line))
    before = launches()
    done = troupe_in(tmp_path, "run-as", "script.py", env={**address(), "TROUPE_CPU_RANKS": "0"})
    assert done.returncode == 1 and "returned" not in done.stdout, done.stdout + done.stderr
    assert words in done.stderr, done.stderr
    assert launches() == before + started
