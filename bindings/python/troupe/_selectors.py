"""Which nodes may be used: label selectors and levels, checked here for their types, by the head for their meaning."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def terms(selector: Mapping[str, str] | None, what: str) -> list[dict[str, str]]:
    """`{"gpu_type": "in(H100,H200)", "zone": "!a"}` as the message's list."""
    if selector is None:
        return []
    if not isinstance(selector, Mapping):
        raise ValueError(f"{what} must be a dict of label keys and values, not {selector!r}")
    for key, value in selector.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ValueError(f"{what}: {key!r}: {value!r}: a label's key and what it must be are strings")
    return [{"key": key, "value": value} for key, value in selector.items()]


def where(label_selector: Mapping[str, str] | None = None, fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
          within: str | None = None, near: str | None = None) -> dict[str, Any]:
    """The Where message."""
    if within and near:
        raise ValueError(f"within={within!r} is required, near={near!r} a wish: give one of them")
    fallbacks = []
    for each in fallback_strategy or []:
        if not isinstance(each, Mapping) or set(each) != {"label_selector"}:
            raise ValueError(f"fallback_strategy is a list of {{'label_selector': {{...}}}}, not of {each!r}")
        fallbacks.append({"terms": terms(each["label_selector"], "fallback_strategy")})
    return {"labels": terms(label_selector, "label_selector"), "fallbacks": fallbacks,
            "level": within or near or "", "level_required": bool(within)}


GPU_TYPE = "gpu_type"  # the label that tells a node's GPUs


_GROUP = ("placement_group", "placement_group_bundle_index", "placement_group_capture_child_tasks")


def of_group(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options whose `placement_group` and what goes with it, which Ray still takes, are a scheduling strategy."""
    if not any(name in options for name in _GROUP):
        return options
    from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    rest = {name: value for name, value in options.items() if name not in _GROUP}
    group, index = options.get("placement_group", "default"), options.get("placement_group_bundle_index", -1)
    said = rest.get("scheduling_strategy") is not None
    if group in (None, "default"):
        if index != -1:
            raise ValueError(f"placement_group_bundle_index={index} needs a placement_group")
        if group is None and not said:
            rest["scheduling_strategy"] = "DEFAULT"  # outside of any
        return rest
    if said:
        raise ValueError("placement_group= and scheduling_strategy= both say where: give the second alone, a "
                         "PlacementGroupSchedulingStrategy")
    rest["scheduling_strategy"] = PlacementGroupSchedulingStrategy(group, index, options.get("placement_group_capture_child_tasks"))
    return rest


def of_accelerator(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options whose `accelerator_type` is a term of their label selector: nodes of GPUs of that type."""
    rest = {name: value for name, value in options.items() if name != "accelerator_type"}
    wanted = options.get("accelerator_type")
    if wanted is None:
        return rest
    if not isinstance(wanted, str) or not wanted:
        raise ValueError(f"accelerator_type is the name of a type of GPU, like 'H100', not {wanted!r}")
    selector = dict(options.get("label_selector") or {})
    if selector.setdefault(GPU_TYPE, wanted) != wanted:
        raise ValueError(f"accelerator_type={wanted!r} and label_selector={selector!r} ask for different GPUs: give one of them")
    rest["label_selector"] = selector
    if options.get("fallback_strategy"):
        rest["fallback_strategy"] = [
            {**each, "label_selector": {**each["label_selector"], GPU_TYPE: wanted}}
            if isinstance(each, Mapping) and isinstance(each.get("label_selector"), Mapping) else each
            for each in options["fallback_strategy"]]
    return rest
