"""Training on a gang of workers that goes on from checkpoints: trainers, `report()` and Checkpoint,
by Ray's names.

    from troupe import train
    from troupe.train.torch import TorchTrainer, prepare_model

    def loop(config):
        model = prepare_model(Net())
        for epoch in range(10):
            ...
            train.report({"loss": loss}, checkpoint=checkpoint)

    result = TorchTrainer(loop, scaling_config=train.ScalingConfig(num_workers=4, use_gpu=True),
                          run_config=train.RunConfig(name="digits", storage_path="/shared"),
                          ).fit()

    # in the ranks of a launch that goes on without some (docs/guides/recovery.md)
    for attempt in train.attempts("gloo"):
        with attempt: ...

View: `fit()` is called by any process of a cluster, by the driver of a `@ray_launch` too; the rest
by the code that it runs on workers.
"""

from __future__ import annotations

from troupe.launch._lost import RankLost
from troupe.train._attempts import Attempt, GroupPlace, attempts, reform
from troupe.train._checkpoint import Checkpoint
from troupe.train._config import (
    CheckpointConfig,
    FailureConfig,
    RunConfig,
    ScalingConfig,
)
from troupe.train._datasets import DataConfig
from troupe.train._equal import DivergedError, check_equal, digest
from troupe.train._errors import (
    ControllerError,
    GroupAborted,
    TrainingFailedError,
    WorkerGroupError,
)
from troupe.train._here import TrainContext, get_checkpoint, get_context, get_dataset_shard, report
from troupe.train._result import Result

__all__ = [
    "Attempt",
    "Checkpoint",
    "CheckpointConfig",
    "ControllerError",
    "DataConfig",
    "DivergedError",
    "FailureConfig",
    "GroupAborted",
    "GroupPlace",
    "RankLost",
    "Result",
    "RunConfig",
    "ScalingConfig",
    "TrainContext",
    "TrainingFailedError",
    "WorkerGroupError",
    "attempts",
    "check_equal",
    "digest",
    "get_checkpoint",
    "get_context",
    "get_dataset_shard",
    "reform",
    "report",
]
