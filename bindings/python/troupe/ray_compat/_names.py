"""Which of Ray's modules and names are what of Troupe, and what to use for those that are nothing."""
from __future__ import annotations

VERSION = "2.60.0"
"""Of the Ray whose API is followed."""

_EXCEPTIONS = (
    "ActorAlreadyExistsError", "ActorDiedError", "ActorHandleNotFoundError", "ActorPlacementGroupRemoved",
    "ActorUnavailableError", "ActorUnschedulableError", "AsyncioActorExit", "AuthenticationError", "CrossLanguageError",
    "GetTimeoutError", "LocalRayletDiedError", "NodeDiedError", "ObjectFetchTimedOutError", "ObjectFreedError",
    "ObjectLostError", "ObjectReconstructionFailedError", "ObjectStoreFullError", "OutOfDiskError", "OutOfMemoryError",
    "OwnerDiedError", "PendingCallsLimitExceeded", "RayActorError", "RayCgraphCapacityExceeded", "RayChannelError",
    "RayChannelTimeoutError", "RayDirectTransportError", "RayError", "RaySystemError", "RayTaskError",
    "ReferenceCountingAssertionError", "RpcError", "RuntimeEnvSetupError",
    "StreamingGeneratorReplayInconsistentError", "TaskCancelledError", "TaskPlacementGroupRemoved",
    "TaskUnschedulableError", "UnserializableException", "WorkerCrashedError")
_GROUPS = {name: "util.placement_group" for name in (
    "PlacementGroup", "get_current_placement_group", "get_placement_group", "placement_group", "placement_group_table",
    "remove_placement_group")}
_STRATEGIES = {name: "util.scheduling_strategies" for name in (
    "DoesNotExist", "Exists", "In", "NodeAffinitySchedulingStrategy", "NodeLabelSchedulingStrategy", "NotIn",
    "PlacementGroupSchedulingStrategy")}
_STATE = {name: "util.state" for name in (
    "get_actor", "get_job", "get_log", "get_node", "get_objects", "get_placement_group", "get_task", "get_worker", "list_actors",
    "list_cluster_events", "list_jobs", "list_logs", "list_nodes", "list_objects", "list_placement_groups", "list_runtime_envs",
    "list_tasks", "list_workers", "summarize_actors", "summarize_objects", "summarize_tasks")}

_PER_NODE = dict.fromkeys(("available_resources_per_node", "total_resources_per_node"), "state")
_COLLECTIVE = {name: "util.collective" for name in (
    "allgather", "allreduce", "barrier", "broadcast", "create_collective_group", "destroy_collective_group",
    "get_collective_group_size", "get_rank", "gloo_available", "init_collective_group", "is_group_initialized",
    "nccl_available", "recv", "reduce", "reducescatter", "register_collective_backend", "send", "synchronize")}
_COLLECTIVE_TYPES = {name: "util._collective_types" for name in (
    "AllGatherOptions", "AllReduceOptions", "Backend", "BarrierOptions", "BroadcastOptions", "RecvOptions", "ReduceOp",
    "ReduceOptions", "ReduceScatterOptions", "SendOptions")}
_GROUPS_OF_ACTORS = {name: "experimental.collective" for name in (
    "allgather", "allreduce", "create_collective_group", "destroy_all_collective_groups", "destroy_collective_group",
    "get_collective_groups", "reducescatter")}

_DAG = dict.fromkeys(("ClassMethodNode", "ClassNode", "DAGNode", "FunctionNode", "InputAttributeNode", "InputNode",
                      "MultiOutputNode"), "dag")

# Ray's module: its names, each with the module of Troupe that has it ("=name": another's).
MODULES: dict[str, dict[str, str]] = {
    "ray": {**dict.fromkeys((
        "DynamicObjectRefGenerator", "ObjectRef", "ObjectRefGenerator", "available_resources", "cancel",
        "cluster_resources", "get", "get_actor", "get_gpu_ids", "get_runtime_context", "init", "is_initialized", "kill",
        "method", "nodes", "put", "remote", "shutdown", "wait"), "")},
    "ray._private": {},
    "ray._private.services": {"get_node_ip_address": "util"},
    "ray._private.state": _PER_NODE,
    "ray._raylet": dict.fromkeys(("DynamicObjectRefGenerator", "ObjectRef", "ObjectRefGenerator"), ""),
    "ray.actor": dict.fromkeys(("ActorClass", "ActorHandle", "ActorMethod", "ActorProxy", "exit_actor"), "actor"),
    "ray.cloudpickle": dict.fromkeys(("CloudPickler", "dump", "dumps", "load", "loads", "register_pickle_by_value",
                                      "unregister_pickle_by_value"), "=cloudpickle"),
    "ray.cluster_utils": {"Cluster": "cluster_utils"},
    "ray.dag": _DAG,
    "ray.dag.class_node": {"ClassMethodNode": "dag", "ClassNode": "dag"},
    "ray.dag.compiled_dag_node": {"CompiledDAG": "dag"},
    "ray.dag.dag_node": {"DAGNode": "dag"},
    "ray.dag.function_node": {"FunctionNode": "dag"},
    "ray.dag.input_node": {"InputAttributeNode": "dag", "InputNode": "dag"},
    "ray.dag.output_node": {"MultiOutputNode": "dag"},
    "ray.experimental": {},
    "ray.experimental.collective": _GROUPS_OF_ACTORS,
    "ray.experimental.collective.communicator": {"CommunicatorHandle": "experimental.collective"},
    "ray.experimental.util": {},
    "ray.experimental.util.types": {"ReduceOp": "util._collective_types"},
    "ray.exceptions": dict.fromkeys(_EXCEPTIONS, "exceptions"),
    "ray.remote_function": {"RemoteFunction": "_tasks"},
    "ray.runtime_context": {"RuntimeContext": "_runtime_context", "get_runtime_context": "_runtime_context"},
    "ray.runtime_env": {"RuntimeEnv": "runtime_env"},
    "ray.state": _PER_NODE,
    "ray.types": {"ObjectRef": ""},
    "ray.util": {**_GROUPS, "ActorPool": "util", "get_node_ip_address": "util", "list_named_actors": "util",
                 "register_serializer": "util", "deregister_serializer": "util"},
    "ray.util.accelerators": dict.fromkeys((
        "NVIDIA_TESLA_V100", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_T4", "NVIDIA_TESLA_P4", "NVIDIA_TESLA_K80", "NVIDIA_TESLA_A10G",
        "NVIDIA_L4", "NVIDIA_L40S", "NVIDIA_A100", "NVIDIA_H100", "NVIDIA_H200", "NVIDIA_H20", "NVIDIA_B200", "NVIDIA_B300",
        "NVIDIA_GH200"), "util.accelerators"),
    "ray.util.actor_pool": {"ActorPool": "util.actor_pool"},
    "ray.util.collective": _COLLECTIVE,
    "ray.util.collective.backend_registry": {"register_collective_backend": "util.collective"},
    "ray.util.collective.collective_group": {},
    "ray.util.collective.collective_group.base_collective_group": {"BaseGroup": "util.collective"},
    "ray.util.collective.types": _COLLECTIVE_TYPES,
    "ray.util.placement_group": _GROUPS,
    "ray.util.queue": {"Empty": "util.queue", "Full": "util.queue", "Queue": "util.queue"},
    "ray.util.scheduling_strategies": _STRATEGIES,
    "ray.util.serialization": dict.fromkeys(("deregister_serializer", "register_serializer"), "util"),
    "ray.util.state": _STATE,
    "ray.util.state.api": _STATE,
}

# What to use for what is not there.
INSTEAD = {
    "ray.data": "a torch DataLoader, or tasks and actors of one's own",
    "ray.train": "@distributed of troupe.launch: it starts the ranks and forms their process group",
    "ray.tune": "actors for the trials and troupe.util.ActorPool for the sweep",
    "ray.serve": "an actor behind a web server of one's own",
    "ray.rllib": "Ray itself: Troupe has no library for reinforcement learning",
    "ray.experimental": "the stable API",
    "ray.experimental.state": "ray.util.state",
    "ray.experimental.tqdm_ray": "tqdm itself: what actors and tasks print is shown by their program",
    "ray.job_config": "namespace= and runtime_env= of ray.init()",
    "ray._private": "the public API", "ray._raylet": "the public API",
    **dict.fromkeys(("ray.experimental.channel", "ray.experimental.compiled_dag_ref"),
                    "ray.dag: what a compiled graph gives is an ObjectRef"),
    "ray.ObjectID": "ray.ObjectRef",
    "ray.job_submission": "`troupe run`, or submit() of a @distributed function",
    "ray.timeline": "`troupe stack` and the logs",
    "ray.client": "ray.init('host:port', token_file=...)",
    "ray.java_function": "Python", "ray.cpp_function": "Python",
    "ray.util.multiprocessing": "ray.util.ActorPool",
    "ray.util.joblib": "ray.util.ActorPool",
    "ray.util.inspect_serializability": "ray.cloudpickle.dumps: what it raises is what a call would",
    "ray.util.metrics": "prometheus_client in the actor",
    **dict.fromkeys(("ray.util.pdb", "ray.util.rpdb"), "`troupe stack`, which shows where every process is"),
}


def instead_of(name: str) -> str:
    """What to use for `name`, e.g. "ray.tune.Tuner", which Troupe has not; "": nothing is known."""
    parts = name.split(".")
    return next((INSTEAD[part] for end in range(len(parts), 0, -1) if (part := ".".join(parts[:end])) in INSTEAD), "")


def without(name: str) -> str:
    """The end of an error's text about `name` of Ray's that Troupe has not."""
    instead = instead_of(name)
    return f"; for {name}, use {instead}" if instead else ""
