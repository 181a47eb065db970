"""Sweeps when a node is lost, or leaves: its trials go on elsewhere from their checkpoints, and
that is no failure of theirs.

Method: clusters of two or three nodes, of which one is ended by a trial that runs there; no trial
may fail.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import cloudpickle
import pytest
from e2e_conftest import Home

import troupe
from troupe import tune
from troupe.cluster_utils import Cluster

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "leaves"])
def test_a_lost_node_does_not_count_as_a_failure(
    home: Home, tmp_path: Path, sign: signal.Signals
) -> None:
    def train(config: dict) -> None:
        import time

        checkpoint, start = tune.get_checkpoint(), 0
        if checkpoint is not None:
            start = int(Path(checkpoint.path, "step").read_text()) + 1
        own = Path(config["path"]) / f"own-{config['a']}"
        own.mkdir(exist_ok=True)
        for step in range(start, 4):
            (own / "step").write_text(str(step))
            tune.report({"x": step, "started": start}, checkpoint=tune.Checkpoint(own))
            if step == 1 and troupe.get_runtime_context().get_node_name() == "b":
                os.kill(config["worker"], config["sign"])
                time.sleep(1000)  # lint-ok: it ends with its node

    with Cluster(
        initialize_head=True, connect=True, head_node_args={"num_cpus": 1, "node_name": "a"}
    ) as cluster:
        node = cluster.add_node(num_cpus=1, node_name="b")
        cluster.wait_for_nodes()
        grid = tune.Tuner(
            train,
            param_space={
                "a": tune.grid_search([0, 1, 2]),
                "path": str(tmp_path),
                "worker": node.pid,
                "sign": int(sign),
            },
            run_config=tune.RunConfig(name="sweep", storage_path=tmp_path),
        ).fit()
    assert not grid.errors and [each.metrics["x"] for each in grid] == [3, 3, 3]
    assert sorted(each.metrics["started"] for each in grid) in ([0, 0, 2], [0, 2, 2])


@tune.sweep(remote=True, metric="x", mode="max", ranks=2, strategy="STRICT_SPREAD", space={"a": 1})
def gang(a: int, folder: str, workers: dict, lost: int) -> None:
    """The rank `lost` ends its node after two reports, once; what the ranks have summed says that
    both go on together."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, checkpoint, start = dist.get_rank(), tune.get_checkpoint(), 0
    if checkpoint is not None:
        start = int(Path(checkpoint.path, "step").read_text()) + 1
    for step in range(start, 5):
        total = torch.tensor([float(step)])
        dist.all_reduce(total)
        own = Path(folder, f"own-{rank}")
        own.mkdir(exist_ok=True)
        (own / "step").write_text(str(step))
        tune.report(
            {"x": total.item(), "started": start},
            checkpoint=tune.Checkpoint(own) if rank == 0 else None,
        )
        if step == 1 and rank == lost and start == 0:
            os.kill(workers[troupe.get_runtime_context().get_node_name()], signal.SIGKILL)
            # The trial ends with its node, which may take a while on a busy machine: it must not
            # report meanwhile
            threading.Event().wait()


def test_a_gang_that_loses_a_node_goes_on_with_another_one(home: Home, tmp_path: Path) -> None:
    """Lost are the node of the trial's own process, and that of another rank."""
    with Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1}) as cluster:
        cluster.add_node(num_cpus=1)
        for lost in (0, 1):
            cluster.add_node(num_cpus=1)
            workers = {node.name: node.pid for node in cluster.list_all_nodes()}
            grid = gang.options(storage=tmp_path, name=f"gang-{lost}").sweep(
                folder=str(tmp_path), workers=workers, lost=lost
            )
            assert not grid.errors, grid.errors
            assert [
                (each.metrics["x"], each.metrics["started"], each.metrics["training_iteration"])
                for each in grid
            ] == [(8.0, 2, 5)]
