"""Placement groups: bundles of resources reserved together, all or nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from troupe import exceptions
from troupe._base import words as _words
from troupe._base.context import ActorContext
from troupe._base.identity import new_id
from troupe._cluster import (
    infeasible as _infeasible,
    resources,
    selectors as _selectors,
    session as _session,
)
from troupe._cluster.groups import PlacementGroup
from troupe._typed.per_session import PerSession


def placement_group(
    bundles: Sequence[Mapping[str, float]],
    strategy: str | None = None,
    name: str = "",
    lifetime: str | None = None,
    _soft_target_node_id: str | None = None,
    bundle_label_selector: Sequence[Mapping[str, str]] | None = None,
    topology_strategy: Mapping[str, str] | None = None,
    *,
    within: str | None = None,
    near: str | None = None,
    priority: int = 0,
    infeasible: str | None = None,
) -> PlacementGroup:
    """Asks for a group and returns its handle at once; `ready()` or `wait()` tell when it is there.

    Each bundle, e.g. `{"CPU": 2, "GPU": 1}`, lies on one node, with `"node:<address>": 0.01` in it
    on that one. Strategies: PACK (few nodes, where none is given), SPREAD (many), STRICT_PACK
    (one), STRICT_SPREAD (all different). `bundle_label_selector`: for each bundle what the labels
    of its node must be, `{"gpu_type": "H100"}`, `"!H100"`, `"in(H100,H200)"` or `"!in(A10)"`; one
    alone is for all. `within="rack"`: all in one rack (by the nodes' labels: block, rack,
    nvlink_domain); `near="rack"`: in as few as will do; Ray's
    `topology_strategy={"ray.io/gpu-domain": "STRICT_PACK"}` is `within="nvlink_domain"`, with
    "PACK" it is `near`. `_soft_target_node_id`: with STRICT_PACK, on that node if it fits there.
    `priority`: of what waits the highest is first. `infeasible="wait"`: what no node can hold waits
    for one that joins.

    Raises ValueError for empty bundles, an amount below 0 or of more than one GPU and no whole one,
    an unknown strategy or what is no selector, TypeError for an amount that is no number, and,
    unless it is to wait, PlacementError at once, with the reason per group of nodes, when the
    cluster can never hold it. For this the head's answer is awaited, but not for a group without a
    name that is like one it has taken before: should it be refused all the same (nodes may have
    left), `ready()` says so.
    """
    session = _session.current()
    if lifetime == "detached" and session.launch:
        raise ValueError(
            "lifetime='detached' inside a launch: everything its driver creates ends with the "
            "launch"
        )
    if topology_strategy is not None:
        within, near = _levels(topology_strategy, strategy or within or near)
    strategy = "PACK" if strategy is None else strategy
    if _soft_target_node_id is not None and strategy != "STRICT_PACK":
        raise ValueError(f"_soft_target_node_id is for the strategy STRICT_PACK, not {strategy}")
    taken = _taken.of(session, _Taken)
    kind = _kind(
        bundles,
        bundle_label_selector,
        strategy,
        lifetime,
        within,
        near,
        _soft_target_node_id,
        priority,
    )
    known = taken.get(kind)
    wanted = known or _asked_for(
        bundles, strategy, lifetime, bundle_label_selector, within, near, priority
    )
    if known is None and _soft_target_node_id is not None:
        wanted["where"] |= _selectors.where(
            {_selectors.NODE_ID: _soft_target_node_id}, [{"label_selector": {}}], within, near
        )
    group = PlacementGroup(new_id(), bundles)
    group.used = bool(name) or lifetime == "detached"
    fields = {
        "group": group.id,
        "name": name,
        "namespace_": session.namespace if name else "",
        **wanted,
    }
    session.board.follow("group", group.id)
    _infeasible.check(infeasible)
    if known and not name:
        fields["infeasible_waits"] = _infeasible.waits(session, infeasible)
        session.ask("CreateGroup", fields)
        return group
    info = _infeasible.request(
        session,
        "CreateGroup",
        fields,
        fields,
        asked=infeasible,
        what=f"placement group {group.id[:8]}",
        cpus='{"CPU": {}}',
    )[1]["info"]
    if info["state"] == "infeasible":
        raise exceptions.PlacementError(info["reason"])
    session.board.post_reply("group", group.id, info)
    taken.add(kind, wanted)
    return group


_LEVELS = {
    "ray.io/gpu-domain": "nvlink_domain",
    "nvlink_domain": "nvlink_domain",
    "rack": "rack",
    "block": "block",
}


def _levels(
    topology_strategy: Mapping[str, str], otherwise: str | None
) -> tuple[str | None, str | None]:
    """`within` and `near` of Ray's parameter."""
    if otherwise:
        raise ValueError(
            f"topology_strategy and {otherwise!r} both say how bundles lie: give one of them"
        )
    if not isinstance(topology_strategy, Mapping) or len(topology_strategy) != 1:
        raise ValueError(
            f"topology_strategy is a dict of one level and its strategy, not {topology_strategy!r}"
        )
    ((label, strategy),) = topology_strategy.items()
    if label not in _LEVELS or strategy not in ("STRICT_PACK", "PACK"):
        raise ValueError(
            f"topology_strategy takes one of {', '.join(_LEVELS)} with STRICT_PACK or PACK, not "
            f"{topology_strategy!r}"
        )
    return (_LEVELS[label], None) if strategy == "STRICT_PACK" else (None, _LEVELS[label])


class _Taken:
    """The latest kinds of groups that the head took, with the message that asks for one."""

    KINDS_MAX = 100

    def __init__(self) -> None:
        self._kinds: dict[Hashable, dict[str, Any]] = {}

    def get(self, kind: Hashable | None) -> dict[str, Any] | None:
        return None if kind is None else self._kinds.get(kind)

    def add(self, kind: Hashable | None, wanted: dict[str, Any]) -> None:
        if kind is not None:
            self._kinds[kind] = wanted
        if len(self._kinds) > self.KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]


_taken: PerSession[_Taken] = PerSession("groups taken")


def _kind(
    bundles: Sequence[Mapping[str, float]],
    selectors: Sequence[Mapping[str, str]] | None,
    *options: Any,
) -> Hashable | None:
    """Equal for calls that ask for the same. None where that cannot be said."""
    try:
        # Types too: True is no amount, though it is equal to 1.
        kind = (
            tuple(
                [
                    tuple([(name, amount, type(amount)) for name, amount in bundle.items()])
                    for bundle in bundles
                ]
            ),
            tuple([tuple(selector.items()) for selector in selectors or ()]),
            *options,
            type(options[-1]),
        )
        hash(kind)
    except (AttributeError, TypeError):
        return None
    return kind


def _asked_for(
    bundles: Sequence[Mapping[str, float]],
    strategy: str,
    lifetime: str | None,
    bundle_label_selector: Sequence[Mapping[str, str]] | None,
    within: str | None,
    near: str | None,
    priority: int,
) -> dict[str, Any]:
    """The message, but for what tells groups apart."""
    from troupe._base import strategies as _strategies

    _strategies.check(strategy)
    if lifetime not in (None, "detached"):
        raise ValueError(f"lifetime must be None or 'detached', not {lifetime!r}")
    if not bundles:
        raise ValueError("a placement group needs at least one bundle")
    amounts, addresses = zip(*map(_selectors.of_address, bundles), strict=True)
    wire: list[dict[str, Any]] = []
    for index, bundle in enumerate(amounts):
        for name, amount in bundle.items():
            resources.check_amount(f"bundle {index}: {name}", amount)
        if not _words.current.late_checks():
            resources.check_gpus(bundle.get("GPU", 0), f"bundle {index}: GPU")
        wire.append(
            {"index": index, "resources": resources.to_wire(resources.in_this_launch(bundle))}
        )
    for bundle in wire:
        if not bundle["resources"]:
            raise ValueError(
                f"bundle {bundle['index']} asks for nothing: {dict(bundles[bundle['index']])}"
            )
    if bundle_label_selector:
        if len(bundle_label_selector) not in (1, len(wire)):
            raise ValueError(
                f"bundle_label_selector has {len(bundle_label_selector)} selectors for {len(wire)} "
                "bundles: "
                "one for each, or one for all"
            )
        selectors = list(bundle_label_selector) * (
            len(wire) if len(bundle_label_selector) == 1 else 1
        )
        for bundle, selector in zip(wire, selectors, strict=True):
            bundle["labels"] = _selectors.terms(selector, "bundle_label_selector")
    for bundle, address in zip(wire, addresses, strict=True):
        if address is not None:
            bundle["labels"] = [
                *bundle.get("labels", ()),
                {"key": _selectors.NODE_IP, "value": address},
            ]
    return {
        "strategy": _strategies.BY_NAME[strategy],
        "bundles": wire,
        "detached": lifetime == "detached",
        "where": _selectors.where(within=within, near=near),
        "priority": resources.check_priority(priority),
    }


def remove_placement_group(placement_group: PlacementGroup) -> None:
    """Removes a group; actors inside it are ended.

    Returns when the head has recorded it; at once for one without a name that nothing was placed in
    and nobody else knows. Whatever this process asks of the cluster afterwards finds it removed.
    """
    if not isinstance(placement_group, PlacementGroup):
        raise ValueError(
            "remove_placement_group() takes a placement group, not "
            f"{type(placement_group).__name__}"
        )
    session = _session.current()
    fields = {"group": placement_group.id}
    known = session.board.get("group", placement_group.id)
    if not placement_group.used and known is not None:
        session.ask("RemoveGroup", fields)
        session.board.post("group", placement_group.id, {**known[0], "state": "removed"})
        return
    session.board.post(
        "group", placement_group.id, session.request("RemoveGroup", fields)[1]["info"]
    )


def get_placement_group(name: str) -> PlacementGroup:
    """The group of that name in this program's namespace. Raises ValueError when there is none."""
    session = _session.current()
    if not name:
        raise ValueError("get_placement_group() takes the name of a group, not an empty one")
    try:
        info = session.request("GetGroup", {"name": name, "namespace_": session.namespace})[1][
            "info"
        ]
    except exceptions.NotFoundError:
        raise ValueError(
            f"no placement group is named {name!r} in namespace {session.namespace!r}"
        ) from None
    return _of_info(info)


def _of_info(info: dict[str, Any]) -> PlacementGroup:
    bundles = sorted(info["bundles"], key=lambda bundle: bundle["index"])
    return PlacementGroup(
        info["group"], [resources.from_wire(bundle["resources"]) for bundle in bundles]
    )


def placement_group_table(placement_group: PlacementGroup | None = None) -> dict[str, Any]:
    """Return the known state of one group, or of all by id."""
    from troupe import state

    session = _session.current()
    if placement_group is not None:
        return state.group_dict(
            session.request("GetGroup", {"group": placement_group.id})[1]["info"]
        )
    return {group["placement_group_id"]: group for group in state.list_placement_groups(session)}


def get_current_placement_group() -> PlacementGroup | None:
    """The group the calling actor lives in, or None."""
    if ActorContext.current is None or not ActorContext.current.group:
        return None
    return _of_info(
        _session.current().request("GetGroup", {"group": ActorContext.current.group})[1]["info"]
    )
