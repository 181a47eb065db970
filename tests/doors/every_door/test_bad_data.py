"""Data that are wrong: scripts as people write them for Ray end in one error, which names the file
or the rows, and the user's own line.

Method: scripts by `troupe run-as`, each a process of its own, on one cluster: a loop over a
dataset, a training whose workers have shares of it, a function on ranks that read by themselves.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_conftest import Home
from submits import troupe_in

import troupe

pytest.importorskip("pyarrow", reason="pip install '.[data]'")

HEAD = """
import sys
import ray

def double(batch):
    if 157 in batch["id"]:
        raise KeyError("label")
    return {"id": batch["id"] * 2}

def read():
    return ray.data.read_parquet(sys.argv[1]).map_batches(double, batch_size=10)
"""
SCRIPTS = {
    "a loop": HEAD
    + (
        "ray.init()\nfor batch in read().iter_batches():\n    print('rows', len(batch['id']), "
        "flush=True)\nprint('returned')\n"
    ),
    "a training": HEAD
    + """
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

def loop():
    for batch in ray.train.get_dataset_shard("train").iter_batches():
        pass

TorchTrainer(loop, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(storage_path=sys.argv[2]), datasets={"train": read()}).fit()
print("returned")
""",
    "ranks": HEAD
    + """
from serverless_gpu import distributed

@distributed(gpus=2, remote=True)
def train():
    return read().count()

train.distributed()
print("returned")
""",
}


def files(folder: Path) -> Path:
    """Two of 100 rows each: "id" is 0 up to 199."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for part in range(2):
        pq.write_table(
            pa.table({"id": range(100 * part, 100 * part + 100)}),
            folder / f"part-{part}.parquet",
            row_group_size=20,
        )
    return folder


def said(tmp_path: Path, script: str, folder: Path) -> str:
    """The end of what the script said on stderr: its error, from the line that has its type on."""
    (tmp_path / "script.py").write_text(SCRIPTS[script])
    env = {"TROUPE_ADDRESS": troupe.get_runtime_context().gcs_address, "TROUPE_CPU_RANKS": "1"}
    done = troupe_in(tmp_path, "run-as", "script.py", str(folder), str(tmp_path / "runs"), env=env)
    assert done.returncode == 1 and "returned" not in done.stdout, done.stdout + done.stderr
    return "\n".join(done.stderr[done.stderr.rindex("\ntroupe.") :].splitlines())


@pytest.mark.parametrize(
    "script",
    ["a loop", *(pytest.param(each, marks=pytest.mark.long) for each in ("a training", "ranks"))],
)
def test_a13_a_damaged_file_is_named(cluster: Home, tmp_path: Path, script: str) -> None:
    folder = files(tmp_path / "data")
    damaged = folder / "part-1.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    text = said(tmp_path, script, folder)
    assert (
        f"{damaged} cannot be read" in text
        and "write it again, or leave it out (skip_paths=)" in text
    ), text


@pytest.mark.parametrize("script", SCRIPTS)
def test_a13_the_rows_that_a_function_failed_on_are_named(
    cluster: Home, tmp_path: Path, script: str
) -> None:
    folder = files(tmp_path / "data")
    text = said(tmp_path, script, folder)
    assert (
        f"map_batches(double) failed on rows 50 to 59 of {folder}/part-1.parquet: KeyError: 'label'"
        in text
    ), text
    assert 'script.py", line 7, in double' in text and 'raise KeyError("label")' in text, text
