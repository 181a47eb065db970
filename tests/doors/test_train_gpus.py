"""troupe.train on GPUs: which worker has which, and what it sees.

On a real one: tests/gpu/test_gpu_train.py.

Method: two nodes of logical GPUs; workers meet by Gloo and say what their variables are.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home, eventually

import troupe
from troupe import train
from troupe.train import RunConfig, ScalingConfig
from troupe.train.torch import TorchConfig, TorchTrainer

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.mark.long
def test_workers_of_a_node_see_the_gpus_of_all_and_hold_their_own(
    home: Home, tmp_path: Path
) -> None:
    """Two workers on each of two nodes; a runtime_env of the workers reaches them."""

    def loop() -> list:
        import torch.distributed as dist

        mine = (
            troupe.get_gpu_ids(),
            os.environ["CUDA_VISIBLE_DEVICES"],
            train.get_context().get_trial_resources(),
            os.environ["MODE"],
        )
        found: list = [None] * train.get_context().get_world_size()
        dist.all_gather_object(found, mine)
        return found

    started = home.json(
        "start",
        "--head",
        "--port",
        "0",
        "--num-cpus",
        "4",
        "--num-gpus",
        "3",
        "--labels",
        "gpu_type=H100",
    )
    home.run(
        "start",
        "--address",
        started["address"],
        "--token-file",
        home.token(),
        "--num-cpus",
        "4",
        "--num-gpus",
        "2",
        "--labels",
        "gpu_type=A10",
    )
    troupe.init(started["address"])
    eventually(
        lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()), what="the zygotes"
    )
    run = RunConfig(storage_path=tmp_path, worker_runtime_env={"env_vars": {"MODE": "fast"}})
    scaling = ScalingConfig(num_workers=4, use_gpu=True, placement_strategy="SPREAD")
    found = (
        TorchTrainer(
            loop, scaling_config=scaling, run_config=run, torch_config=TorchConfig(backend="gloo")
        )
        .fit()
        .return_value
    )
    for first, second in (found[:2], found[2:]):
        assert len(first[0]) == len(second[0]) == 1 and first[0] != second[0]
        assert first[1] == second[1] == ",".join(map(str, sorted(first[0] + second[0]))), found
    assert all(each[2:] == ({"GPU": 1}, "fast") for each in found)
    typed = ScalingConfig(num_workers=2, use_gpu=True, accelerator_type="A10")
    found = (
        TorchTrainer(
            loop, scaling_config=typed, run_config=run, torch_config=TorchConfig(backend="gloo")
        )
        .fit()
        .return_value
    )
    assert [each[1] for each in found] == ["0,1"] * 2
    with pytest.raises(train.ControllerError, match="can never be placed"):
        TorchTrainer(
            loop,
            scaling_config=ScalingConfig(num_workers=3, use_gpu=True, accelerator_type="A10"),
            run_config=run,
        ).fit()
