"""The operations of `ray microbenchmark` (Ray 2.60, python/ray/_private/ray_perf.py), for whoever
is called `ray` here.

Run by ray_compare.py in a process of its own: `ray_compare_program.py troupe|ray SECONDS [ROW...]`;
prints one JSON object of rates. Shapes are Ray's: batches, sizes, numbers of clients. "1:1
threaded-actor calls sync" alone is not of it.
"""

import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report import rate  # noqa: E402

WHICH, SECONDS = sys.argv[1], float(sys.argv[2])
if WHICH == "troupe":
    import troupe as ray
    from troupe.util import placement_group, remove_placement_group
else:
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group

CLIENTS = 4
SERVERS = 2  # Ray takes half the CPUs; at least two, so that 1:n is not 1:1
GROUPS = 100
ROWS = {}


@ray.remote
def small_value():
    return b"ok"


@ray.remote
def put_small():
    for _ in range(100):
        ray.put(0)


@ray.remote
def put_large():
    for _ in range(10):
        ray.put(np.zeros(10 * 1024 * 1024, dtype=np.int64))


@ray.remote(num_cpus=0)
class Actor:
    def small_value(self):
        return b"ok"

    def small_value_arg(self, x):
        return b"ok"

    def small_value_batch(self, count):
        ray.get([small_value.remote() for _ in range(count)])

    def containing_refs(self, count):
        return [ray.put(1) for _ in range(count)]


@ray.remote(num_cpus=0)
class AsyncActor:
    async def small_value(self):
        return b"ok"

    async def small_value_with_arg(self, x):
        return b"ok"


@ray.remote(num_cpus=0)
class Client:
    def __init__(self, servers):
        self.servers = servers

    def small_value_batch(self, count):
        refs = []
        for server in self.servers:
            refs.extend([server.small_value.remote() for _ in range(count)])
        ray.get(refs)

    def small_value_batch_arg(self, count):
        x = ray.put(0)
        refs = []
        for server in self.servers:
            refs.extend([server.small_value_arg.remote(x) for _ in range(count)])
        ray.get(refs)


@ray.remote
def work(actors, count):
    ray.get([actors[i % len(actors)].small_value.remote() for i in range(count)])


def row(name):
    """A row's function makes what it needs and returns (what is timed, operations in it)."""
    return lambda function: ROWS.setdefault(name, function)


@row("single client get calls")
def _():
    value = ray.put(0)
    return lambda: ray.get(value), 1


@row("single client put calls")
def _():
    return lambda: ray.put(0), 1


@row("multi client put calls")
def _():
    return lambda: ray.get([put_small.remote() for _ in range(10)]), 1000


@row("single client put gigabytes")
def _():
    array = np.zeros(100 * 1024 * 1024, dtype=np.int64)
    return lambda: ray.put(array), 8 * 0.1


@row("multi client put gigabytes")
def _():
    return lambda: ray.get([put_large.remote() for _ in range(10)]), 10 * 8 * 0.1


@row("single client tasks and get batch")
def _():
    return lambda: ray.get([small_value.remote() for _ in range(1000)]), 1


@row("single client get object containing 10k refs")
def _():
    actor = Actor.remote()  # Ray's program has a task make it
    value = actor.containing_refs.remote(10_000)
    ray.get(value)
    return lambda: (actor, ray.get(value)), 1  # the actor owns what is inside


@row("single client wait 1k refs")
def _():
    def wait():
        left = [small_value.remote() for _ in range(1000)]
        while left:
            _, left = ray.wait(left)

    return wait, 1


@row("single client tasks sync")
def _():
    return lambda: ray.get(small_value.remote()), 1


@row("single client tasks async")
def _():
    return lambda: ray.get([small_value.remote() for _ in range(1000)]), 1000


@row("multi client tasks async")
def _():
    actors = [Actor.remote() for _ in range(CLIENTS)]
    return lambda: ray.get([each.small_value_batch.remote(2500) for each in actors]), 2500 * CLIENTS


@row("1:1 actor calls sync")
def _():
    actor = Actor.remote()
    return lambda: ray.get(actor.small_value.remote()), 1


@row("1:1 actor calls async")
def _():
    actor = Actor.remote()
    return lambda: ray.get([actor.small_value.remote() for _ in range(1000)]), 1000


@row("1:1 actor calls concurrent")
def _():
    actor = Actor.options(max_concurrency=16).remote()
    return lambda: ray.get([actor.small_value.remote() for _ in range(1000)]), 1000


@row("1:1 threaded-actor calls sync")
def _():
    actor = Actor.options(max_concurrency=16).remote()
    return lambda: ray.get(actor.small_value.remote()), 1


@row("1:n actor calls async")
def _():
    client = Client.remote([Actor.remote() for _ in range(SERVERS)])
    return lambda: ray.get(client.small_value_batch.remote(5000)), 5000 * SERVERS


@row("n:n actor calls async")
def _():
    actors = [Actor.remote() for _ in range(SERVERS)]
    return lambda: ray.get([work.remote(actors, 5000) for _ in range(CLIENTS)]), 5000 * CLIENTS


@row("n:n actor calls with arg async")
def _():
    clients = [Client.remote([Actor.remote()]) for _ in range(SERVERS)]
    return lambda: ray.get(
        [each.small_value_batch_arg.remote(1000) for each in clients]
    ), 1000 * SERVERS


@row("1:1 async-actor calls sync")
def _():
    actor = AsyncActor.remote()
    return lambda: ray.get(actor.small_value.remote()), 1


@row("1:1 async-actor calls async")
def _():
    actor = AsyncActor.remote()
    return lambda: ray.get([actor.small_value.remote() for _ in range(1000)]), 1000


@row("1:1 async-actor calls with args async")
def _():
    actor = AsyncActor.remote()
    return lambda: ray.get([actor.small_value_with_arg.remote(i) for i in range(1000)]), 1000


@row("1:n async-actor calls async")
def _():
    client = Client.remote([AsyncActor.remote() for _ in range(SERVERS)])
    return lambda: ray.get(client.small_value_batch.remote(5000)), 5000 * SERVERS


@row("n:n async-actor calls async")
def _():
    actors = [AsyncActor.remote() for _ in range(SERVERS)]
    return lambda: ray.get([work.remote(actors, 5000) for _ in range(CLIENTS)]), 5000 * CLIENTS


@row("placement group create/removal")
def _():
    def cycle():
        groups = [placement_group([{"custom": 0.001}]) for _ in range(GROUPS)]
        for group in groups:
            group.wait(timeout_seconds=30)
        for group in groups:
            remove_placement_group(group)

    return cycle, GROUPS


def main():
    chosen = sys.argv[3:] or list(ROWS)
    rates = {}
    for name in chosen:
        options = {"include_dashboard": False} if WHICH == "ray" else {}
        ray.init(num_cpus=8, resources={"custom": 100}, log_to_driver=False, **options)
        try:
            timed, operations = ROWS[name]()
            rates[name] = rate(timed, operations, SECONDS)
        finally:
            timed = None
            ray.shutdown()
        print(f"{WHICH:7s} {name:46s} {rates[name]:12.1f}", file=sys.stderr, flush=True)
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
