"""How many ranks a job has, where, and with what: decided from the job, the nodes there are, and
what its names of compute mean. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troupe.azure import _schema
from troupe.azure._command import Command
from troupe.azure._distributions import Distribution, TensorFlowDistribution
from troupe.azure._instances import Kind

NONE, PYTORCH, TENSORFLOW, MPI, RAY, DEEPSPEED = (
    "",
    "pytorch",
    "tensorflow",
    "mpi",
    "ray",
    "deepspeed",
)


@dataclass(frozen=True)
class Plan:
    """A job's shape on this cluster: `ranks` over `nodes`, as evenly as possible.

    `gpus`, of each rank. `threads`: OMP_NUM_THREADS of each process. `processes`: of each rank: 1,
    but with MPI or DeepSpeed's launcher all of its node, and with Ray as many as it has CPUs.
    """

    kind: str
    nodes: int
    ranks: int
    gpus: int
    threads: int
    where: Mapping[str, Any]
    priority: int
    timeout: float | None
    processes: int = 1


def of(job: Command, nodes: Sequence[Mapping[str, float]], kind: Kind) -> Plan:
    """The plan. `nodes`: what those that are alive have. Raises ValueError."""
    distribution = job.distribution
    name = distribution.type if distribution is not None else NONE
    count = job.instance_count
    if getattr(distribution, "launcher", None):
        name = DEEPSPEED
    each = (
        getattr(distribution, "process_count_per_instance", None)
        or (_gpus(nodes, kind, count, 1) if name == DEEPSPEED else 0)
        or 1
    )
    ranks = count * each
    if isinstance(distribution, TensorFlowDistribution):
        ranks = sum(number for _, number in tasks(distribution, count))
        if ranks < count:
            raise ValueError(
                f"instance_count is {count}, and the distribution has {ranks} processes: one "
                "instance would have none"
            )
    on_one = -(-ranks // count)
    gpus = _gpus(nodes, kind, count, on_one)
    if name in (
        MPI,
        DEEPSPEED,
    ):  # a rank of the launch on each node, whose processes a launcher starts
        ranks, gpus = count, gpus * each
    threads = _threads(nodes, kind, on_one)
    processes = {MPI: each, DEEPSPEED: each, RAY: threads}.get(name, 1)
    return Plan(
        name,
        count,
        ranks,
        gpus,
        threads,
        kind.where(),
        _schema.PRIORITIES[job.queue_settings.priority or "medium"],
        job.limits.timeout,
        processes,
    )


def tasks_of(job: Command, plan: Plan) -> tuple[tuple[str, int], ...]:
    """Return the (type, count) of TensorFlow's processes; of other jobs none."""
    if job.distribution is None or plan.kind != TENSORFLOW:
        return ()
    return tuple(tasks(job.distribution, plan.nodes))


def tasks(distribution: Distribution, instances: int) -> list[tuple[str, int]]:
    """(type, how many) of TensorFlow's processes, in the order of their ranks."""
    counts = distribution.to_dict()
    return [
        ("chief", counts.get("chief_count") or 0),
        ("worker", counts.get("worker_count") or instances),
        ("ps", counts.get("parameter_server_count") or 0),
        ("evaluator", counts.get("evaluator_count") or 0),
    ]


def _gpus(nodes: Sequence[Mapping[str, float]], kind: Kind, count: int, each: int) -> int:
    """Return the number of GPUs of each rank.

    An instance is a node: one process has all its GPUs, and several share them equally.
    """
    if kind.gpus is not None:
        return -(-kind.gpus // each) if kind.gpus < each else kind.gpus // each
    there = sorted(
        (int(node.get("GPU", 0)) for node in nodes if node.get("GPU", 0) >= 1), reverse=True
    )
    if not there:
        return 0
    return max(1, there[min(count, len(there)) - 1]) if each == 1 else 1


def _threads(nodes: Sequence[Mapping[str, float]], kind: Kind, each: int) -> int:
    """A node's CPUs, shared equally by its processes."""
    cpus = (
        kind.cpus
        if kind.cpus is not None
        else int(min((node.get("CPU", 0) for node in nodes), default=0))
    )
    return max(1, cpus // each)
