"""Options of actors: checked by name and type, turned into the message that creates one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troupe import _checks, _job, _words
from troupe._cluster import infeasible, resources, selectors, session as _session

_KNOWN = {
    "num_cpus",
    "num_gpus",
    "memory",
    "resources",
    "name",
    "namespace",
    "lifetime",
    "max_concurrency",
    "max_restarts",
    "max_task_retries",
    "runtime_env",
    "scheduling_strategy",
    "get_if_exists",
    "accelerator_type",
    "max_pending_calls",
    "concurrency_groups",
    "label_selector",
    "fallback_strategy",
    "priority",
    "allow_out_of_order_execution",
    "exit_grace",
    "infeasible",
    "preimport",
}
_IGNORED = {
    "enable_task_events",
    "enable_tensor_transport",
    "object_store_memory",
}  # Ray's, without a meaning here
THREADS = "TROUPE_THREADS"
"""In an actor's environment as its maker gives it: the threads it has where nobody says
OMP_NUM_THREADS."""
_SAY_WHERE = ("scheduling_strategy", "label_selector", "fallback_strategy", "accelerator_type")


def option_names() -> set[str]:
    """Return the options of an actor that mean something, or are accepted as Ray's."""
    return {*_KNOWN, *_IGNORED, *selectors.GROUP_OPTIONS}


def check(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as given.

    Raises ValueError or TypeError naming the one that is unknown or can never be right.
    """
    _checks.refuse_unknown("an actor", options, _KNOWN | _IGNORED, error=ValueError)
    lifetime = options.get("lifetime")
    if lifetime not in (None, "detached", "non_detached"):
        raise ValueError(f"lifetime must be None, 'detached' or 'non_detached', not {lifetime!r}")
    concurrency = options.get("max_concurrency")
    if concurrency is not None and (not isinstance(concurrency, int) or concurrency < 1):
        raise ValueError(
            f"max_concurrency must be a whole number of at least 1, not {concurrency!r}"
        )
    for count in ("max_restarts", "max_task_retries"):
        retries = options.get(count)
        if retries is not None and (not isinstance(retries, int) or retries < -1):
            raise ValueError(
                f"{count} must be a whole number, or -1 for any number, not {retries!r}"
            )
    given_name = options.get("name")
    if given_name is not None and not isinstance(given_name, str):
        raise TypeError(f"name must be a string, or None for none, not {given_name!r}")
    if given_name == "":
        raise ValueError(
            "name cannot be an empty string: None, or no name=, is for an actor without one"
        )
    if options.get("allow_out_of_order_execution") not in (None, True, False):
        raise ValueError(
            "allow_out_of_order_execution must be True, False or None, not "
            f"{options['allow_out_of_order_execution']!r}"
        )
    if options.get("exit_grace") is not None:
        _checks.check_grace("exit_grace", options["exit_grace"])
    infeasible.check(options.get("infeasible"))
    _checks.check_preimport(options.get("preimport") or ())
    _check_groups(options.get("concurrency_groups"))
    pending = options.get("max_pending_calls")
    if pending is not None and (not isinstance(pending, int) or pending < -1):
        raise ValueError(
            "max_pending_calls must be a whole number of at least 1, or -1 for no limit, not "
            f"{pending!r}"
        )
    if options.get("get_if_exists") and not options.get("name"):
        raise ValueError("get_if_exists needs a name")
    _job.check_namespace(options.get("namespace"))
    resources.check_priority(options.get("priority") or 0)
    resources.check_options(
        selectors.of_node(options), gpu_parts_later=_words.current.late_checks()
    )
    return dict(options)


def _check_groups(groups: Any) -> None:
    if groups is None:
        return
    if not isinstance(groups, Mapping):
        raise ValueError(f"concurrency_groups must be a dict of names and limits, not {groups!r}")
    for name, limit in groups.items():
        if not isinstance(name, str) or not name or not isinstance(limit, int) or limit < 1:
            raise ValueError(
                f"concurrency_groups: {name!r}: {limit!r} is no name of a group with a limit of at "
                "least 1"
            )


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
    """What the actor's own process must know of them."""
    from troupe._strategies import PlacementGroupSchedulingStrategy

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
        "max_concurrency": options.get("max_concurrency"),
        "groups": dict(options.get("concurrency_groups") or {}),
        "resources": {name: float(amount) for name, amount in held.items() if amount},
        "group": group,
        "exit_grace": options.get("exit_grace"),
        "captures": captures,
    }


def captured(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of what is made here: unless they say where, in the placement group of the actor
    or task that makes it, if that one captures its children; these do so in turn."""
    from troupe._cluster.groups import PlacementGroup
    from troupe._context import ActorContext
    from troupe._strategies import PlacementGroupSchedulingStrategy

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
    detached = options.get("lifetime") == "detached"
    if detached and session.launch:
        raise ValueError(
            "lifetime='detached' inside a launch: everything its driver creates ends with the "
            "launch"
        )
    namespace = options.get("namespace")
    spec = {
        "actor": actor,
        "name": options.get("name") or "",
        "class_name": class_name,
        "namespace_": session.namespace if namespace is None else namespace,
        "resources": resources.to_wire(placed),
        "run_resources": resources.to_wire(held),
        "detached": detached,
        "max_concurrency": options.get("max_concurrency") or 1,
        "max_restarts": options.get("max_restarts") or 0,
        "environment": environment,
        "get_if_exists": bool(options.get("get_if_exists")),
        "priority": resources.check_priority(options.get("priority") or 0),
        "shown": bool(
            session.store.get("log_to_driver", True)
        ),  # counts where no actor is the maker
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
    from troupe import _strategies as known

    if strategy is None or strategy == "DEFAULT":
        return {}
    if strategy == "SPREAD":
        return {"strategy": "spread"}
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
