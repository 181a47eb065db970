"""Nodes that a launch may use: of one type of GPU, and in or out of the reserved pools, which are
nodes with the label `gpu_pool`."""

from __future__ import annotations

from typing import Any

from troupe import exceptions
from troupe._cluster import selectors, workers
from troupe.launch import _hints
from troupe.serverless_gpu import _variables

POOL = "gpu_pool"
_NONE = "!exists()"  # selects nodes without the label


def where(session: Any, ranks: int, gpu_type: str, otherwise: dict[str, Any]) -> dict[str, Any]:
    """The Where of a launch on this cluster: the first choice, and others for while that has no
    room.

    All ranks have GPUs of one type, `gpu_type` or any that has enough. A pool is preferred, by the
    variables required or avoided. Raises PlacementError where the cluster has no such type or pool,
    ValueError for a variable that cannot be read.
    """
    nodes = workers.node_infos(session)
    pools, types = (
        _pool_choices(nodes),
        _type_choices(session, _hints.gpus_of(nodes), ranks, gpu_type),
    )
    choices = [{**pool, **kind} for pool in pools for kind in types]
    if choices == [{}]:
        return otherwise
    rest = {term["key"]: term["value"] for term in otherwise["labels"]}
    # A fallback is a selector of its own, so what else is asked for is in each of them; what the
    # launch itself says is over the rest.
    first, *others = [selectors.terms({**each, **rest}, "label_selector") for each in choices]
    return {**otherwise, "labels": first, "fallbacks": [{"terms": each} for each in others]}


def _type_choices(
    session: Any, there: dict[str, int], ranks: int, gpu_type: str
) -> list[dict[str, str]]:
    if gpu_type:
        if there and gpu_type.lower() not in (each.lower() for each in there):
            raise exceptions.PlacementError(
                f"gpu_type={gpu_type!r}: no node has GPUs of that type\n  {_hints.of_gpus(session)}"
            )
        return [{selectors.GPU_TYPE: gpu_type}]
    if len(there) < 2:
        return [{}]
    enough = sorted(
        (each for each, count in there.items() if count >= ranks), key=lambda each: -there[each]
    )
    if not enough:
        raise exceptions.PlacementError(
            f"gpus={ranks} without gpu_type= means GPUs of any one type, and no type has as many\n"
            f"  {_hints.of_gpus(session)}"
        )
    return [{selectors.GPU_TYPE: each or _NONE} for each in enough]


def _pool_choices(nodes: list[dict[str, Any]]) -> list[dict[str, str]]:
    use, wanted = _variables.pool_use(), _variables.pool_id()
    pools = sorted(
        {label["value"] for node in nodes for label in node["labels"] if label["key"] == POOL}
    )
    if use == _variables.AVOID:
        return [{POOL: _NONE}] if pools else [{}]
    missing = (
        wanted.lower() not in (each.lower() for each in pools)
        if wanted
        else use == _variables.ONLY and not pools
    )
    if missing:
        raise exceptions.PlacementError(_no_such_pool(wanted, pools))
    if not pools:
        return [{}]
    reserved = {POOL: wanted or "exists()"}
    return [reserved] if use == _variables.ONLY else [reserved, {}]


def _no_such_pool(wanted: str, pools: list[str]) -> str:
    there = f"its pools: {', '.join(pools)}" if pools else f"no node has the label {POOL}"
    said, _ = _variables.said(_variables.POOL_ID if wanted else _variables.USE_POOL)
    asked = f"the pool {wanted!r}" if wanted else "a reserved pool alone"
    return (
        f"{said} asks for GPUs of {asked}, which the cluster has not; {there}\n"
        f"  a node is put into a pool by troupe start --labels {POOL}=NAME; "
        f"{_variables.USE_POOL[0]}=false uses the nodes outside of pools"
    )
