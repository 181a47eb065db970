"""A full disk of a node, and one that may not be written: code, requirements, links to logs,
checkpoints.

Method: a node, as of another host, whose cache is a file system of a few MiB; programs that see a
folder of 1 MiB.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from installs import wheel
from small_disks import folders_in, left_of, needs_mounts, on_a_small_disk
from submits import printed, project, troupe_in

import troupe
from troupe import exceptions
from troupe.launch import distributed

pytestmark = needs_mounts
HOST = os.uname().nodename
LACKS = r": No space left on device\n\s+it needs {}, and \d[\d.]* [KM]iB of 24\.0 MiB is free there\n\s+free room there, or have less kept: TROUPE_CACHE_GIB"


def test_b7_a_directory_that_does_not_fit_on_its_node(small_node: Path, tmp_path: Path) -> None:
    folder = project(tmp_path / "w", train="print('ran')")
    (folder / "weights").write_bytes(os.urandom(25 << 20))
    before = folders_in(small_node)
    done = troupe_in(
        folder,
        "submit",
        "train.py",
        env={"TROUPE_ADDRESS": troupe.get_runtime_context().gcs_address},
    )
    assert done.returncode == 1 and "ran" not in done.stdout
    assert re.search(
        rf"the package of runtime_env\['working_dir'\] cannot be written to \S+/cache/tree-\w+ on {HOST}"
        + LACKS.format(r"25\.0 MiB"),
        done.stderr,
    ), done.stderr
    assert folders_in(small_node) == before
    (folder / "weights").unlink()
    assert printed(
        troupe_in(
            folder,
            "submit",
            "train.py",
            env={"TROUPE_ADDRESS": troupe.get_runtime_context().gcs_address},
        )
    ) == ["ran"]


def test_a6_requirements_that_do_not_fit_on_their_node(small_node: Path, tmp_path: Path) -> None:
    """The installer's words, and what is free without what it had written."""
    large = wheel(tmp_path, "large_thing", data_bytes=40 << 20)
    before = folders_in(small_node)
    launch = distributed(processes=1, remote=True, quiet=True, runtime_env={"pip": [large]})(len)
    with pytest.raises(exceptions.RuntimeEnvSetupError) as failed:
        launch.distributed([])
    text = str(failed.value)
    assert (
        re.search(r"install \S*large_thing\S* ended with \d+ on ", text)
        and "No space left on device" in text
    ), text
    assert (
        re.search(rf"/cache on {HOST}: [12]\d\.\d MiB of 24\.0 MiB is free there", text)
        and "TROUPE_CACHE_GIB" in text
    ), text
    assert folders_in(small_node) == before


def test_b7_links_to_logs_that_cannot_be_made_are_said_and_the_program_runs(
    small_node: Path, tmp_path: Path
) -> None:
    folder = project(tmp_path / "w", train="print('ran')")
    done = troupe_in(
        folder,
        "submit",
        "--log-dir",
        "/mnt/logs",
        "train.py",
        env={"TROUPE_ADDRESS": troupe.get_runtime_context().gcs_address},
    )
    assert printed(done) == ["ran"]
    assert re.search(
        rf"troupe: no output in /mnt/logs/\S+ on {HOST}: Read-only file system; troupe logs \w+ has it",
        done.stderr,
    ), done.stderr


CHECKPOINT = """
import os, sys
from pathlib import Path
import troupe
from troupe import exceptions, train
from troupe.train import Checkpoint, RunConfig, ScalingConfig
from troupe.train.torch import TorchTrainer

there, mine = Path(sys.argv[1]), Path(sys.argv[2])
mine.mkdir()
(mine / "weights").write_bytes(bytes(2 << 20))

def loop(config):
    try:
        train.report({"n": 1}, Checkpoint(config["mine"]))
    except OSError as error:
        print("refused", type(error).__name__, error.errno, error)
    train.report({"n": 2})

if sys.argv[3] == "report":
    troupe.init(num_cpus=2)
    result = TorchTrainer(loop, train_loop_config={"mine": str(mine)}, scaling_config=ScalingConfig(num_workers=1), run_config=RunConfig(
        storage_path=str(there), name="run")).fit()
    print("end", result.metrics, result.checkpoint)
else:
    for target in (there / "c", there):
        try:
            Checkpoint(mine).to_directory(target)
        except exceptions.OutOfDiskError as error:
            print("refused", type(error).__name__, error.errno, error)
"""


@pytest.mark.parametrize("how", ["report", "to_directory"])
def test_a13_a_checkpoint_that_does_not_fit_is_not_there(
    small_node: Path, tmp_path: Path, how: str
) -> None:
    """The training goes on, on a cluster of its own, and is told what is missing."""
    script = tmp_path / "script.py"
    script.write_text(CHECKPOINT)
    done = on_a_small_disk(
        tmp_path / "there",
        [sys.executable, str(script), str(tmp_path / "there"), str(tmp_path / "mine"), how],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.findall(
        rf"refused OutOfDiskError\(OSError\) 28 .* cannot be written to {tmp_path}/there\S* on {HOST}: No space left on device\n"
        r"(?:\(TrainWorker \w+\))?\s+it needs 2\.0 MiB, and [\d.]+ [KM]iB of 1\.0 MiB is free there\n(?:\(TrainWorker \w+\))?\s+free room there",
        done.stdout,
    )
    assert len(said) == (1 if how == "report" else 2), done.stdout + done.stderr
    assert not [
        each
        for each in left_of(done)
        if "weights" in each or "checkpoint" in each or "arriving" in each
    ], left_of(done)
    assert how != "report" or "end {'n': 2} None" in done.stdout
