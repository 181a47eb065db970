"""A queue between producers and consumers in different processes, of a size that makes the
producers wait.

    troupe run-as-ray examples/ray/work_queue.py

Prints:

    taken by two consumers: 30 items, none twice
    the sum of what was produced: 435
    nothing left: Empty
"""

import ray
from ray.util.queue import Empty, Queue

DONE = None


@ray.remote(num_cpus=0.5)
def produce(queue: Queue, numbers: list[int]) -> int:
    """Puts them one by one; put() waits while the queue is full."""
    for number in numbers:
        queue.put(number)
    return len(numbers)


@ray.remote(num_cpus=0.5)
def consume(queue: Queue) -> list[int]:
    """Takes until it is told that there is no more."""
    taken = []
    while (item := queue.get()) is not DONE:
        taken.append(item)
    return taken


queue = Queue(maxsize=4, actor_options={"num_cpus": 0})
consumers = [consume.remote(queue) for _ in range(2)]
producers = [produce.remote(queue, list(range(start, 30, 2))) for start in range(2)]
assert sum(ray.get(producers)) == 30
for _ in consumers:
    queue.put(DONE)

taken = [number for each in ray.get(consumers) for number in each]
assert sorted(taken) == list(range(30))
print(f"taken by two consumers: {len(taken)} items, none twice")
print("the sum of what was produced:", sum(taken))
try:
    queue.get(block=False)
except Empty:
    print("nothing left: Empty")
queue.shutdown()
