"""What Ray has and Troupe has not, and what to use for it.

The table "What is not there" of docs/ray.md has the same rows.
"""

from __future__ import annotations

# Names, with all that is below them, and what to use instead: words that end "use ...".
ROWS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        (
            "ray.data.read_text",
            "ray.data.read_binary_files",
            "ray.data.read_numpy",
            "ray.data.read_tfrecords",
            "ray.data.read_webdataset",
            "ray.data.read_sql",
            "ray.data.read_avro",
            "ray.data.read_audio",
            "ray.data.read_videos",
            "ray.data.read_orc",
            "ray.data.read_lance",
            "ray.data.read_delta",
            "ray.data.read_iceberg",
            "ray.data.read_hudi",
            "ray.data.read_mongo",
            "ray.data.read_bigquery",
            "ray.data.read_clickhouse",
            "ray.data.read_snowflake",
            "ray.data.read_kafka",
            "ray.data.read_zarr",
            "ray.data.read_mcap",
            "ray.data.read_lerobot",
            "ray.data.read_databricks_tables",
            "ray.data.read_delta_sharing_tables",
            "ray.data.read_unity_catalog",
            "ray.data.read_datasource",
            "ray.data.Datasource",
            "ray.data.ReadTask",
        ),
        "ray.data.from_items() of the paths and a map() that reads one, or that format's own "
        "library, and Parquet files",
    ),
    (
        (
            "ray.data.from_arrow_refs",
            "ray.data.from_pandas_refs",
            "ray.data.from_numpy_refs",
            "ray.data.from_blocks",
            "ray.data.from_dask",
            "ray.data.from_daft",
            "ray.data.from_modin",
            "ray.data.from_mars",
            "ray.data.from_spark",
            "ray.data.from_tf",
            "ray.data.from_torch",
            "ray.data.from_huggingface",
        ),
        "ray.data.from_arrow(), from_pandas(), from_numpy() or from_items()",
    ),
    (
        (
            "ray.data.DataContext",
            "ray.data.DatasetContext",
            "ray.data.ExecutionOptions",
            "ray.data.ExecutionResources",
            "ray.data.context",
        ),
        "concurrency= of the function: what is under way keeps to a budget by itself",
    ),
    (
        (
            "ray.data.Preprocessor",
            "ray.data.preprocessor",
            "ray.data.preprocessors",
            "ray.data.aggregate",
            "ray.data.expressions",
            "ray.data.collate_fn",
            "ray.data.grouped_data",
        ),
        "functions for map_batches() and collate_fn=, and texts for filter(expr=)",
    ),
    (
        (
            "ray.data.Datasink",
            "ray.data.BlockBasedFileDatasink",
            "ray.data.RowBasedFileDatasink",
            "ray.data.SaveMode",
            "ray.data.SinkMode",
        ),
        "write_parquet(), whose mode= is a text",
    ),
    (
        (
            "ray.air.AcquiredResources",
            "ray.air.DataBatchType",
            "ray.air.ResourceRequest",
            "ray.air.constants",
            "ray.air.data_batch_type",
            "ray.air.execution",
            "ray.air.session",
            "ray.air.util",
        ),
        "ray.train: its report(), get_context() and configurations",
    ),
    (
        (
            "ray.util.sgd",
            "ray.util.horovod",
            "ray.train.horovod",
            "ray.train.BackendConfig",
            "ray.train.backend",
            "ray.train.base_trainer.BaseTrainer",
            "ray.train.base_trainer.format_datasets_for_repr",
            "ray.train.data_parallel_trainer",
            "ray.train.trainer",
            "ray.train.v2",
        ),
        "ray.train.torch.TorchTrainer, or @distributed of troupe.launch: they start the ranks and "
        "form their process group",
    ),
    (
        ("ray.train.lightning", "ray.train.huggingface"),
        "that library itself in the loop of ray.train.torch.TorchTrainer: it finds the process "
        "group, and ray.train.report() is called by a callback of "
        "one's own",
    ),
    (
        ("ray.train.lightgbm", "ray.train.tensorflow", "ray.train.xgboost", "ray.train.jax"),
        "that library itself, in tasks and actors",
    ),
    (
        ("ray.train.TRAIN_DATASET_KEY",),
        '"train", the name that ray.train.get_dataset_shard() takes where none is given',
    ),
    (
        (
            "ray.train.SyncConfig",
            "ray.train.CheckpointConsistencyMode",
            "ray.train.CheckpointUploadMode",
            "ray.train.ReportedCheckpoint",
            "ray.train.ReportedCheckpointStatus",
            "ray.train.get_all_reported_checkpoints",
        ),
        "ray.train.report(), which returns when the checkpoint is kept, and "
        "Result.best_checkpoints",
    ),
    (
        (
            "ray.train.LoggingConfig",
            "ray.train.MLflowLoggerCallback",
            "ray.train.UserCallback",
            "ray.train.ValidationConfig",
            "ray.train.ValidationFn",
            "ray.train.ValidationTaskConfig",
            "ray.train.session",
        ),
        "calls in the training loop itself",
    ),
    (
        ("ray.train.torch.TorchCheckpoint", "ray.train.torch.torch_checkpoint"),
        "torch.save and torch.load in the folder of a ray.train.Checkpoint",
    ),
    (
        (
            "ray.train.torch.accelerate",
            "ray.train.torch.backward",
            "ray.train.torch.prepare_optimizer",
            "ray.train.torch.xla",
            "ray.train.torch.train_loop_utils.TorchWorkerProfiler",
            "ray.train.torch.train_loop_utils.accelerate",
            "ray.train.torch.train_loop_utils.backward",
            "ray.train.torch.train_loop_utils.prepare_optimizer",
        ),
        "torch itself (torch.amp, loss.backward()), and ray.train.torch",
    ),
    (
        (
            "ray.train.NCCLHangError",
            "ray.train.PreemptionError",
            "ray.train.PreemptionInfo",
            "ray.train.get_preemption_info",
        ),
        "ray.train.WorkerGroupError: a lost node, a worker that ended, one whose collective timed "
        "out (TorchConfig(timeout_s=...)) are failures alike",
    ),
    (
        (
            "ray.train.torch.config.TorchConfigContextManager",
            "ray.train.collective",
            "ray.train.constants",
            "ray.train.error",
            "ray.train.examples",
            "ray.train.utils",
        ),
        "ray.train and torch.distributed: these are Ray's own helpers",
    ),
    (
        (
            "ray.tune.CLIReporter",
            "ray.tune.JupyterNotebookReporter",
            "ray.tune.ProgressReporter",
            "ray.tune.progress_reporter",
        ),
        "the rows that a sweep shows by itself, or a ray.tune.Callback",
    ),
    (
        ("ray.tune.SyncConfig", "ray.tune.syncer"),
        "RunConfig(storage_path=...), the one place of a sweep's files",
    ),
    (
        (
            "ray.tune.logger.aim",
            "ray.tune.logger.comet",
            "ray.tune.logger.wandb",
            "ray.air.integrations.wandb",
            "ray.air.integrations.comet",
            "ray.air.integrations.keras",
            "ray.tune.integration",
        ),
        "that library's own calls in the trial's function, or a ray.tune.logger.LoggerCallback of "
        "one's own",
    ),
    (
        ("ray.tune.Experiment", "ray.tune.experiment", "ray.tune.run_experiments"),
        "ray.tune.Tuner, once for each sweep",
    ),
    (("ray.tune.register_env",), "Ray itself: Troupe has no library for reinforcement learning"),
    (("ray.serve", "ray.llm"), "an actor behind a web server of one's own"),
    (("ray.rllib",), "Ray itself: Troupe has no library for reinforcement learning"),
    (("ray.workflow",), "tasks and actors; Ray has removed it too"),
    (
        (
            "ray.util.multiprocessing",
            "ray.util.joblib",
            "ray.experimental.multiprocessing",
            "ray.util.iter",
            "ray.util.iter_metrics",
            "ray.util.actor_group",
            "ray.experimental.shuffle",
        ),
        "ray.util.ActorPool",
    ),
    (
        (
            "ray.util.dask",
            "ray.util.spark",
            "ray.util.lightgbm",
            "ray.util.xgboost",
            "ray.experimental.tf_utils",
            "ray.experimental.gradio_utils",
        ),
        "that library itself, in tasks and actors",
    ),
    (
        ("ray.util.tpu", "ray.util.accelerators.tpu"),
        "labels and label_selector=: Troupe knows no TPUs",
    ),
    (("ray.experimental.job",), "ray.job_submission"),
    (("ray.job_config",), "namespace= and runtime_env= of ray.init()"),
    (
        (
            "ray.client",
            "ray.ClientBuilder",
            "ray.client_builder",
            "ray.util.client",
            "ray.util.client_connect",
            "ray.util.connect",
            "ray.util.disconnect",
        ),
        "ray.init('host:port', token_file=...)",
    ),
    (
        ("ray.autoscaler", "ray.cluster_utils.AutoscalingCluster"),
        "`troupe start --address` on a new node, by whatever makes nodes",
    ),
    (("ray.dashboard", "ray.widgets"), "`troupe status`, `troupe list` and ray.util.state"),
    (
        (
            "ray.scripts",
            "ray.util.check_open_ports",
            "ray.util.state.state_cli",
            "ray.experimental.state.state_cli",
        ),
        "the commands of `troupe`; under run-as-ray also `ray start`, `ray stop` and `ray status`",
    ),
    (
        (
            "ray.java_function",
            "ray.java_actor_class",
            "ray.cpp_function",
            "ray.Language",
            "ray.cross_language.cpp_function",
            "ray.cross_language.java_function",
            "ray.cross_language.java_actor_class",
        ),
        "Python, or an actor in C++: ray.cross_language.cpp_actor_class",
    ),
    (
        ("ray.SCRIPT_MODE", "ray.WORKER_MODE"),
        "ray.get_runtime_context().get_actor_id(), which a program has not",
    ),
    (
        (
            "ray.internal",
            "ray.core",
            "ray._private",
            "ray._raylet",
            "ray.actor.ActorClassInheritanceException",
        ),
        "the public API",
    ),
    (
        ("ray.util.pdb", "ray.util.rpdb", "ray.util.debugpy", "ray.util.ray_debugpy"),
        "`troupe stack`, which shows where every process is",
    ),
    (("ray.util.tracing", "ray.util.timer"), "ray.timeline() and ray.util.metrics"),
    (
        ("ray.util.inspect_serializability", "ray.util.check_serialize"),
        "ray.cloudpickle.dumps: what it raises is what a call would",
    ),
    (
        (
            "ray.util.common",
            "ray.util.get_node_instance_id",
            "ray.util.debug.Suspect",
            "ray.util.serialization_addons",
            "ray.util.serialization.StandaloneSerializationContext",
            "ray.cloudpickle.compat",
            "ray.cloudpickle.cloudpickle",
            "ray.cloudpickle.cloudpickle_fast",
            "ray.cloudpickle.py_pickle",
            "ray.util.annotations.AnnotationType",
            "ray.cloudpickle.dump_debug",
            "ray.cloudpickle.dumps_debug",
        ),
        "the public API: these are Ray's own helpers",
    ),
    (
        (
            "ray.util.placement_group.check_placement_group_index",
            "ray.util.placement_group.validate_placement_group",
        ),
        "ray.util.placement_group(), which checks",
    ),
    (
        (
            "ray.exceptions.ObjectRefStreamEndOfStreamError",
            "ray.exceptions.OufOfBandObjectRefSerializationException",
            "ray.exceptions.PlasmaObjectNotAvailable",
            "ray.exceptions.UserCodeException",
        ),
        "ray.exceptions.RayError: Troupe raises none of these",
    ),
    (
        (
            "ray.dag.context",
            "ray.dag.DAGContext",
            "ray.dag.DAGInputData",
            "ray.dag.input_node.DAGInputData",
            "ray.dag.DAGOperationFuture",
            "ray.dag.GPUFuture",
            "ray.dag.BIND_INDEX_KEY",
            "ray.dag.COLLECTIVE_OPERATION_KEY",
            "ray.dag.DAGNODE_TYPE_KEY",
            "ray.dag.IS_CLASS_METHOD_OUTPUT_KEY",
            "ray.dag.PARENT_CLASS_NODE_KEY",
            "ray.dag.PREV_CLASS_METHOD_CALL_KEY",
            "ray.dag.base",
            "ray.dag.collective_node",
            "ray.dag.CollectiveOutputNode",
            "ray.dag.constants",
            "ray.dag.dag_node_operation",
            "ray.dag.dag_operation_future",
            "ray.dag.experimental",
            "ray.dag.format_utils",
            "ray.dag.py_obj_scanner",
            "ray.dag.utils",
            "ray.dag.vis_utils",
            "ray.dag.plot",
            "ray.dag.compiled_dag_node",
            "ray.experimental.channel",
            "ray.experimental.compiled_dag_ref",
            "ray.experimental.CommunicatorMetadata",
        ),
        "ray.dag: what a compiled graph gives is an ObjectRef",
    ),
    (
        (
            "ray.experimental.rdt",
            "ray.experimental.RDTManager",
            "ray.experimental.TensorTransportManager",
            "ray.experimental.TensorTransportMetadata",
            "ray.experimental.register_tensor_transport",
            "ray.experimental.register_nixl_memory",
            "ray.experimental.register_nixl_memory_pool",
            "ray.experimental.deregister_nixl_memory",
            "ray.experimental.set_nixl_cuda_stream",
            "ray.experimental.set_target_device_for_ref",
            "ray.experimental.set_target_for_ref",
        ),
        "tensor_transport='auto' of a method, which finds the way; ray.util.collective between "
        "GPUs of several hosts",
    ),
    (
        (
            "ray.util.collective.allgather_multigpu",
            "ray.util.collective.allreduce_multigpu",
            "ray.util.collective.broadcast_multigpu",
            "ray.util.collective.recv_multigpu",
            "ray.util.collective.reduce_multigpu",
            "ray.util.collective.reducescatter_multigpu",
            "ray.util.collective.send_multigpu",
            "ray.util.collective.get_group_handle",
            "ray.util.collective.is_backend_available",
            "ray.util.collective.backend_registry.BackendRegistry",
            "ray.util.collective.collective",
            "ray.util.collective.const",
            "ray.util.collective.util",
            "ray.util.collective.collective_group",
            "ray.util.collective.types.cupy_available",
            "ray.util.collective.types.torch_available",
        ),
        "the operations of ray.util.collective, one process for each GPU",
    ),
    (
        (
            "ray.util.state.StateApiClient",
            "ray.util.state.api",
            "ray.util.state.common",
            "ray.util.state.exception",
            "ray.util.state.state_manager",
            "ray.util.state.util",
            "ray.experimental.state",
        ),
        "the functions of ray.util.state",
    ),
    (("ray.experimental.internal_kv",), "a named actor"),
    (
        ("ray.experimental.dynamic_resources", "ray.experimental.set_resource"),
        "--resources of `troupe start`; Ray has removed it too",
    ),
    (("ray.experimental.tqdm_ray.instance",), "print(): bars are lines of the output"),
    (("ray.experimental.util.types",), "ray.util.collective.types.ReduceOp"),
    (("ray.experimental.sandbox",), "containers of one's own"),
)
_INSTEAD = {name: instead for names, instead in ROWS for name in names}


def instead_of(name: str) -> str:
    """What to use for `name`, e.g. "ray.tune.Tuner", which Troupe has not; "": nothing is known."""
    parts = name.split(".")
    return next(
        (
            _INSTEAD[part]
            for end in range(len(parts), 0, -1)
            if (part := ".".join(parts[:end])) in _INSTEAD
        ),
        "",
    )


def without(name: str) -> str:
    """The end of an error's text about `name` of Ray's that Troupe has not."""
    instead = instead_of(name)
    return f"; for {name}, use {instead}" if instead else ""
