"""Progress of tasks: they report to an actor, which the driver asks while they run.

Here, pi by throwing darts.

    troupe run-as-ray examples/ray/progress_report.py

Prints:

    the progress never went back and came to 1.0
    pi is about 3.1
"""

import random

import ray

TASKS, DARTS = 4, 40_000


@ray.remote(num_cpus=0)
class Progress:
    """How much of the work is done."""

    def __init__(self, total: int) -> None:
        self.total, self.by_task = total, {}

    def report(self, task: int, done: int) -> None:
        """By a task, of its own part."""
        self.by_task[task] = done

    def share(self) -> float:
        """Between 0 and 1."""
        return sum(self.by_task.values()) / self.total


@ray.remote(num_cpus=0.5)
def throw(darts: int, task: int, progress: "ray.actor.ActorHandle") -> int:
    """How many of the darts hit the quarter of the circle."""
    source, hits = random.Random(task), 0
    for index in range(1, darts + 1):
        hits += source.random() ** 2 + source.random() ** 2 <= 1
        if index % (darts // 8) == 0:
            progress.report.remote(task, index)  # nobody waits for this one
    ray.get(progress.report.remote(task, darts))
    return hits


progress = Progress.remote(TASKS * DARTS)
waiting = [throw.remote(DARTS, task, progress) for task in range(TASKS)]
results = list(waiting)
shares = [0.0]
while waiting:
    _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=0.1)
    shares.append(ray.get(progress.share.remote()))
assert shares == sorted(shares)
print("the progress never went back and came to", shares[-1])
pi = 4 * sum(ray.get(results)) / (TASKS * DARTS)
assert abs(pi - 3.14159) < 0.05
print(f"pi is about {pi:.1f}")
