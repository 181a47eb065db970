"""Rank 0 of a launch as the driver of a cluster made of exactly the launch's nodes.

    python examples/driver_on_rank0.py                              # on an embedded cluster
    TROUPE_ADDRESS=10.0.0.1:6400 python examples/driver_on_rank0.py   # on a cluster

The driver looks at its nodes, reserves a placement group, runs actors in its bundles, runs a
function on all ranks inside one process group, and returns; the marker that ends the launch is
printed.
"""

import os

from troupe.launch import ray_launch

RANKS = 4


class Counter:
    """Counts, and says which process on which node it is."""

    def __init__(self, start: int) -> None:
        self.value = start

    def add(self, amount: int) -> int:
        """Adds and returns the sum."""
        self.value += amount
        return self.value

    def where(self) -> tuple[str, int]:
        """(node, process id)."""
        import troupe

        return troupe.get_runtime_context().get_node_name(), os.getpid()


def sum_of_ranks(factor: int) -> float:
    """Runs on every rank: one all-reduce over the launch's process group."""
    import torch
    import torch.distributed as dist

    value = torch.tensor([float(dist.get_rank() * factor)])
    dist.all_reduce(value)
    return value.item()


@ray_launch(processes=RANKS, remote=bool(os.environ.get("TROUPE_ADDRESS")), strategy="SPREAD")
def drive() -> int:
    """The driver: runs on rank 0 only."""
    import troupe as ray
    import troupe.launch
    from troupe.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    free = ray.state.available_resources_per_node()
    print("free on the launch's nodes:", free)
    assert set(free) == set(troupe.launch.current().nodes)

    group = ray.util.placement_group([{"CPU": 1}] * RANKS, strategy="SPREAD")
    ray.get(group.ready(), timeout=30)
    actor_class = ray.remote(num_cpus=1)(Counter)
    actors = [
        actor_class.options(
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, index)
        ).remote(index)
        for index in range(RANKS)
    ]
    print("sums:", ray.get([actor.add.remote(10) for actor in actors], timeout=30))
    places = ray.get([actor.where.remote() for actor in actors], timeout=30)
    print("actors on:", sorted({node for node, _ in places}))
    for actor in actors:
        ray.kill(actor)
    ray.util.remove_placement_group(group)

    sums = troupe.launch.current().run(sum_of_ranks, 2)
    print("one all-reduce on every rank:", sums)
    assert sums == [float(2 * sum(range(RANKS)))] * RANKS
    return 1


def main() -> None:
    """Launches, and shows that rank 0's value comes back."""
    results = drive.distributed()
    print("results by rank:", results)
    assert results[0] == 1


if __name__ == "__main__":
    main()
