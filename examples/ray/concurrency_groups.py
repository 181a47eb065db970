"""Concurrency groups: methods of an actor in groups of their own, so that slow ones never keep the
others waiting.

    troupe run-as-ray examples/ray/concurrency_groups.py

Prints:

    while both loads hang: ok
    two loads at once, a third waits: 2
    now all have ended: ['a', 'b', 'c']
    by the call's own choice: ok
"""

import threading

import ray


@ray.remote(num_cpus=0.5, concurrency_groups={"io": 2, "health": 1})
class Store:
    """Loads by "io", at most two at once; says that it is well by "health"."""

    def __init__(self) -> None:
        self.finish = threading.Event()
        self.two = threading.Semaphore(0)
        self.loading: list[str] = []

    @ray.method(concurrency_group="io")
    def load(self, name: str) -> str:
        """Hangs until it is let go."""
        self.loading.append(name)
        self.two.release()
        self.finish.wait()
        return name

    @ray.method(concurrency_group="health")
    def health(self) -> str:
        """Answers at once."""
        return "ok"

    @ray.method(concurrency_group="health")
    def how_many(self) -> int:
        """How many loads have begun, once there are two."""
        self.two.acquire(), self.two.acquire()
        return len(self.loading)

    def let_go(self) -> None:
        """Set the event; runs in the default group, of one thread."""
        self.finish.set()


store = Store.remote()
loads = [store.load.remote(name) for name in "abc"]
count = ray.get(store.how_many.remote(), timeout=60)
print("while both loads hang:", ray.get(store.health.remote(), timeout=60))
print("two loads at once, a third waits:", count)
ready, _ = ray.wait(loads, num_returns=3, timeout=0)
assert ready == []
ray.get(store.let_go.remote(), timeout=60)
print("now all have ended:", ray.get(loads, timeout=60))
print(
    "by the call's own choice:",
    ray.get(store.health.options(concurrency_group="io").remote(), timeout=60),
)
