"""How actors are called in listings and in front of what they print: as their class says, with
their process, as Ray does.

Method: a program prints the pids and texts that are expected; its output is compared with what
stands in front of the actors' lines.
"""

from __future__ import annotations

import re
from pathlib import Path

from conftest import Home
from programs import run_as_ray

PROGRAM = """
import os, sys
import ray
from ray.util.state import get_actor, list_actors

ray.init(num_cpus=4)

@ray.remote(max_restarts=1)
class Model:
    def __init__(self, size):
        self.size = size
        print("is made", flush=True)
    def __repr__(self): return f"Model(size={self.size})\\nand more"
    def say(self): print("hello", flush=True); return os.getpid()
    def warn(self): print("careful", file=sys.stderr, flush=True)

@ray.remote
class Plain:
    def say(self): print("hello", flush=True); return os.getpid()

@ray.remote
class Raises:
    def __repr__(self): raise RuntimeError("no text")
    def say(self): print("hello", flush=True); return os.getpid()

@ray.remote
def task(): print("a task", flush=True); return os.getpid()

model, plain, raises = Model.options(name="named").remote(3), Plain.remote(), Raises.remote()
pids = ray.get([model.say.remote(), plain.say.remote(), raises.say.remote(), task.remote()])
ray.get(model.warn.remote())
print("names", [get_actor(each._actor_id.hex()).repr_name for each in (model, plain, raises)])
print("pids", *pids)
print("listed", [each.repr_name for each in list_actors(filters=[("class_name", "=", "Model")])])
ray.kill(model)
"""


def test_an_actors_own_text_is_its_name(shared_home: Home, tmp_path: Path) -> None:
    done = run_as_ray(shared_home, tmp_path / "names.py", PROGRAM)
    said = done.stdout.splitlines()
    assert "names ['Model(size=3)', '', '']" in said and "listed ['Model(size=3)']" in said, (
        done.stdout
    )
    (pids,) = [line.split()[1:] for line in said if line.startswith("pids")]
    (first,) = [
        line for line in said if line.endswith(" is made")
    ]  # by the name that is known when it is shown
    assert first in (f"(Model pid={pids[0]}) is made", f"(Model(size=3) pid={pids[0]}) is made")
    assert sorted(line for line in said if line.startswith("(") and line != first) == sorted(
        [
            f"(Model(size=3) pid={pids[0]}) hello",
            f"(Plain pid={pids[1]}) hello",
            f"(Raises pid={pids[2]}) hello",
            f"(task pid={pids[3]}) a task",
        ]
    ), done.stdout
    assert f"(Model(size=3) pid={pids[0]}) careful" in done.stderr.splitlines(), done.stderr
    assert "no text" in done.stderr and not re.search(r"^\(\w+ [0-9a-f]{8}\)", done.stdout, re.M)
