"""Ray's modules and names, each with its counterpart in Troupe. Those without one: `_missing`."""

from __future__ import annotations

from troupe.ray_compat._library_names import (
    _AIR,
    _DATA,
    _TRAIN,
    _TRAIN_TORCH,
    _TUNE,
    _TUNE_LOGGERS,
    _TUNE_SCHEDULERS,
    _TUNE_STOPPERS,
)

VERSION = "2.60.0"
"""Of the Ray whose API is followed."""

_EXCEPTIONS = (
    "ActorAlreadyExistsError",
    "ActorDiedError",
    "ActorHandleNotFoundError",
    "ActorPlacementGroupRemoved",
    "ActorUnavailableError",
    "ActorUnschedulableError",
    "AsyncioActorExit",
    "AuthenticationError",
    "CrossLanguageError",
    "GetTimeoutError",
    "LocalRayletDiedError",
    "NodeDiedError",
    "ObjectFetchTimedOutError",
    "ObjectFreedError",
    "ObjectLostError",
    "ObjectReconstructionFailedError",
    "ObjectStoreFullError",
    "OutOfDiskError",
    "OutOfMemoryError",
    "OwnerDiedError",
    "PendingCallsLimitExceeded",
    "RayActorError",
    "RayCgraphCapacityExceeded",
    "RayChannelError",
    "RayChannelTimeoutError",
    "RayDirectTransportError",
    "RayError",
    "RaySystemError",
    "RayTaskError",
    "ReferenceCountingAssertionError",
    "RpcError",
    "RuntimeEnvSetupError",
    "StreamingGeneratorReplayInconsistentError",
    "TaskCancelledError",
    "TaskPlacementGroupRemoved",
    "TaskUnschedulableError",
    "UnserializableException",
    "WorkerCrashedError",
)
_GROUPS = {
    name: "util.placement_group"
    for name in (
        "PlacementGroup",
        "get_current_placement_group",
        "get_placement_group",
        "placement_group",
        "placement_group_table",
        "remove_placement_group",
    )
}
_STRATEGIES = {
    name: "util.scheduling_strategies"
    for name in (
        "DoesNotExist",
        "Exists",
        "In",
        "NodeAffinitySchedulingStrategy",
        "NodeLabelSchedulingStrategy",
        "NotIn",
        "PlacementGroupSchedulingStrategy",
    )
}
_STATE = {
    name: "util.state"
    for name in (
        "get_actor",
        "get_job",
        "get_log",
        "get_node",
        "get_objects",
        "get_placement_group",
        "get_task",
        "get_worker",
        "list_actors",
        "list_cluster_events",
        "list_jobs",
        "list_logs",
        "list_nodes",
        "list_objects",
        "list_placement_groups",
        "list_runtime_envs",
        "list_tasks",
        "list_workers",
        "summarize_actors",
        "summarize_objects",
        "summarize_tasks",
    )
}

_PER_NODE = dict.fromkeys(("available_resources_per_node", "total_resources_per_node"), "state")
_COLLECTIVE = {
    name: "util.collective"
    for name in (
        "allgather",
        "allreduce",
        "barrier",
        "broadcast",
        "create_collective_group",
        "destroy_collective_group",
        "get_collective_group_size",
        "get_rank",
        "gloo_available",
        "init_collective_group",
        "is_group_initialized",
        "nccl_available",
        "recv",
        "reduce",
        "reducescatter",
        "register_collective_backend",
        "send",
        "synchronize",
    )
}
_COLLECTIVE_TYPES = {
    name: "util._collective_types"
    for name in (
        "AllGatherOptions",
        "AllReduceOptions",
        "Backend",
        "BarrierOptions",
        "BroadcastOptions",
        "RecvOptions",
        "ReduceOp",
        "ReduceOptions",
        "ReduceScatterOptions",
        "SendOptions",
    )
}
_GROUPS_OF_ACTORS = {
    name: "experimental.collective"
    for name in (
        "allgather",
        "allreduce",
        "create_collective_group",
        "destroy_all_collective_groups",
        "destroy_collective_group",
        "get_collective_groups",
        "reducescatter",
    )
}

_ACCELERATORS = dict.fromkeys(
    (
        "NVIDIA_TESLA_V100",
        "NVIDIA_TESLA_P100",
        "NVIDIA_TESLA_T4",
        "NVIDIA_TESLA_P4",
        "NVIDIA_TESLA_K80",
        "NVIDIA_TESLA_A10G",
        "NVIDIA_L4",
        "NVIDIA_L40S",
        "NVIDIA_A100",
        "NVIDIA_H100",
        "NVIDIA_H200",
        "NVIDIA_H20",
        "NVIDIA_B200",
        "NVIDIA_B300",
        "NVIDIA_GB200",
        "NVIDIA_GB300",
        "NVIDIA_RTX_PRO_6000",
        "INTEL_MAX_1550",
        "INTEL_MAX_1100",
        "INTEL_GAUDI",
        "AMD_INSTINCT_MI100",
        "AMD_INSTINCT_MI250x",
        "AMD_INSTINCT_MI250",
        "AMD_INSTINCT_MI210",
        "AMD_INSTINCT_MI300A",
        "AMD_INSTINCT_MI300x",
        "AMD_INSTINCT_MI300x_HF",
        "AMD_INSTINCT_MI308x",
        "AMD_INSTINCT_MI325x",
        "AMD_INSTINCT_MI350x",
        "AMD_INSTINCT_MI355x",
        "AMD_RADEON_R9_200_HD_7900",
        "AMD_RADEON_HD_7900",
        "AWS_NEURON_CORE",
        "GOOGLE_TPU_V2",
        "GOOGLE_TPU_V3",
        "GOOGLE_TPU_V4",
        "GOOGLE_TPU_V5P",
        "GOOGLE_TPU_V5LITEPOD",
        "GOOGLE_TPU_V6E",
        "GOOGLE_TPU_V7X",
        "HUAWEI_NPU_910B",
        "HUAWEI_NPU_910B4",
        "METAX_C500",
        "METAX_C550",
        "FURIOSA_RNGD",
        "APPLE_M1",
        "APPLE_M1_PRO",
        "APPLE_M1_MAX",
        "APPLE_M1_ULTRA",
        "APPLE_M2",
        "APPLE_M2_PRO",
        "APPLE_M2_MAX",
        "APPLE_M2_ULTRA",
        "APPLE_M3",
        "APPLE_M3_PRO",
        "APPLE_M3_MAX",
        "APPLE_SILICON",
        "NVIDIA_A100_40G",
        "NVIDIA_A100_80G",
        "MOBILINT_ARIES",
        "MOBILINT_REGULUS",
        "NVIDIA_TESLA_A100",
    ),
    "util.accelerators",
)
_IDS = dict.fromkeys(
    (
        "ActorClassID",
        "ActorID",
        "FunctionID",
        "JobID",
        "NodeID",
        "PlacementGroupID",
        "TaskID",
        "UniqueID",
        "WorkerID",
    ),
    "_base.identity:HexID",
)
_LOCATIONS = dict.fromkeys(
    ("get_local_object_locations", "get_object_locations"), "experimental.locations"
)
_HELPERS = dict.fromkeys(("as_completed", "map_unordered"), "util.helpers")
_QUEUE = dict.fromkeys(("Empty", "Full", "Queue"), "util.queue")
_RUNTIME_ENV = dict.fromkeys(("RuntimeEnv", "RuntimeEnvConfig"), "runtime_env")
_DAG = dict.fromkeys(
    (
        "ClassMethodNode",
        "ClassNode",
        "DAGNode",
        "FunctionNode",
        "InputAttributeNode",
        "InputNode",
        "MultiOutputNode",
    ),
    "dag",
)

_JOBS = dict.fromkeys(
    ("DriverInfo", "JobDetails", "JobInfo", "JobStatus", "JobSubmissionClient", "JobType"),
    "job_submission",
)


# Ray's module: its names, each with the module of Troupe that has it ("=name": another's;
# "module:name": by that name).
MODULES: dict[str, dict[str, str]] = {
    "ray": {
        **dict.fromkeys(
            (
                "DynamicObjectRefGenerator",
                "ObjectRef",
                "ObjectRefGenerator",
                "available_resources",
                "cancel",
                "cluster_resources",
                "get",
                "get_actor",
                "get_gpu_ids",
                "get_runtime_context",
                "init",
                "is_initialized",
                "kill",
                "method",
                "nodes",
                "put",
                "remote",
                "shutdown",
                "timeline",
                "wait",
            ),
            "",
        ),
        "LoggingConfig": "ray_compat._logging",
        "ObjectID": "_base.calls:Ref",
        **_IDS,
    },
    "ray._private": {},
    "ray._private.ray_constants": {"RESOURCE_CONSTRAINT_PREFIX": "_cluster.selectors:TYPE_PREFIX"},
    "ray._private.services": {"get_node_ip_address": "util"},
    "ray._private.state": _PER_NODE,
    "ray._raylet": {
        **dict.fromkeys(("DynamicObjectRefGenerator", "ObjectRef", "ObjectRefGenerator"), ""),
        **_IDS,
    },
    "ray.actor": {
        **dict.fromkeys(
            ("ActorClass", "ActorHandle", "ActorMethod", "ActorProxy", "exit_actor"), "actor"
        ),
        "method": "",
    },
    "ray.air": {**_AIR, "Result": "train"},
    "ray.air.config": _AIR,
    "ray.air.result": {"Result": "train"},
    "ray.air.integrations": {},
    "ray.air.integrations.mlflow": {
        "MLflowLoggerCallback": "tune.logger",
        "setup_mlflow": "tune.logger.mlflow_setup",
    },
    "ray.cloudpickle": dict.fromkeys(
        (
            "CloudPickler",
            "dump",
            "dumps",
            "load",
            "loads",
            "register_pickle_by_value",
            "unregister_pickle_by_value",
        ),
        "=cloudpickle",
    ),
    "ray.cluster_utils": {"Cluster": "cluster_utils"},
    "ray.cross_language": {"cpp_actor_class": "cross_language"},
    "ray.dag": _DAG,
    "ray.dag.class_node": {"ClassMethodNode": "dag", "ClassNode": "dag"},
    "ray.dag.compiled_dag_node": {"CompiledDAG": "dag"},
    "ray.dag.dag_node": {"DAGNode": "dag"},
    "ray.dag.function_node": {"FunctionNode": "dag"},
    "ray.dag.input_node": {"InputAttributeNode": "dag", "InputNode": "dag"},
    "ray.dag.output_node": {"MultiOutputNode": "dag"},
    "ray.experimental": {**_LOCATIONS, "wait_tensor_freed": "experimental.tensors"},
    "ray.experimental.collective": _GROUPS_OF_ACTORS,
    "ray.experimental.collective.communicator": {"CommunicatorHandle": "experimental.collective"},
    "ray.experimental.locations": _LOCATIONS,
    "ray.experimental.queue": _QUEUE,
    "ray.experimental.tqdm_ray": dict.fromkeys(("safe_print", "tqdm"), "experimental.tqdm_ray"),
    "ray.experimental.util": {},
    "ray.experimental.util.types": {"ReduceOp": "util._collective_types"},
    "ray.data": _DATA,
    "ray.job_submission": _JOBS,
    "ray.data.dataset": dict.fromkeys(("Dataset", "MaterializedDataset", "Schema"), "data"),
    "ray.data.datasource": dict.fromkeys(("FileShuffleConfig", "Partitioning"), "data"),
    "ray.data.datasource.partitioning": {"Partitioning": "data"},
    "ray.data.iterator": {"DataIterator": "data"},
    "ray.exceptions": dict.fromkeys(_EXCEPTIONS, "exceptions"),
    "ray.remote_function": {"RemoteFunction": "_tasks.functions"},
    "ray.runtime_context": {
        "RuntimeContext": "_api.runtime_context",
        "get_runtime_context": "_api.runtime_context",
    },
    "ray.runtime_env": _RUNTIME_ENV,
    "ray.runtime_env.runtime_env": _RUNTIME_ENV,
    "ray.state": _PER_NODE,
    "ray.train": _TRAIN,
    "ray.train.base_trainer": {"TrainingFailedError": "train"},
    "ray.train.context": {"TrainContext": "train", "get_context": "train"},
    "ray.train.torch": _TRAIN_TORCH,
    "ray.train.torch.config": {"TorchConfig": "train.torch"},
    "ray.train.torch.torch_trainer": {"TorchTrainer": "train.torch"},
    "ray.train.torch.train_loop_utils": {
        name: home for name, home in _TRAIN_TORCH.items() if not name.startswith("Torch")
    },
    "ray.tune": _TUNE,
    "ray.tune.callback": {"Callback": "tune"},
    "ray.tune.logger": {
        **_TUNE_LOGGERS,
        "LoggerCallback": "tune.logger",
        "pretty_print": "tune.logger",
    },
    "ray.tune.logger.csv": {"CSVLoggerCallback": "tune.logger"},
    "ray.tune.logger.json": {"JsonLoggerCallback": "tune.logger"},
    "ray.tune.logger.logger": {"LoggerCallback": "tune.logger", "pretty_print": "tune.logger"},
    "ray.tune.logger.mlflow": {"MLflowLoggerCallback": "tune.logger"},
    "ray.tune.logger.tensorboardx": {"TBXLoggerCallback": "tune.logger"},
    "ray.tune.result_grid": {"ResultGrid": "tune"},
    "ray.tune.schedulers": _TUNE_SCHEDULERS,
    "ray.tune.schedulers.async_hyperband": dict.fromkeys(
        ("ASHAScheduler", "AsyncHyperBandScheduler"), "tune.schedulers"
    ),
    "ray.tune.schedulers.pbt": {
        "PopulationBasedTraining": "tune.schedulers",
        "PopulationBasedTrainingReplay": "tune.schedulers",
    },
    "ray.tune.search": dict.fromkeys(
        ("BasicVariantGenerator", "ConcurrencyLimiter", "Repeater", "Searcher", "create_searcher"),
        "tune.search",
    ),
    "ray.tune.search.basic_variant": {"BasicVariantGenerator": "tune.search"},
    "ray.tune.search.optuna": {"OptunaSearch": "tune.search.optuna"},
    "ray.tune.stopper": _TUNE_STOPPERS,
    "ray.tune.trainable": {"Trainable": "tune"},
    "ray.tune.tuner": {"Tuner": "tune"},
    "ray.types": {"ObjectRef": ""},
    "ray.util": {
        **_GROUPS,
        **_HELPERS,
        **dict.fromkeys(
            ("disable_log_once_globally", "enable_periodic_logging", "log_once"), "util.debug"
        ),
        "ActorPool": "util",
        "get_node_ip_address": "util",
        "list_named_actors": "util",
        "register_serializer": "util",
        "deregister_serializer": "util",
    },
    "ray.util.annotations": dict.fromkeys(
        ("Deprecated", "DeveloperAPI", "PublicAPI", "RayDeprecationWarning"), "util.annotations"
    ),
    "ray.util.debug": dict.fromkeys(
        ("disable_log_once_globally", "enable_periodic_logging", "log_once", "reset_log_once"),
        "util.debug",
    ),
    "ray.util.helpers": _HELPERS,
    "ray.util.accelerators": _ACCELERATORS,
    "ray.util.accelerators.accelerators": _ACCELERATORS,
    "ray.util.actor_pool": {"ActorPool": "util.actor_pool"},
    "ray.util.collective": _COLLECTIVE,
    "ray.util.collective.collective": _COLLECTIVE,
    "ray.util.collective.backend_registry": {"register_collective_backend": "util.collective"},
    "ray.util.collective.collective_group": {},
    "ray.util.collective.collective_group.base_collective_group": {"BaseGroup": "util.collective"},
    "ray.util.collective.types": _COLLECTIVE_TYPES,
    "ray.util.metrics": dict.fromkeys(("Counter", "Gauge", "Histogram", "Metric"), "util.metrics"),
    "ray.util.placement_group": _GROUPS,
    "ray.util.queue": _QUEUE,
    "ray.util.scheduling_strategies": _STRATEGIES,
    "ray.util.serialization": dict.fromkeys(
        ("deregister_serializer", "register_serializer"), "util"
    ),
    "ray.util.state": _STATE,
    "ray.util.state.api": _STATE,
}
