"""Sweeps when a node is lost: its trials go on elsewhere from their checkpoints, and that is no failure of theirs.

Method: a cluster of two nodes, of which one is killed by a trial that runs there.
"""
from __future__ import annotations

import os
import sys
from pathlib import Path

import cloudpickle
from e2e_conftest import Home

import troupe
from troupe import tune
from troupe.cluster_utils import Cluster

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_a_lost_node_does_not_count_as_a_failure(home: Home, tmp_path: Path) -> None:
    def train(config: dict) -> None:
        checkpoint, start = tune.get_checkpoint(), 0
        if checkpoint is not None:
            start = int(Path(checkpoint.path, "step").read_text()) + 1
        own = Path(config["path"]) / f"own-{config['a']}"
        own.mkdir(exist_ok=True)
        for step in range(start, 4):
            (own / "step").write_text(str(step))
            tune.report({"x": step, "started": start}, checkpoint=tune.Checkpoint(own))
            if step == 1 and troupe.get_runtime_context().get_node_name() == "b":
                os.kill(config["worker"], 9)

    with Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1, "node_name": "a"}) as cluster:
        node = cluster.add_node(num_cpus=1, node_name="b")
        cluster.wait_for_nodes()
        grid = tune.Tuner(train, param_space={"a": tune.grid_search([0, 1, 2]), "path": str(tmp_path), "worker": node.pid},
                          run_config=tune.RunConfig(name="sweep", storage_path=tmp_path)).fit()
    assert not grid.errors and [each.metrics["x"] for each in grid] == [3, 3, 3]
    assert sorted(each.metrics["started"] for each in grid) in ([0, 0, 2], [0, 2, 2])
