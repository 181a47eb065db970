"""troupe.train when a node is lost: a failure like any other.

Method: a cluster of two nodes, of which one is killed by the loop that runs there.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home

import troupe
from troupe import train
from troupe.cluster_utils import Cluster
from troupe.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from troupe.train.torch import TorchTrainer

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_a_lost_node_is_a_failure_like_any_other(home: Home, tmp_path: Path) -> None:
    """The workers start again where there is room: two on the node that is left."""

    def loop(config: dict) -> int:
        import torch
        import torch.distributed as dist

        context = train.get_context()
        checkpoint, start = train.get_checkpoint(), 0
        if checkpoint is not None:
            start = int(Path(checkpoint.path, "step").read_text()) + 1
        for step in range(start, 3):
            folder = Path(config["path"]) / f"mine-{context.get_world_rank()}"
            folder.mkdir(exist_ok=True)
            (folder / "step").write_text(str(step))
            train.report(
                {"step": step, "local": context.get_local_world_size()},
                checkpoint=Checkpoint(folder) if context.get_world_rank() == 0 else None,
            )
            if step == 1 and start == 0 and troupe.get_runtime_context().get_node_name() == "b":
                os.kill(config["worker"], 9)
            dist.all_reduce(torch.ones(1))
        return start

    with Cluster(
        initialize_head=True, connect=True, head_node_args={"num_cpus": 2, "node_name": "a"}
    ) as cluster:
        node = cluster.add_node(num_cpus=2, node_name="b")
        cluster.wait_for_nodes()
        trainer = TorchTrainer(
            loop,
            train_loop_config={"path": str(tmp_path), "worker": node.pid},
            run_config=RunConfig(
                name="run", storage_path=tmp_path, failure_config=FailureConfig(max_failures=1)
            ),
            scaling_config=ScalingConfig(num_workers=2, placement_strategy="SPREAD"),
        )
        result = trainer.fit()
    assert result.return_value == 2 and result.metrics == {"step": 2, "local": 2}
    assert [each["step"] for each in result.metrics_history] == [0, 1, 2]
