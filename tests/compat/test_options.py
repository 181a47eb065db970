"""Options that Ray refuses, Ray's older spellings, and handles of methods as values: as Ray has
them.

Method: programs by `troupe run-as-ray`, each of which says behind a line what Ray prints there;
and, of what only such a program gets, what `import troupe` answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Home
from programs import run_as_ray

HEAD = """import ray
def raised(call, *words):
    try:
        call()
    except Exception as error:
        return type(error).__name__ if not isinstance(error, ValueError) else "ValueError", all(word in str(error) for word in words)
    return "nothing"
"""
PROGRAMS = {
    "a method as a value": """
@ray.remote(num_cpus=0.1)
class Counter:
    def __init__(self): self.n = 0
    def add(self, by=1): self.n += by; return self.n
    @ray.method(num_returns=2)
    def two(self): return 1, 2
@ray.remote(num_cpus=0.1)
def calls(method, *more, named=None):
    return ray.get(method.remote(*more)), ray.get(named["add"].remote())
@ray.remote(num_cpus=0.1)
class Other:
    def keep(self, methods): self.methods = methods
    def call(self): return ray.get(self.methods[0].remote(100))
counter = Counter.remote()
print(ray.get(calls.remote(counter.add, 5, named={"add": counter.add})))                # (5, 6)
print(ray.get(calls.remote(counter.two, named={"add": counter.add})))  # ([1, 2], 7)
print(ray.get(calls.remote(counter.add.options(name="x"), named={"add": ray.get(ray.put(counter.add))})))        # (8, 9)
other = Other.remote()
ray.get(other.keep.remote([counter.add]))
del counter
print(ray.get(other.call.remote()), ray.get(other.call.remote()))                       # 109 209
""",
    "as_future": """
import asyncio, concurrent.futures
@ray.remote(num_cpus=0.1)
class Gate:
    def __init__(self): self.event = asyncio.Event()
    async def open(self): self.event.set()
    async def passed(self): await self.event.wait(); return 7
    async def fails(self): raise KeyError("no")
gate = Gate.remote()
async def main():
    ref = gate.passed.remote()
    future = ref.as_future()
    try:
        await asyncio.wait_for(future, timeout=0.1)
    except asyncio.TimeoutError:
        print(future.cancelled(), asyncio.isfuture(future), future.get_loop() is asyncio.get_running_loop())     # True True True
    await gate.open.remote().as_future()
    print(await ref, await ref.as_future(), await asyncio.gather(ref.as_future(), ray.put(8).as_future()))       # 7 7 [7, 8]
    try:
        await gate.fails.remote().as_future()
    except KeyError as error:
        print(isinstance(error, ray.exceptions.RayTaskError))                           # True
    done, pending = await asyncio.wait([gate.passed.remote().as_future() for _ in range(3)])
    print(sorted(each.result() for each in done), len(pending))  # [7, 7, 7] 0
asyncio.run(main())
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
print(loop.run_until_complete(ray.put(9).as_future()))                                  # 9
""",
    "no order": """
import asyncio
class Plain:
    def f(self): return 1
class Coroutines:
    async def f(self): return 1
print(raised(lambda: ray.remote(allow_out_of_order_execution=False, max_concurrency=2)(Plain).remote(), "max_concurrency=2"))     # ('ValueError', True)
print(raised(lambda: ray.remote(Plain).options(allow_out_of_order_execution=False, max_concurrency=2).remote(), "max_concurrency"))     # ('ValueError', True)
print(raised(lambda: ray.remote(allow_out_of_order_execution=False)(Coroutines).remote(), "coroutines"))                         # ('ValueError', True)
for cls, options in ((Plain, {}), (Plain, {"allow_out_of_order_execution": True}), (Plain, {"max_concurrency": 2, "allow_out_of_order_execution": True}), (Coroutines, {})):
    print(ray.get(ray.remote(num_cpus=0, **options)(cls).remote().f.remote()))          # 1
""",
    "what yields": """
def listed(): return [1]
def yields(): yield 1
for kind in ("dynamic", "streaming"):
    print(raised(lambda: ray.remote(num_returns=kind)(listed), f"num_returns='{kind}' can only be used with generator functions (functions that use 'yield')"))     # ('ValueError', True)
    print(raised(lambda: ray.remote(listed).options(num_returns=kind), "is not a generator function"))      # ('ValueError', True)
    print(raised(lambda: ray.method(num_returns=kind)(listed), "is not a generator function"))              # ('ValueError', True)
    print(raised(lambda: ray.remote(num_returns=kind)(yields)))                         # nothing
print(ray.get(ray.remote(yields).options(num_returns=1).remote()))                      # 1
""",
    "parts of GPUs": """
def f(): pass
class A: pass
function, cls = ray.remote(num_gpus=1.5)(f), ray.remote(num_gpus=2.5)(A)
print(raised(function.remote), raised(function.remote), raised(cls.remote))             # ('ValueError', True) ('ValueError', True) ('ValueError', True)
print(raised(ray.remote(f).options(num_gpus=1.5).remote), raised(ray.remote(A).options(num_gpus=1.5).remote))      # ('ValueError', True) ('ValueError', True)
print(raised(lambda: ray.remote(num_gpus=-1)(f)))  # ('ValueError', True)
print(raised(lambda: ray.remote(num_gpus=-1)(A)), raised(lambda: ray.remote(A).options(num_gpus=-1)))              # ('ValueError', True) ('ValueError', True)
print(raised(lambda: ray.remote(num_cpus="1")(A)), raised(lambda: ray.remote(f).options(num_gpus="1")))            # ('TypeError', True) ('TypeError', True)
print(raised(lambda: ray.remote(resources={"GPU": 1.5})(A)), raised(lambda: ray.remote(A).options(resources={"GPU": 1.5})))      # ('ValueError', True) ('ValueError', True)
""",
    "too large": """
import numpy as np
large = np.zeros(100 * 1024 * 125)
@ray.remote
def f(): return large.shape
@ray.remote
class Actor:
    def f(self): return large.shape
@ray.remote(num_cpus=0)
class Given:
    def __init__(self, array): self.array = array
    def size(self): return self.array.size
print(raised(f.remote, "The remote function __main__.f is too large", "`large`"))       # ('ValueError', True)
print(raised(Actor.remote, "The actor Actor is too large", "`large`"))  # ('ValueError', True)
print(ray.get(Given.remote(np.zeros(12_510_000, dtype=np.uint64)).size.remote()))       # 12510000
""",
    "where twice": """
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
group = ray.util.placement_group([{"CPU": 1}])
other = ray.util.placement_group([{"CPU": 1}])
def f(): return ray.get_runtime_context().get_placement_group_id()
class A:
    f = f
both = "placement_group", "scheduling_strategy"
for thing in (f, A):
    remote = ray.remote(num_cpus=1)(thing)
    strategy = PlacementGroupSchedulingStrategy(group)
    print(raised(lambda: remote.options(scheduling_strategy=strategy, placement_group=group).remote(), *both))                       # ('ValueError', True)
    print(raised(lambda: ray.remote(scheduling_strategy=strategy)(thing).options(placement_group=group).remote(), *both))            # ('ValueError', True)
    print(raised(lambda: ray.remote(placement_group=group)(thing).options(scheduling_strategy=strategy).remote(), *both))            # ('ValueError', True)
    print(raised(lambda: remote.options(placement_group=group, placement_group_bundle_index=3).remote(), "bundle index 3 is invalid"))       # ('ValueError', True)
    print(raised(lambda: remote.options(placement_group=group, placement_group_bundle_index=-2).remote(), "bundle index -2 is invalid"))     # ('ValueError', True)
    print(raised(lambda: remote.options(placement_group=None, placement_group_bundle_index=0).remote(), "bundle index must be -1"))          # ('ValueError', True)
    print(raised(lambda: remote.options(placement_group_bundle_index=0).remote(), "bundle index must be -1"))                                # ('ValueError', True)
g = ray.remote(num_cpus=1, placement_group=group)(f)
print(ray.get(g.remote()) == group.id.hex(), ray.get(g.options(placement_group=other).remote()) == other.id.hex())                   # True True
""",
    "context": """
import warnings
def view():
    context = ray.get_runtime_context()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(context.get()), context.get_actor_name(), context.get_actor_id() is None, context.get_task_id() is None
@ray.remote(num_cpus=0)
class Actor:
    def view(self): return view()
print(view())  # (['job_id', 'namespace', 'node_id'], None, True, True)
print(ray.get(ray.remote(view).remote()))                                               # (['job_id', 'namespace', 'node_id', 'task_id'], None, True, False)
print(ray.get(Actor.remote().view.remote()))                                            # (['actor_id', 'job_id', 'namespace', 'node_id', 'task_id'], '', False, False)
print(ray.get(Actor.options(name="a").remote().view.remote())[1])                       # a
for name in ("node_id", "job_id", "current_placement_group_id"):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        value = getattr(ray.get_runtime_context(), name)
    print([(issubclass(each.category, DeprecationWarning), "Use get_" in str(each.message) and "instead" in str(each.message), each.filename == __file__) for each in told])    # [(True, True, True)]
    print(value is None or len(value.hex()) > 0)                                        # True
with warnings.catch_warnings():
    warnings.simplefilter("error")
    print("node_id" in ray.get_runtime_context().get())                                 # True
""",
    "types of GPUs": """
from ray.util.accelerators import NVIDIA_TESLA_V100, NVIDIA_TESLA_P100
import ray._private.ray_constants as constants
V100 = constants.RESOURCE_CONSTRAINT_PREFIX + NVIDIA_TESLA_V100
ray.init(num_cpus=1, num_gpus=4, resources={V100: 1})
@ray.remote(num_gpus=1, accelerator_type=NVIDIA_TESLA_V100)
def train(): return 1
print(V100, ray.get(train.remote()), ray.cluster_resources()[V100])  # accelerator_type:V100 1 1.0
print(ray.get(train.options(accelerator_type=None, resources={V100: 0.001}).remote()))  # 1
print(ray.wait([train.options(accelerator_type=NVIDIA_TESLA_P100).remote()], timeout=0.5)[0])  # []
""",
    "nodes": """
from ray.cluster_utils import Cluster
cluster = Cluster()
node = cluster.add_node(num_cpus=1, enable_object_reconstruction=True)
ray.init(cluster.address)
print(ray.cluster_resources()["CPU"])                                                   # 1.0
ray.shutdown()
cluster.shutdown()
""",
}


def expected(program: str) -> list[str]:
    """The lines it is to print: what is behind the last `# ` of those that print."""
    return [line.rpartition(" # ")[2].strip() for line in program.splitlines() if " # " in line]


@pytest.mark.parametrize("what", PROGRAMS)
def test_as_ray_answers(home: Home, tmp_path: Path, what: str) -> None:
    done = run_as_ray(home, tmp_path / "script.py", HEAD + PROGRAMS[what])
    lines = done.stdout.splitlines()
    if "for " in PROGRAMS[what]:  # a line in a loop prints each time
        assert set(lines) == set(expected(PROGRAMS[what])), done.stdout
    else:
        assert lines == expected(PROGRAMS[what]), done.stdout


def test_in_other_programs_what_is_wrong_is_said_at_once(home: Home) -> None:
    done = home.python("""import troupe
try:
    troupe.remote(num_gpus=1.5)(lambda: 1)
except ValueError as error:
    print(error)
troupe.init(num_cpus=1)
print([troupe.get(ref) for ref in troupe.remote(lambda: [1, 2]).options(num_returns="streaming").remote()])
""")
    assert (
        done.stdout == "num_gpus must be a fraction of one GPU or whole GPUs, not 1.5\n[1, 2]\n"
    ), done.stderr
