"""C5: DeepSpeed's autotuning, as a command job: its own tuner, experiments and result, on the GPU.

Method: a small network whose micro batch size is tuned; the launcher writes the configuration that
was best.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from conftest import Home

from troupe.azure import MLClient, command

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("deepspeed", "tabulate")),
        reason="needs DeepSpeed with its autotuning: deepspeed[autotuning]",
    ),
]
LIMIT_S = 1500.0
TRAIN = """
import argparse

import deepspeed
import torch

known = argparse.ArgumentParser()
known.add_argument("--local_rank", type=int)
deepspeed.add_config_arguments(known)
asked = known.parse_args()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
engine, _, _, _ = deepspeed.initialize(args=asked, model=model, model_parameters=model.parameters())
batch = engine.train_micro_batch_size_per_gpu()
for _ in range(60 * engine.gradient_accumulation_steps()):
    x = torch.randn(batch, 64, device=engine.device)
    loss = torch.nn.functional.cross_entropy(engine(x), x[:, :10].argmax(1))
    engine.backward(loss)
    engine.step()
"""


def test_c5_the_autotuning_finds_a_configuration(node: Home, tmp_path: Path) -> None:
    config = {
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": 1,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
        "autotuning": {
            "enabled": True,
            "fast": True,
            "results_dir": str(tmp_path / "results"),
            "exps_dir": str(tmp_path / "exps"),
            "overwrite": True,
            "min_train_micro_batch_size_per_gpu": 1,
            "max_train_micro_batch_size_per_gpu": 16,
            "num_tuning_micro_batch_sizes": 2,
            "start_profile_step": 2,
            "end_profile_step": 6,
            "tuner_type": "gridsearch",
        },
    }
    source = tmp_path / "src"
    source.mkdir()
    (source / "train.py").write_text(TRAIN)
    (source / "ds_config.json").write_text(json.dumps(config))
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "mlflow.py").write_text(
        "raise ImportError('the tuner wants a run of it, where it is installed')\n"
    )
    jobs = MLClient().jobs
    job = jobs.create_or_update(
        command(
            code=str(source),
            command="deepspeed --autotuning tune train.py --deepspeed --deepspeed_config "
            "ds_config.json",
            environment_variables={"PYTHONPATH": str(hidden)},
            distribution={
                "type": "pytorch",
                "launcher": "deepspeed",
                "process_count_per_instance": 1,
            },
        )
    )
    handle = jobs.handle(jobs.info(job.name))
    handle.result(timeout=LIMIT_S)
    printed = "\n".join(handle.logs())
    best = tmp_path / "results" / "ds_config_optimal.json"
    assert best.exists(), printed
    assert 1 <= json.loads(best.read_text())["train_micro_batch_size_per_gpu"] <= 16, printed
    assert (tmp_path / "results" / "profile_model_info" / "model_info.json").exists(), (
        "the launcher's first experiment ran on the node"
    )
