"""Options of actors: checked by name and type, turned into the message that creates one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe._actors.option_table import ACTORS
from troupe._base import checks as _checks
from troupe._base.context import ActorContext
from troupe._cluster import resources, selectors, session as _session
from troupe._typed import option as _option

THREADS = "TROUPE_THREADS"
"""In an actor's environment as its maker gives it: the threads it has where nobody says
OMP_NUM_THREADS."""
_SAY_WHERE = ("scheduling_strategy", "label_selector", "fallback_strategy", "accelerator_type")


def check(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as given.

    Raises:
        ValueError, TypeError: one is unknown or can never be right; the message names it.
    """
    _checks.refuse_unknown("an actor", options, ACTORS, error=ValueError)
    _option.held(ACTORS, options)
    if options.get("get_if_exists") and not options.get("name"):
        raise ValueError("get_if_exists needs a name")
    selectors.of_node(options)
    return dict(options)


def check_methods(methods: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises ValueError for a method in a concurrency group that the actor has not."""
    groups = options.get("concurrency_groups") or {}
    for name, method in methods.items():
        if method.concurrency_group is not None and method.concurrency_group not in groups:
            raise ValueError(
                f"method {name}() is in the concurrency group {method.concurrency_group!r}, and "
                "the actor's "
                f"concurrency_groups are {dict(groups)!r}"
            )


def running_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the actor's own process must know."""
    from troupe._base.strategies import PlacementGroupSchedulingStrategy

    _, held = resources.for_actor(
        options.get("num_cpus"),
        options.get("num_gpus"),
        options.get("memory"),
        options.get("resources"),
    )
    strategy = options.get("scheduling_strategy")
    group, captures = "", False
    if isinstance(strategy, PlacementGroupSchedulingStrategy) and strategy.placement_group:
        group = strategy.placement_group.id
        captures = strategy.placement_group_capture_child_tasks
    return {
        **_option.told(ACTORS, options),
        "groups": dict(options.get("concurrency_groups") or {}),
        "resources": {name: float(amount) for name, amount in held.items() if amount},
        "group": group,
        "captures": captures,
    }


def captured(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of what is made here: unless they say where, in the placement group of the actor
    or task that makes it, if that one captures its children; these do so in turn."""
    from troupe._base.strategies import PlacementGroupSchedulingStrategy
    from troupe._cluster.groups import PlacementGroup

    here = ActorContext.current
    if (
        here is None
        or not here.captures
        or any(options.get(name) is not None for name in _SAY_WHERE)
    ):
        return options
    return {
        **options,
        "scheduling_strategy": PlacementGroupSchedulingStrategy(
            PlacementGroup(here.group, []), placement_group_capture_child_tasks=True
        ),
    }


def spec_of(
    options: Mapping[str, Any],
    session: _session.Session,
    class_name: str,
    actor: str,
    environment: dict[str, Any],
) -> dict[str, Any]:
    """The ActorSpec message."""
    options = selectors.of_node(options)
    placed, held = resources.for_actor(
        options.get("num_cpus"),
        options.get("num_gpus"),
        options.get("memory"),
        options.get("resources"),
    )
    if options.get("lifetime") == "detached" and session.launch:
        raise ValueError(
            "lifetime='detached' inside a launch: everything its driver creates ends with the "
            "launch"
        )
    namespace = options.get("namespace")
    spec = {
        **_option.message_of(ACTORS, options),
        "actor": actor,
        "class_name": class_name,
        "namespace_": session.namespace if namespace is None else namespace,
        "resources": resources.to_wire(placed),
        "run_resources": resources.to_wire(held),
        "environment": environment,
        "shown": session.log_to_driver,  # counts where no actor is the maker
    }
    threads = int(held.get("CPU") or 0)  # whole CPUs
    if threads > 1 and environment:
        said = {"name": THREADS, "value": str(threads)}
        spec["environment"] = {**environment, "env": [*environment["env"], said]}
    spec.update(_placement(options.get("scheduling_strategy")))
    if options.get("label_selector") or options.get("fallback_strategy"):
        if "group" in spec or "where" in spec:
            raise ValueError(
                f"label_selector does not go with {options['scheduling_strategy']!r}: it says "
                "where already; "
                "a placement group takes bundle_label_selector"
            )
        spec["where"] = selectors.where(
            options.get("label_selector"), options.get("fallback_strategy")
        )
    return spec


def _placement(strategy: Any) -> dict[str, Any]:
    """The fields a scheduling strategy sets."""
    from troupe._base import strategies as known

    if strategy is None or strategy == "DEFAULT":
        return {}
    if strategy == "SPREAD":
        return {"strategy": known.BY_NAME["SPREAD"]}
    if isinstance(strategy, known.PlacementGroupSchedulingStrategy):
        if strategy.placement_group is None:
            return {}
        strategy.placement_group.used = True
        return {
            "group": strategy.placement_group.id,
            "bundle": strategy.placement_group_bundle_index,
        }
    if isinstance(strategy, known.NodeAffinitySchedulingStrategy):
        return {"node": strategy.node_id, "node_soft": strategy.soft}
    if isinstance(strategy, known.NodeLabelSchedulingStrategy):
        hard, soft = strategy.selectors()
        return {
            "where": selectors.where({**hard, **soft}, [{"label_selector": hard}] if soft else None)
        }
    raise ValueError(
        f"scheduling_strategy {strategy!r} is not known; there are: DEFAULT, SPREAD, "
        "PlacementGroupSchedulingStrategy, NodeAffinitySchedulingStrategy, "
        "NodeLabelSchedulingStrategy"
    )
