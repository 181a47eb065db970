"""A limit for what is under way: with more inputs than fit into memory, ray.wait() says when the
next may start.

    troupe run-as-ray examples/ray/limit_pending_tasks.py

Prints:

    50 inputs, never more than 4 under way
    the sum of all squares: 40425
"""

import ray

LIMIT = 4


@ray.remote(num_cpus=0)
class Watch:
    """Knows how many tasks are between their start and their end."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def enter(self) -> None:
        """Count a call that enters."""
        self.now += 1
        self.most = max(self.most, self.now)

    def leave(self) -> None:
        """Count a call that leaves."""
        self.now -= 1

    def seen(self) -> int:
        """The most there have been at once."""
        return self.most


@ray.remote(num_cpus=0.25)
def square(watch: "ray.actor.ActorHandle", number: int) -> int:
    """The work."""
    ray.get(watch.enter.remote())
    try:
        return number * number
    finally:
        ray.get(watch.leave.remote())


watch = Watch.remote()
under_way: list[ray.ObjectRef] = []
total = most = 0
for number in range(50):
    if len(under_way) == LIMIT:
        done, under_way = ray.wait(under_way, num_returns=1)
        total += sum(ray.get(done))
    under_way.append(square.remote(watch, number))
    most = max(most, len(under_way))
total += sum(ray.get(under_way))
assert most == LIMIT and ray.get(watch.seen.remote()) <= LIMIT
print(f"50 inputs, never more than {most} under way")
print("the sum of all squares:", total)
assert total == sum(number * number for number in range(50))
