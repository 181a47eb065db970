"""Workloads on a cluster: started, listed, found again.

A run is a detached launch of one shell per node.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from troupe import exceptions
from troupe._cluster import resources, selectors, status_lines, variables, view, workers
from troupe._code import travelled, yaml_files
from troupe._code.program import COMMAND
from troupe._tracking import rule, turns
from troupe._tracking.jobs import job_store
from troupe.air import _accelerators, _code, _node, _secrets
from troupe.air._workload import Workload
from troupe.launch import _function, _program, _vendor_place
from troupe.launch._handle import LaunchHandle

DOOR = "air"
POOL = "gpu_pool"
FILTERS = ("accelerator_type", "experiment", "num_accelerators", "user")
_STATUS = {
    "queued": "PENDING",
    "reserving": "PENDING",
    "starting": "PENDING",
    "running": "RUNNING",
    "stopping": "CANCELING",
}
_ENDED = {"succeeded": "SUCCEEDED", "failed": "FAILED", "cancelled": "CANCELED"}
_RUN_ON_NODES = (
    "what this workload logs by MLflow is run {run} in {store} on {host}, kept there for a week; "
    "`mlflow ui --backend-store-uri {store}` shows it there"
)
ACTIVE = ("PENDING", "RUNNING", "CANCELING")


def start(
    workload: Workload, session: Any, *, detach: bool = True, quiet: bool = False
) -> LaunchHandle:
    """Submit a workload and return its handle at once.

    Raises:
        PlacementError: if the cluster has no nodes of that accelerator type, or not as many.
        FileNotFoundError, PermissionError, ValueError: for a secret, or for code that git does not
        have.
        TooLargeError: if the code is over the limit of what travels.
        ConnectionError: if the cluster does not answer.
    """
    with_gpus = _with_gpus(workload, session, quiet=quiet)
    if workload.unused:
        status_lines.say(
            f"troupe: without an effect here: {'; '.join(workload.unused)}", quiet=quiet
        )
    node = _node.NodeStart(
        workload.command,
        workload.accelerators,
        workload.nodes,
        code=None if workload.code is None else _code.package(workload.code, session),
        hyperparameters=yaml_files.text_of(dict(workload.hyperparameters))
        if workload.hyperparameters
        else "",
        run=_run_on_nodes(workload) if detach else None,
    )
    runtime_env: dict[str, Any] = {
        "env_vars": {
            "MLFLOW_EXPERIMENT_NAME": workload.experiment,
            **workload.variables,
            **_secrets.values(workload.secrets),
            **({} if with_gpus else _vendor_place.variables_of_ranks()),
        }
    }
    if workload.requirements:
        runtime_env["pip"] = list(workload.requirements)
    asked: dict[str, Any] = {
        "gpus" if with_gpus else "processes": workload.nodes,
        "name": workload.run_name,
        "max_attempts": workload.max_retries + 1,
        "timeout": workload.timeout_s,
        "priority": workload.priority,
        "runtime_env": runtime_env,
        "remote": True,
        "detach": detach,
        "quiet": quiet,
        "idempotency_key": workload.idempotency_key or None,
        "cpus_per_rank": 0 if session.embedded is not None else 1,
    }
    if with_gpus:
        asked["gpu_type"] = workload.kind.gpu_type
        labels = {
            selectors.GPU_TYPE: workload.kind.gpu_type,
            **({POOL: workload.pool} if workload.pool else {}),
        }
        asked["label_selector"] = labels
    options = replace(
        _function.options_of("troupe air run", asked),
        door=DOOR,
        tracks=node.run is None,
        about={
            "experiment": workload.experiment,
            "accelerator_type": str(workload.kind),
            "num_accelerators": str(workload.accelerators),
            "user": getpass.getuser(),
        },
    )
    line = _program.Line(
        COMMAND,
        _node.SHELL,
        (),
        workload.nodes if with_gpus else 0,
        {"setup": node},
        workload.kind.gpus_per_node,
    )
    return _program.start(line, options, session)


def _run_on_nodes(workload: Workload) -> dict[str, Any] | None:
    """Return what the MLflow run of a workload that outlives this program is to be, in a store on
    its nodes; None where an address says where it is, or the caller wants none."""
    given = {**variables.now(), **workload.variables}
    address = given.get(rule.URI, "")
    if address and (rule.URI in workload.variables or not turns.is_local(address)):
        return None
    tags = {"mlflow.user": getpass.getuser(), "mlflow.source.type": "LOCAL"}
    return job_store.wish_of(
        workload.run_name, workload.experiment, tags, given, told=_RUN_ON_NODES
    )


def _with_gpus(workload: Workload, session: Any, *, quiet: bool) -> bool:
    """Return whether the workload gets GPUs.

    A cluster without any runs it on CPUs, which is said, unless TROUPE_CPU_RANKS says no.
    """
    reason = _vendor_place.without_gpus(session)
    if not reason:
        refuse_unknown(
            "compute.accelerator_type",
            workload.kind,
            [each for each in workers.node_infos(session) if each["state"] == "alive"],
        )
        return True
    many = "1 process" if workload.nodes == 1 else f"{workload.nodes} processes"
    _vendor_place.tell(
        f"{reason}: {workload.accelerators} GPUs of {workload.kind} mean {many} on CPUs, each in "
        "the place of a node",
        quiet=quiet,
    )
    return False


def refuse_unknown(
    what: str, kind: _accelerators.AcceleratorType, nodes: Sequence[Mapping[str, Any]]
) -> None:
    """Raise PlacementError where no node is of this accelerator type, with the types that there
    are. Case matters.

    Args:
        what: The option or field that asks for `kind`.
        kind: The accelerator type.
        nodes: The nodes' infos, as the head has them.
    """
    kinds: list[dict[str, Any]] = [
        {
            "gpus": resources.from_wire(each["resources"]).get("GPU", 0),
            "gpu_type": next(
                (label["value"] for label in each["labels"] if label["key"] == selectors.GPU_TYPE),
                "",
            ),
        }
        for each in nodes
    ]
    if any(
        each["gpu_type"] == kind.gpu_type and each["gpus"] >= kind.gpus_per_node for each in kinds
    ):
        return
    known = (
        ", ".join(_accelerators.types_of(kinds))
        or "none with a gpu_type label (troupe start --labels gpu_type=H100)"
    )
    raise exceptions.PlacementError(
        f"{what} is {kind}, which no node of the cluster is\n  its accelerator types: {known}"
    )


def status_of(info: Mapping[str, Any]) -> str:
    """Return the status of a run: PENDING, RUNNING, CANCELING, SUCCEEDED, FAILED or CANCELED."""
    return (
        _ENDED.get(info["outcome"], "FAILED")
        if info["state"] == "terminal"
        else _STATUS.get(info["state"], "RUNNING")
    )


def described(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run as JSON shows it."""
    about = travelled.about(info)
    return {
        "run_id": info["launch"],
        "run_name": info["name"],
        "status": status_of(info),
        "experiment": about.get("experiment", ""),
        "accelerator_type": about.get("accelerator_type", ""),
        "num_accelerators": int(about.get("num_accelerators", 0)),
        "user": about.get("user", ""),
        "attempt": info["epoch"],
        "max_attempts": info["attempts_max"],
        "submitted_s": info["submitted_us"] / 1e6,
        "duration_s": info["duration_ms"] / 1e3,
        "exit_code": info["exit_code"],
        "cause": info["cause"],
        "waiting_for": info["waiting_for"],
        "nodes": [each["node_name"] for each in info["rank_infos"]],
    }


def infos(session: Any) -> list[dict[str, Any]]:
    """Return the LaunchInfos of all runs that the cluster knows, the latest first."""
    found = [each for each in view.iter_launches(session) if travelled.door(each) == DOOR]
    return sorted(found, key=lambda each: -each["submitted_us"])


def matches(run: Mapping[str, Any], filters: Mapping[str, str]) -> bool:
    """Return whether a described run has all of these values, compared as text."""
    return all(str(run[name]) == value for name, value in filters.items())
