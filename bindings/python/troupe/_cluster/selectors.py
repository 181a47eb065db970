"""Label selectors and levels, which choose nodes: their types are checked here, their meaning by
the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from troupe._cluster import resources as _resources


def terms(selector: Mapping[str, str] | None, what: str) -> list[dict[str, str]]:
    """`{"gpu_type": "in(H100,H200)", "zone": "!a"}` as the message's list; in a launch of CPU ranks
    without the type of GPU."""
    if selector is None:
        return []
    if not isinstance(selector, Mapping):
        raise ValueError(f"{what} must be a dict of label keys and values, not {selector!r}")
    for key, value in selector.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ValueError(
                f"{what}: {key!r}: {value!r}: a label's key and what it must be are strings"
            )
    without_type = _resources.cpu_share() is not None
    return [
        {"key": key, "value": value}
        for key, value in selector.items()
        if key != GPU_TYPE or not without_type
    ]


def labels_of(info: Mapping[str, Any]) -> dict[str, str]:
    """A node's labels, of a NodeInfo, as people gave them."""
    return {
        label["key"]: label["value"]
        for label in info["labels"]
        if label["key"] not in (VERSIONS, FABRIC)
    }


def where(
    label_selector: Mapping[str, str] | None = None,
    fallback_strategy: Sequence[Mapping[str, Any]] | None = None,
    within: str | None = None,
    near: str | None = None,
) -> dict[str, Any]:
    """The Where message."""
    if within and near:
        raise ValueError(f"within={within!r} is required, near={near!r} a wish: give one of them")
    fallbacks = []
    for each in fallback_strategy or []:
        if not isinstance(each, Mapping) or set(each) != {"label_selector"}:
            raise ValueError(
                f"fallback_strategy is a list of {{'label_selector': {{...}}}}, not of {each!r}"
            )
        fallbacks.append({"terms": terms(each["label_selector"], "fallback_strategy")})
    return {
        "labels": terms(label_selector, "label_selector"),
        "fallbacks": fallbacks,
        "level": within or near or "",
        "level_required": bool(within),
    }


GPU_TYPE = "gpu_type"  # the label that tells a node's GPUs
# The name under which the head matches a node's address, unless a label of that name exists
NODE_IP = "node_ip"
VERSIONS = "troupe.io/versions"
"""The label by which a node tells the versions of its libraries (`_cluster.versions`); views of
nodes leave it out."""
FABRIC = "troupe.io/fabric"
"""By which it tells its networks (`_cluster.fabric`), likewise left out."""
NODE_ID = "ray.io/node-id"  # the name under which the head matches a node's id
ADDRESS_PREFIX = "node:"
TYPE_PREFIX = "accelerator_type:"
"""Of Ray's resource that says a node's type of GPU: what a node offers of it is its label
`gpu_type`, and a trace of it that is asked for is that label's value."""
_TRACE = 0.01


_BOTH = (
    "placement_group= and scheduling_strategy= both say where: give the second alone, a "
    "PlacementGroupSchedulingStrategy"
)
GROUP_OPTIONS = (
    "placement_group",
    "placement_group_bundle_index",
    "placement_group_capture_child_tasks",
)
"""Options of tasks and actors that mean a PlacementGroupSchedulingStrategy."""


def of_group(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options whose `placement_group` and what goes with it, which Ray still takes, are a
    scheduling strategy."""
    if not any(name in options for name in GROUP_OPTIONS):
        return options
    from troupe._base.strategies import PlacementGroupSchedulingStrategy

    rest = {name: value for name, value in options.items() if name not in GROUP_OPTIONS}
    group, index = (
        options.get("placement_group", "default"),
        options.get("placement_group_bundle_index", -1),
    )
    said = rest.get("scheduling_strategy") is not None
    if group in (None, "default"):
        if index != -1:
            raise ValueError(
                "If placement group is not set, the value of bundle index must be -1: "
                f"placement_group_bundle_index={index} needs a placement_group"
            )
        if group is None and not said:
            rest["scheduling_strategy"] = "DEFAULT"  # outside of any
        return rest
    if said:
        raise ValueError(_BOTH)
    strategy = PlacementGroupSchedulingStrategy(
        group, index, options.get("placement_group_capture_child_tasks")
    )
    strategy.of_option = True
    rest["scheduling_strategy"] = strategy
    return rest


def changed(options: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`options` with those of `given` in their place.

    ValueError where one of the two has a `placement_group`, the other a strategy.
    """
    given = of_group(given)
    before, now = options.get("scheduling_strategy"), given.get("scheduling_strategy")
    if (
        before not in (None, "DEFAULT")
        and now not in (None, "DEFAULT")
        and _of_option(before) != _of_option(now)
    ):
        raise ValueError(_BOTH)
    return {**options, **given}


def _of_option(strategy: Any) -> bool:
    return getattr(strategy, "of_option", False)


def of_node(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options whose `accelerator_type`, and `node:<address>` among the `resources`, are terms of
    their label selector: nodes of GPUs of that type, and of that address."""
    rest = {name: value for name, value in options.items() if name != "accelerator_type"}
    accelerator, resources = options.get("accelerator_type"), options.get("resources")
    if accelerator is not None:
        if not isinstance(accelerator, str) or not accelerator:
            raise ValueError(
                f"accelerator_type is the name of a type of GPU, like 'H100', not {accelerator!r}"
            )
        _require(rest, GPU_TYPE, accelerator, f"accelerator_type={accelerator!r}")
    if isinstance(resources, Mapping):
        rest["resources"], address = of_address(resources)
        if address is not None:
            _require(rest, NODE_IP, address, f"resources={resources!r}")
        for name, amount in list(rest["resources"].items()):
            if (
                isinstance(name, str)
                and name.startswith(TYPE_PREFIX)
                and isinstance(amount, float)
                and 0 < amount <= _TRACE
            ):
                rest["resources"] = {
                    each: value for each, value in rest["resources"].items() if each != name
                }
                _require(rest, GPU_TYPE, name.removeprefix(TYPE_PREFIX), f"resources={resources!r}")
    return rest


def of_address(resources: Mapping[str, float]) -> tuple[Mapping[str, float], str | None]:
    """Amounts without Ray's `node:<address>`, of which every node there has 1, and that address."""
    addresses = [
        name for name in resources if isinstance(name, str) and name.startswith(ADDRESS_PREFIX)
    ]
    if not addresses:
        return resources, None
    if len(addresses) > 1:
        raise ValueError(f"{' and '.join(addresses)}: nothing runs on two nodes")
    amount = resources[addresses[0]]
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount <= 1:
        raise ValueError(
            f"resource {addresses[0]!r} must be a number above 0 and at most 1, not {amount!r}: it "
            "only says where"
        )
    address = addresses[0].removeprefix(ADDRESS_PREFIX)
    if address == "__internal_head__":
        raise ValueError(
            "the head is no node here: name one by its address, or by "
            "NodeAffinitySchedulingStrategy"
        )
    return {name: amount for name, amount in resources.items() if name != addresses[0]}, address


def labels_of_types(
    resources: Mapping[str, float] | None, labels: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    """A node's labels, with its type of GPU where it offers Ray's resource for one type and no
    label says it."""
    types = [
        name.removeprefix(TYPE_PREFIX)
        for name, amount in (resources or {}).items()
        if str(name).startswith(TYPE_PREFIX) and amount
    ]
    return {GPU_TYPE: types[0], **(labels or {})} if len(types) == 1 else labels


def _require(options: dict[str, Any], key: str, value: str, said: str) -> None:
    """Add a term to the label selector, and to each of its fallbacks."""
    selector = dict(options.get("label_selector") or {})
    if selector.setdefault(key, value) != value:
        what = "GPUs" if key == GPU_TYPE else "nodes"
        raise ValueError(
            f"{said} and label_selector={selector!r} ask for different {what}: give one of them"
        )
    options["label_selector"] = selector
    if options.get("fallback_strategy"):
        options["fallback_strategy"] = [
            {**each, "label_selector": {**each["label_selector"], key: value}}
            if isinstance(each, Mapping) and isinstance(each.get("label_selector"), Mapping)
            else each
            for each in options["fallback_strategy"]
        ]
