"""A placement group: resources reserved at once, in bundles, for actors and tasks that belong
together.

    troupe run-as-ray examples/ray/placement_groups.py

Prints:

    reserved: [{'CPU': 1.0}, {'CPU': 1.0}]
    both actors in the group, on one node: True
    a task of an actor stays in the group: True
    too much for a bundle: refused
    after removal: its actors have ended
"""

import threading

import ray
from ray.util import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=0)
def where() -> tuple[str, str | None]:
    """The node and the placement group this runs in."""
    context = ray.get_runtime_context()
    return context.get_node_id(), context.get_placement_group_id()


@ray.remote(num_cpus=1)
class Member:
    """Something in a bundle."""

    def place(self) -> tuple[str, str | None]:
        """Return the actor's node and placement group."""
        context = ray.get_runtime_context()
        return context.get_node_id(), context.get_placement_group_id()

    def wait(self) -> None:
        """As long as it lives."""
        threading.Event().wait()

    def of_a_task(self) -> tuple[str, str | None]:
        """Return the node and placement group of a task made here."""
        return ray.get(where.remote())


group = placement_group([{"CPU": 1}, {"CPU": 1}], strategy="PACK")
ray.get(group.ready(), timeout=60)  # or group.wait(60)
print(
    "reserved:",
    [{name: float(value) for name, value in bundle.items()} for bundle in group.bundle_specs],
)

members = [
    Member.options(
        scheduling_strategy=PlacementGroupSchedulingStrategy(
            group, placement_group_bundle_index=index, placement_group_capture_child_tasks=True
        )
    ).remote()
    for index in range(2)
]
places = ray.get([each.place.remote() for each in members])
print(
    "both actors in the group, on one node:",
    len(set(places)) == 1 and places[0][1] == group.id.hex(),
)
print("a task of an actor stays in the group:", ray.get(members[0].of_a_task.remote()) == places[0])

try:
    ray.get(
        Member.options(num_cpus=2, scheduling_strategy=PlacementGroupSchedulingStrategy(group))
        .remote()
        .place.remote(),
        timeout=60,
    )
except Exception:
    print("too much for a bundle: refused")

unanswered = [each.wait.remote() for each in members]
remove_placement_group(group)
try:
    ray.get(unanswered, timeout=60)
except ray.exceptions.RayActorError:
    print("after removal: its actors have ended")
assert placement_group_table(group)["state"] == "REMOVED"
