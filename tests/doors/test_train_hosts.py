"""troupe.train over several nodes: ranks by node, where they meet, a folder that not all see.

A node that is lost: test_train_lost_node.py.

Method: two nodes of one cluster that reach each other as hosts do, by TCP.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import cloudpickle
import pytest

import troupe
from troupe import train
from troupe.train import Checkpoint, RunConfig, ScalingConfig
from troupe.train.torch import TorchTrainer

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_ranks_of_a_node_follow_each_other_and_all_meet(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    def loop() -> list:
        import torch.distributed as dist

        context = train.get_context()
        mine = (
            troupe.get_runtime_context().get_node_name(),
            context.get_world_rank(),
            context.get_node_rank(),
            context.get_local_rank(),
            context.get_local_world_size(),
            os.environ["MASTER_ADDR"],
            os.environ["GLOO_SOCKET_IFNAME"],
        )
        found: list = [None] * context.get_world_size()
        dist.all_gather_object(found, mine)
        return found

    result = TorchTrainer(
        loop,
        scaling_config=ScalingConfig(num_workers=4, placement_strategy="SPREAD"),
        run_config=RunConfig(storage_path=tmp_path),
    ).fit()
    found = result.return_value
    assert [each[1:5] for each in found] == [(0, 0, 0, 2), (1, 0, 1, 2), (2, 1, 0, 2), (3, 1, 1, 2)]
    assert found[0][0] == found[1][0] != found[2][0] == found[3][0]
    assert len({each[5:] for each in found}) == 1 and found[0][6]


def test_a_folder_that_not_all_nodes_see(hosts: dict[str, str], tmp_path: Path) -> None:
    """Rank 1's node has another folder by that name."""

    def loop(config: dict) -> None:
        from troupe.train import _run_folder

        rank = train.get_context().get_world_rank()
        mine = Path(config["path"]) / f"mine-{rank}"
        mine.mkdir()
        if rank == 1:
            _run_folder.OWNER = "elsewhere"  # owner in this process
        train.report({}, checkpoint=Checkpoint(mine))

    trainer = TorchTrainer(
        loop,
        train_loop_config={"path": str(tmp_path)},
        scaling_config=ScalingConfig(num_workers=2, placement_strategy="STRICT_SPREAD"),
        run_config=RunConfig(name="run", storage_path=tmp_path),
    )
    with pytest.raises(
        train.WorkerGroupError, match="rank 1 on .* does not see the run's folder"
    ) as raised:
        trainer.fit()
    assert isinstance(
        raised.value, FileNotFoundError
    ) and "has to be a folder that all of them share" in str(raised.value)
    assert not list((tmp_path / "run").glob("checkpoint_*"))
