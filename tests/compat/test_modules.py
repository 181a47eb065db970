"""Ray's smaller modules and functions do what they say: each in a program as users write it, by
`troupe run-as-ray`.

Method: one program per module; what it prints was compared with Ray's own answer, but for what is
of Troupe alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Home
from programs import run_as_ray

PROGRAMS = {
    "as_completed": """
@ray.remote
class Gate:
    def __init__(self): self.open = {}
    def let(self, i): self.open[i] = True
    def is_open(self, i): return self.open.get(i, False)
@ray.remote(num_cpus=0)
def after(gate, i):
    while not ray.get(gate.is_open.remote(i)): pass
    return i
gate = Gate.remote()
refs = [after.remote(gate, i) for i in range(3)]
seen = []
ray.get(gate.let.remote(2))
values = ray.util.as_completed(refs, chunk_size=1)
seen.append(next(values))
ray.get(gate.let.remote(0)); ray.get(gate.let.remote(1))
seen += sorted(values)
print(seen)                                                                             # [2, 0, 1]
print(sorted(ray.get(list(ray.util.as_completed([ray.put(i) for i in range(25)], yield_obj_refs=True)))) == list(range(25)))      # True
for wrong in ({"chunk_size": 0}, {"num_returns": 2}):
    try: list(ray.util.as_completed([ray.put(1)], **wrong))
    except ValueError: print("ValueError")  # ValueError ValueError
""",
    "map_unordered": """
@ray.remote
def twice(x): return 2 * x
taken = []
def items():
    for i in range(40):
        taken.append(i)
        yield i
values = ray.util.map_unordered(twice, items(), backpressure_size=4, chunk_size=2)
first = next(values)
print(len(taken) <= 8, sorted([first, *values]) == [2 * i for i in range(40)])          # True True
try: list(ray.util.map_unordered(twice, [1], backpressure_size=1, chunk_size=2))
except ValueError: print("ValueError")                                                  # ValueError
""",
    "tqdm_ray": """
from ray.experimental import tqdm_ray
@ray.remote
def work():
    return sum(tqdm_ray.tqdm(range(10), desc="inside"))
import sys
bar = tqdm_ray.tqdm(total=4, desc="here", unit="steps")
for _ in range(4): bar.update(1)
bar.set_description("there"); bar.close(); bar.close()
print(ray.get(work.remote()), bar.n, bar.total)                                         # 45 4 4
""",
    "locations": """
import numpy as np
from ray.experimental import get_object_locations
@ray.remote
def make(n): return np.zeros(n)
large, small = make.remote(1_000_000), make.remote(2)
found = get_object_locations([large, small])
print(found[large]["node_ids"] == [ray.get_runtime_context().get_node_id()], found[large]["object_size"] >= 8_000_000, found[small]["node_ids"])   # True True []
@ray.remote
def never():
    import threading
    threading.Event().wait()
late = never.remote()
try: get_object_locations([late], timeout_ms=10)
except ray.exceptions.GetTimeoutError: print("late")                                    # late
ray.cancel(late)
""",
    "metrics": """
from ray.util.metrics import Counter, Gauge, Histogram
import pickle
counter = Counter("requests", description="answered", tag_keys=("path",)).set_default_tags({"path": "/"})
counter.inc(); counter.inc(2, tags={"path": "/x"})
Counter("requests", tag_keys=("path",)).inc(5, tags={"path": "/"})
gauge = Gauge("depth"); gauge.set(3); gauge.set(1)
histogram = Histogram("seconds", boundaries=[0.1, 1.0])
for value in (0.05, 0.1, 0.5, 7): histogram.observe(value)
print(counter.info)                                                                     # {'name': 'requests', 'description': 'answered', 'tag_keys': ('path',), 'default_tags': {'path': '/'}}
from troupe.util.metrics import collected
by_name = {(each["name"], *each["tags"].values()): each for each in collected()}
print(by_name["requests", "/"]["value"], by_name["requests", "/x"]["value"], by_name["depth",]["value"], by_name["seconds",]["buckets"], by_name["seconds",]["count"])     # 6.0 2.0 1.0 [2, 1, 1] 4
for wrong in (lambda: Counter(""), lambda: counter.inc(-1), lambda: counter.inc(tags={"other": "x"}), lambda: Counter("c", tag_keys=("a",)).inc(),
              lambda: Histogram("h", boundaries=[])):
    try: wrong()
    except ValueError: print("ValueError", end=" ")
print()  # ValueError ValueError ValueError ValueError ValueError
for wrong in (lambda: Counter("c", tag_keys="a"), lambda: gauge.set("x"), lambda: counter.inc(tags={"path": 1})):
    try: wrong()
    except TypeError: print("TypeError", end=" ")
print()  # TypeError TypeError TypeError
@ray.remote
class Actor:
    def __init__(self, counter): self.counter = counter
    def count(self):
        from troupe.util.metrics import collected
        self.counter.inc()
        return [(each["value"], each["tags"]) for each in collected()]
print(ray.get(Actor.remote(counter).count.remote()))  # [(1.0, {'path': '/'})]
""",
    "timeline": """
import json, os, tempfile
@ray.remote(max_restarts=0)
class Dies:
    def die(self): os._exit(3)
actor = Dies.remote()
try: ray.get(actor.die.remote())
except ray.exceptions.RayActorError: pass
name = os.path.join(tempfile.mkdtemp(), "trace.json")
print(ray.timeline(name))                                                               # None
trace = json.load(open(name))
print(any("Dies" in each["name"] for each in trace), all({"ph", "ts", "name", "pid", "tid"} <= set(each) for each in ray.timeline()))        # True True
""",
    "ids": """
@ray.remote
class Actor:
    def ids(self):
        context = ray.get_runtime_context()
        return context.actor_id.hex() == context.get_actor_id(), context.task_id.hex() == context.get_task_id(), isinstance(context.actor_id, ray.ActorID)
context = ray.get_runtime_context()
actor = Actor.remote()
print(ray.get(actor.ids.remote()))  # (True, True, True)
print(context.node_id.hex() == context.get_node_id(), context.job_id.hex() == context.get_job_id(), context.actor_id, context.worker_id.hex() == context.get_worker_id())     # True True None True
ref = ray.put(1)
print(isinstance(ref, ray.ObjectID), ray.NodeID.from_hex(context.get_node_id()) == context.node_id, ray.ActorID.nil().is_nil(), ray.ActorID.from_random().is_nil())   # True True True False
group = ray.util.placement_group([{"CPU": 1}])
print(isinstance(group.id, ray.PlacementGroupID), group.id.binary().hex() == group.id.hex())                                                       # True True
import pickle
print(type(pickle.loads(pickle.dumps(context.node_id))).__name__, ray.ActorID is ray.NodeID)                                                        # HexID True
""",
    "accelerators": """
ids = ray.get_runtime_context().get_accelerator_ids()
print(sorted(ids), set(map(tuple, ids.values())))                                       # ['FURIOSA', 'GPU', 'HPU', 'MBLT', 'NPU', 'RBLN', 'TPU', 'TTNPU', 'neuron_cores'] {()}
from ray.util.accelerators import NVIDIA_A100, AMD_INSTINCT_MI210
print(NVIDIA_A100, AMD_INSTINCT_MI210)  # A100 AMD-Instinct-MI210
""",
    "resources": """
import os
total, free = ray.cluster_resources(), ray.available_resources()
print(total["object_store_memory"] > 0, total["object_store_memory"] == free["object_store_memory"], "object_store_memory" in ray.nodes()[0]["Resources"])     # True True True
print(os.path.isdir(CONTEXT.address_info["session_dir"]), CONTEXT.address_info["node_id"] == ray.get_runtime_context().get_node_id())                           # True True
""",
    "transport": """
import asyncio
@ray.remote(enable_tensor_transport=True)
class Actor:
    @ray.method(tensor_transport="gloo")
    def make(self): return [1, 2]
    def other(self): return 3
    def take(self, value): return sum(value)
first, second = Actor.remote(), Actor.remote()
print(ray.get(second.take.remote(first.make.remote())), ray.get(first.other.options(tensor_transport="GLOO").remote()))     # 3 3
try:
    ray.method(tensor_transport="nccl")
except ValueError as error:
    print(error)          # tensor_transport='nccl' is not supported: 'auto' leaves tensors in their actor and finds the way to whoever takes them, 'object_store' sends them with the value; groups over NCCL: troupe.util.collective
""",
    "queue": """
from ray.util.queue import Queue
queue = Queue()
queue.put(1)
actor = queue.actor
print(ray.get(actor.empty.remote()), ray.get(actor.full.remote()))  # False False
queue.shutdown(); queue.shutdown()
print(queue.actor)                                                                      # None
for call in (lambda: ray.get(actor.empty.remote()), queue.qsize, lambda: queue.put(2), lambda: queue.get_nowait()):
    try: call()
    except ray.exceptions.RayActorError: print("RayActorError", end=" ")
print()  # RayActorError RayActorError RayActorError RayActorError
forced = Queue(maxsize=1)
forced.put(1)
print(ray.get(forced.actor.full.remote()))                                              # True
forced.shutdown(force=True)
print(forced.actor)                                                                     # None
""",
    "groups": """
from ray.experimental.collective import create_collective_group, destroy_collective_group, get_collective_groups
@ray.remote(num_cpus=0)
class Actor: pass
a, b, c = Actor.remote(), Actor.remote(), Actor.remote()
group = create_collective_group([a, b], backend="gloo")
for again in ([a, b], [b, c]):
    try: create_collective_group(again, backend="gloo", name="again")
    except RuntimeError as error: print("is in" in str(error), end=" ")
print(len(get_collective_groups([a])))  # True True 1
destroy_collective_group(group)
other = create_collective_group([b, c], backend="gloo")
print(other.get_rank(c))                                                                # 1
destroy_collective_group(other)
""",
    "log_once": """
from ray.util.debug import log_once, reset_log_once, disable_log_once_globally
print(log_once("a"), log_once("a"), log_once("b"))  # True False True
reset_log_once("a"); print(log_once("a"), ray.util.log_once("b"))                       # True False
reset_log_once(); disable_log_once_globally(); print(log_once("a"))                     # False
""",
    "annotations": """
from ray.util.annotations import PublicAPI, DeveloperAPI, Deprecated, RayDeprecationWarning
import warnings
@PublicAPI(stability="beta")
@DeveloperAPI
class C: pass
@Deprecated(message="use g", warning=True)
def f(): return 1
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    print(C.__name__, f(), seen[0].category is RayDeprecationWarning)                   # C 1 True
""",
    "logging": """
config = ray.LoggingConfig(encoding="JSON", log_level="DEBUG")
print(config.to_dict()["encoding"], ray.LoggingConfig.from_dict({"encoding": "TEXT", "x": 1}).encoding)     # JSON TEXT
try: ray.LoggingConfig(encoding="XML")
except ValueError: print("ValueError")                                                  # ValueError
""",
    "runtime_env": """
from ray.runtime_env import RuntimeEnv, RuntimeEnvConfig
env = RuntimeEnv(env_vars={"MODE": "eval"}, config=RuntimeEnvConfig(setup_timeout_seconds=30))
@ray.remote(runtime_env=env)
def mode():
    import os
    return os.environ["MODE"]
print(ray.get(mode.remote()), env["config"]["setup_timeout_seconds"])                   # eval 30
""",
}


def expected(text: str) -> list[str]:
    """Return the output that the comments at the ends of lines promise."""
    return " ".join(
        line.split("# ", 1)[1].strip() for line in text.splitlines() if "# " in line
    ).split()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of(home: Home, tmp_path: Path, name: str) -> None:
    if name == "groups":
        pytest.importorskip("torch")
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        f"import ray\nCONTEXT = ray.init(num_cpus=2)\n{PROGRAMS[name]}",
    )
    assert done.stdout.split() == expected(PROGRAMS[name]), done.stdout + done.stderr
    if name == "tqdm_ray":
        assert (
            "here: 100% 4/4 steps" in done.stderr
            and "there: 100% 4/4" in done.stderr
            and "inside: 100% 10/10 it" in done.stderr
        ), done.stderr
