"""Values of the enums of the wire schema, as messages have them in Python.

Generated from runtime/wire/schema by `generate.py SCHEMA_DIR --names FILE`; do not edit.
"""

from typing import Final


class Role:
    """Values of the schema's enum Role."""

    NONE: Final = "none"
    WORKER: Final = "worker"
    CLIENT: Final = "client"
    OBSERVER: Final = "observer"
    PROCESS: Final = "process"
    HEAD: Final = "head"


class Strategy:
    """Values of the schema's enum Strategy."""

    PACK: Final = "pack"
    SPREAD: Final = "spread"
    STRICT_PACK: Final = "strict_pack"
    STRICT_SPREAD: Final = "strict_spread"


class Outcome:
    """Values of the schema's enum Outcome."""

    NONE: Final = "none"
    SUCCEEDED: Final = "succeeded"
    FAILED: Final = "failed"
    CANCELLED: Final = "cancelled"


class GroupWait:
    """Values of the schema's enum GroupWait."""

    COLLECTIVE: Final = "collective"
    RECEIVE: Final = "receive"
    RECEIVE_ANY: Final = "receive_any"
    SEND: Final = "send"
    MAKING: Final = "making"


class RankDeath:
    """Values of the schema's enum RankDeath."""

    FAIL: Final = "fail"
    SHRINK: Final = "shrink"
    REPLACE: Final = "replace"


class LaunchMode:
    """Values of the schema's enum LaunchMode."""

    DISTRIBUTED: Final = "distributed"
    DRIVER: Final = "driver"
    COMMAND: Final = "command"


class LaunchState:
    """Values of the schema's enum LaunchState."""

    QUEUED: Final = "queued"
    RESERVING: Final = "reserving"
    STARTING: Final = "starting"
    RUNNING: Final = "running"
    TERMINAL: Final = "terminal"
    STOPPING: Final = "stopping"


class ActorState:
    """Values of the schema's enum ActorState."""

    PENDING: Final = "pending"
    STARTING: Final = "starting"
    ALIVE: Final = "alive"
    DEAD: Final = "dead"
    UNAVAILABLE: Final = "unavailable"


class GroupState:
    """Values of the schema's enum GroupState."""

    PENDING: Final = "pending"
    CREATED: Final = "created"
    REMOVED: Final = "removed"
    INFEASIBLE: Final = "infeasible"
    RESCHEDULING: Final = "rescheduling"


class NodeState:
    """Values of the schema's enum NodeState."""

    ALIVE: Final = "alive"
    SUSPECT: Final = "suspect"
    DEAD: Final = "dead"
    DRAINING: Final = "draining"


class CapKind:
    """Values of the schema's enum CapKind."""

    GPUS: Final = "gpus"
    CPUS: Final = "cpus"
    RUNNING: Final = "running"
    QUEUED: Final = "queued"


class MeasureKind:
    """Values of the schema's enum MeasureKind."""

    CPU_RATIO: Final = "cpu_ratio"
    CPU_COUNT: Final = "cpu_count"
    MEMORY_USED_BYTES: Final = "memory_used_bytes"
    MEMORY_FREE_BYTES: Final = "memory_free_bytes"
    DISK_USED_BYTES: Final = "disk_used_bytes"
    DISK_FREE_BYTES: Final = "disk_free_bytes"
    NETWORK_RECEIVED_BYTES: Final = "network_received_bytes"
    NETWORK_SENT_BYTES: Final = "network_sent_bytes"
    PRESSURE_RATIO: Final = "pressure_ratio"
    STORE_USED_BYTES: Final = "store_used_bytes"
    STORE_FREE_BYTES: Final = "store_free_bytes"
    COMPONENT_CPU_SECONDS: Final = "component_cpu_seconds"
    COMPONENT_MEMORY_BYTES: Final = "component_memory_bytes"
    GPU_UTILIZATION_RATIO: Final = "gpu_utilization_ratio"
    GPU_MEMORY_USED_BYTES: Final = "gpu_memory_used_bytes"
    GPU_MEMORY_TOTAL_BYTES: Final = "gpu_memory_total_bytes"
    GPU_POWER_WATTS: Final = "gpu_power_watts"
    GPU_ENERGY_JOULES: Final = "gpu_energy_joules"
    GPU_TEMPERATURE_CELSIUS: Final = "gpu_temperature_celsius"
    GPU_SM_CLOCK_HERTZ: Final = "gpu_sm_clock_hertz"
    GPU_PCIE_REPLAYS: Final = "gpu_pcie_replays"
    GPU_XID_ERRORS: Final = "gpu_xid_errors"
    GPU_LAST_XID: Final = "gpu_last_xid"


class FailureKind:
    """Values of the schema's enum FailureKind."""

    UNKNOWN: Final = "unknown"
    RAISED: Final = "raised"
    CALLED_EXIT: Final = "called_exit"
    SETUP_FAILED: Final = "setup_failed"
    NOT_STARTED: Final = "not_started"
    EXITED: Final = "exited"
    KILLED: Final = "killed"
    OUT_OF_MEMORY: Final = "out_of_memory"
    HUNG: Final = "hung"
    RETURNED_EARLY: Final = "returned_early"
    NO_VALUE: Final = "no_value"
    VALUE_NOT_KEPT: Final = "value_not_kept"
    MISSED_REFORM: Final = "missed_reform"
    DRIVER_SILENT: Final = "driver_silent"
    NODE_LOST: Final = "node_lost"
    NODE_UNREACHABLE: Final = "node_unreachable"
    MISSING: Final = "missing"
    RESERVATION_LOST: Final = "reservation_lost"
    PREEMPTED: Final = "preempted"
    GROUP_REMOVED: Final = "group_removed"
    KILL_REQUESTED: Final = "kill_requested"
    UNREFERENCED: Final = "unreferenced"
    OWNER_ENDED: Final = "owner_ended"
    LAUNCH_ENDED: Final = "launch_ended"
    STOPPED: Final = "stopped"
    TIMED_OUT: Final = "timed_out"
    PREDECESSOR_FAILED: Final = "predecessor_failed"
    FENCED: Final = "fenced"
    NODE_LEAVES: Final = "node_leaves"


class Severity:
    """Values of the schema's enum Severity."""

    INFO: Final = "info"
    WARNING: Final = "warning"
    ERROR: Final = "error"


class EventSource:
    """Values of the schema's enum EventSource."""

    HEAD: Final = "head"
    NODE: Final = "node"
    ACTOR: Final = "actor"
    LAUNCH: Final = "launch"


class MetricKind:
    """Values of the schema's enum MetricKind."""

    COUNTER: Final = "counter"
    GAUGE: Final = "gauge"
    HISTOGRAM: Final = "histogram"


class ProfileFormat:
    """Values of the schema's enum ProfileFormat."""

    FLAMEGRAPH: Final = "flamegraph"
    SPEEDSCOPE: Final = "speedscope"
    COLLAPSED: Final = "collapsed"


class ProcessKind:
    """Values of the schema's enum ProcessKind."""

    RANK: Final = "rank"
    ACTOR: Final = "actor"
    STORE: Final = "store"
    PROBE: Final = "probe"
