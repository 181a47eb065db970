"""Metrics of one's own: counters, gauges and histograms with tags, in actors and in the driver.

    troupe run-as-ray examples/ray/application_metrics.py

Prints:

    handled by the two actors: {'a': 3, 'b': 2}
    the counter is called requests, by ('actor',)
    a tag that was not declared: ValueError
"""

import ray
from ray.util.metrics import Counter, Gauge, Histogram


@ray.remote(num_cpus=0.5)
class Server:
    """Answers requests, and counts them by its name."""

    def __init__(self, name: str) -> None:
        self.name, self.handled = name, 0
        self.requests = Counter(
            "requests", description="Requests that were answered.", tag_keys=("actor",)
        )
        self.requests.set_default_tags({"actor": name})
        self.waiting = Gauge("waiting", description="Requests that wait.", tag_keys=("actor",))
        self.waiting.set_default_tags({"actor": name})
        self.sizes = Histogram(
            "sizes",
            description="Bytes of a request.",
            boundaries=[10, 100, 1000],
            tag_keys=("actor",),
        )
        self.sizes.set_default_tags({"actor": name})

    def handle(self, request: bytes) -> int:
        """Answers with the request's size."""
        self.waiting.set(1)
        self.requests.inc()
        self.sizes.observe(len(request) or 1)
        self.handled += 1
        self.waiting.set(0)
        return len(request)

    def report(self) -> tuple[str, int]:
        """Return the actor's name, and how many calls it has answered."""
        return self.name, self.handled


servers = [Server.remote("a"), Server.remote("b")]
sizes = ray.get([servers[index % 2].handle.remote(b"x" * 10**index) for index in range(5)])
assert sizes == [1, 10, 100, 1000, 10000]
print("handled by the two actors:", dict(ray.get([each.report.remote() for each in servers])))

counter = Counter("requests", description="Requests that were answered.", tag_keys=("actor",))
print(f"the counter is called {counter.info['name']}, by {counter.info['tag_keys']}")
counter.inc(2, tags={"actor": "driver"})
try:
    counter.inc(1, tags={"colour": "red"})
except ValueError as error:
    print("a tag that was not declared:", type(error).__name__)
