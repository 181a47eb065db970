"""Names of Ray's libraries: train, data, tune."""

from __future__ import annotations

_TRAIN = dict.fromkeys(
    (
        "Checkpoint",
        "CheckpointConfig",
        "ControllerError",
        "DataConfig",
        "FailureConfig",
        "Result",
        "RunConfig",
        "ScalingConfig",
        "TrainContext",
        "TrainingFailedError",
        "WorkerGroupError",
        "get_checkpoint",
        "get_context",
        "get_dataset_shard",
        "report",
    ),
    "train",
)


_AIR = {
    **dict.fromkeys(("CheckpointConfig", "FailureConfig", "ScalingConfig"), "train"),
    "RunConfig": "tune",
}  # arguments of Tuner and of trainers


_TRAIN_TORCH = dict.fromkeys(
    (
        "TorchConfig",
        "TorchTrainer",
        "enable_reproducibility",
        "get_device",
        "get_devices",
        "prepare_data_loader",
        "prepare_model",
    ),
    "train.torch",
)


_DATA = dict.fromkeys(
    (
        "ActorPoolStrategy",
        "DataIterator",
        "Dataset",
        "FileShuffleConfig",
        "Schema",
        "TaskPoolStrategy",
        "from_arrow",
        "from_items",
        "from_numpy",
        "from_pandas",
        "range",
        "range_tensor",
        "read_csv",
        "read_images",
        "read_json",
        "read_parquet",
    ),
    "data",
)


_TUNE = {
    **dict.fromkeys(
        (
            "Callback",
            "CheckpointConfig",
            "ExperimentAnalysis",
            "FailureConfig",
            "PlacementGroupFactory",
            "ResultGrid",
            "RunConfig",
            "Trainable",
            "TuneConfig",
            "TuneError",
            "Tuner",
            "choice",
            "create_scheduler",
            "create_searcher",
            "get_context",
            "grid_search",
            "lograndint",
            "loguniform",
            "qlograndint",
            "qloguniform",
            "qrandint",
            "qrandn",
            "quniform",
            "randint",
            "randn",
            "register_trainable",
            "run",
            "sample_from",
            "uniform",
            "with_parameters",
            "with_resources",
        ),
        "tune",
    ),
    "Checkpoint": "train",
    "TuneContext": "tune",
    "Stopper": "tune",
    "get_checkpoint": "train",
    "report": "train",
}


_TUNE_LOGGERS = dict.fromkeys(
    ("CSVLoggerCallback", "JsonLoggerCallback", "TBXLoggerCallback"), "tune.logger"
)


_TUNE_SCHEDULERS = dict.fromkeys(
    (
        "ASHAScheduler",
        "AsyncHyperBandScheduler",
        "FIFOScheduler",
        "HyperBandForBOHB",
        "HyperBandScheduler",
        "MedianStoppingRule",
        "PB2",
        "PopulationBasedTraining",
        "PopulationBasedTrainingReplay",
        "ResourceChangingScheduler",
        "TrialScheduler",
        "create_scheduler",
    ),
    "tune.schedulers",
)


_TUNE_STOPPERS = dict.fromkeys(
    (
        "CombinedStopper",
        "ExperimentPlateauStopper",
        "FunctionStopper",
        "MaximumIterationStopper",
        "NoopStopper",
        "Stopper",
        "TimeoutStopper",
        "TrialPlateauStopper",
    ),
    "tune.stopper",
)
