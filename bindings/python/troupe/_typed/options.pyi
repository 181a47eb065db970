"""Options of tasks, actors and their methods by name and type, as checkers and editors read them.

Those of launches are in launch/_options/table.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from troupe._cluster.groups import PlacementGroup
from troupe._strategies import (
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)

Infeasible = Literal["refuse", "wait"]
SchedulingStrategy = (
    Literal["DEFAULT", "SPREAD"]
    | PlacementGroupSchedulingStrategy
    | NodeAffinitySchedulingStrategy
    | NodeLabelSchedulingStrategy
)

class _PlacedOptions(TypedDict, total=False):
    num_cpus: float | None
    num_gpus: float | None
    memory: float | None
    resources: Mapping[str, float] | None
    runtime_env: Mapping[str, Any] | None
    scheduling_strategy: SchedulingStrategy | None
    placement_group: PlacementGroup | Literal["default"] | None
    placement_group_bundle_index: int
    placement_group_capture_child_tasks: bool | None
    accelerator_type: str | None
    label_selector: Mapping[str, str] | None
    fallback_strategy: Sequence[Mapping[str, Any]] | None
    priority: int | None
    infeasible: Infeasible | None
    preimport: Iterable[str] | None
    name: str | None
    enable_task_events: bool | None

class TaskOptions(_PlacedOptions, total=False):
    """Options of a remote function, `num_returns` aside."""

    max_retries: int | None
    retry_exceptions: bool | Sequence[type[BaseException]] | None
    max_calls: int | None
    tensor_transport: str | None
    _generator_backpressure_num_objects: int | None

class ActorOptions(_PlacedOptions, total=False):
    """Options of an actor class."""

    namespace: str | None
    lifetime: Literal["detached", "non_detached"] | None
    max_concurrency: int | None
    max_restarts: int | None
    max_task_retries: int | None
    get_if_exists: bool | None
    max_pending_calls: int | None
    concurrency_groups: Mapping[str, int] | None
    allow_out_of_order_execution: bool | None
    exit_grace: float | None
    enable_tensor_transport: bool | None
    object_store_memory: float | None

class RemoteOptions(ActorOptions, TaskOptions, total=False):
    """Options of `@remote`, of a class or a function, `num_returns` aside."""

class MethodOptions(TypedDict, total=False):
    """Options of an actor's method, `num_returns` aside."""

    concurrency_group: str | None
    max_task_retries: int | None
    retry_exceptions: bool | Sequence[type[BaseException]] | None
    tensor_transport: str | None
    name: str | None
    enable_task_events: bool | None
    _generator_backpressure_num_objects: int | None
    _num_objects_per_yield: int | None
