"""Datasets of a training, and `ray.data` in programs written for Ray.

Method: programs in processes of their own, with a cluster of theirs.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")

TRAINING = """
import json, sys
import numpy as np
import ray, ray.data, ray.train
from ray.train import DataConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer


def loop(config):
    import torch
    import torch.distributed as dist

    train, valid = ray.train.get_dataset_shard(), ray.train.get_dataset_shard("valid")
    seen = []
    for epoch in range(2):
        for batch in train.iter_torch_batches(batch_size=16):
            seen.append(batch["id"])
            dist.all_reduce(batch["x"].sum())  # as many batches on every rank, or this would not come back
    rows = torch.cat(seen)
    counts = [torch.zeros_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, rows)
    epochs = [sorted(torch.cat([one[part * len(one) // 2:(part + 1) * len(one) // 2] for one in counts]).tolist()) for part in range(2)]
    try:
        ray.train.get_dataset_shard("test")
    except KeyError as error:
        missing = str(error)
    ray.train.report({"epochs": epochs, "valid": sum(len(batch["id"]) for batch in valid.iter_batches()), "missing": missing})


ray.init(num_cpus=2)
train = ray.data.read_parquet(sys.argv[1], override_num_blocks=10).map_batches(
    lambda batch: {"id": batch["id"], "x": batch["x"] * np.float32(2)}, udf_modifying_row_count=False)
result = TorchTrainer(
    loop, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(name="run", storage_path=sys.argv[2]),
    datasets={"train": train, "valid": ray.data.range(7)}, dataset_config=DataConfig(datasets_to_split=["train"])).fit()
print(json.dumps(result.metrics))
ray.shutdown()
"""


def test_a_training_has_its_datasets(home: Home, numbers: Path, tmp_path: Path) -> None:
    """The workers hold all CPUs there are; functions that map their shares run all the same."""
    script = tmp_path / "train_on_rows.py"
    script.write_text(TRAINING)
    done = home.run(
        "run-as",
        "--only",
        "ray",
        str(script),
        str(numbers),
        str(tmp_path / "runs"),
        ok=False,
        timeout=2 * TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["epochs"] == [list(range(200))] * 2 and said["valid"] == 7
    assert (
        "the trainer has no dataset of that name; its datasets are train, valid" in said["missing"]
    )


def test_a_share_that_is_dealt_without_a_cluster_stays_here(home: Home) -> None:
    done = home.python(
        "import pickle\nfrom troupe import data\n"
        "shard = data.range(9).filter(lambda row: True).streaming_split(3, "
        "equal=True)[0]\npickle.dumps(shard)"
    )
    assert (
        done.returncode == 1
        and "call troupe.init() before streaming_split()" in done.stderr.splitlines()[-1]
    ), done.stderr


@pytest.mark.long
def test_the_example_deals_files_to_ranks_that_learn(home: Home) -> None:
    pytest.importorskip("sklearn")
    example = Path(__file__).resolve().parents[3] / "examples" / "dataset_ddp.py"
    done = subprocess.run(
        [sys.executable, str(example)],
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0 and "1797 digits: [(898, " in done.stdout, done.stdout + done.stderr
