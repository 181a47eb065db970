"""Actors that are started again, and names of those that could not be started: as Ray answers.

Method: a constructor that waits for a file where it runs again, so that calls are made for certain
while the actor is being started.
"""

from __future__ import annotations

from pathlib import Path

from conftest import Home
from programs import run_as_ray

RESTARTED = """
import os, sys, threading, time
import ray
from ray.util.state import get_actor

ray.init(num_cpus=4)
gate = sys.argv[1]

@ray.remote(max_restarts=-1)
class Fragile:
    def __init__(self, gate):
        while ray.get_runtime_context().was_current_actor_reconstructed and not os.path.exists(gate):
            threading.Event().wait(0.01)
    def answer(self): return "answer"
    def some(self):
        yield 1
    def die(self): os._exit(1)

def restarting(handle):
    handle.die.options(max_task_retries=0).remote()
    deadline = time.monotonic() + 60
    while get_actor(handle._actor_id.hex()).state != "RESTARTING":
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)

def refused(start):
    try:
        ray.get(start(), timeout=60)
    except ray.exceptions.ActorUnavailableError as error:
        return isinstance(error, ray.exceptions.ActorDiedError), "temporarily unavailable" in str(error)
    return "answered"

@ray.remote(num_cpus=0)
def elsewhere(name):
    handle = ray.get_actor(name)
    return refused(lambda: handle.answer.remote())

@ray.remote(num_cpus=0)
def begun(name):
    return [ray.get_actor(name).answer.options(max_task_retries=0).remote()]             # the actor's calls wait, this one too

plain = Fragile.options(name="plain").remote(gate)
retried = Fragile.options(name="retried", max_task_retries=-1).remote(gate)
print(ray.get([plain.answer.remote(), retried.answer.remote()]))  # ['answer', 'answer']
restarting(plain); restarting(retried)
while refused(plain.answer.remote) != (False, True): pass                                # the first may have met the end of the process
print([refused(plain.answer.remote) for _ in range(3)] == [(False, True)] * 3)          # True
print(refused(plain.answer.options(retry_exceptions=True).remote))  # (False, True)
print(refused(lambda: next(plain.some.options(num_returns="streaming").remote())))  # (False, True)
print(ray.get(elsewhere.remote("plain"), timeout=60))  # (False, True)
waiting = [plain.answer.options(max_task_retries=-1).remote(), retried.answer.remote(), *ray.get(begun.remote("retried"))]
print(ray.wait(waiting, timeout=0)[0])                                                  # []
open(gate, "w").close()
print(ray.get(waiting, timeout=60))  # ['answer', 'answer', 'answer']
print(ray.get(plain.answer.remote(), timeout=60))                                        # answer
"""

NAMES = """
import ray

ray.init(num_cpus=2)

@ray.remote
class Fails:
    def __init__(self): raise KeyError("not today")
    def f(self): return 1

@ray.remote
class Works:
    def f(self): return "works"

for _ in range(2):
    bad = Fails.options(name="taken").remote()
    try: ray.get(bad.f.remote(), timeout=60)
    except ray.exceptions.RayActorError as error: print("KeyError" in str(error))        # True
    try: ray.get_actor("taken")
    except ValueError: print("ValueError")                                              # ValueError
good = Works.options(name="taken").remote()
print(ray.get(good.f.remote()), ray.get_actor("taken") == good)                         # works True
"""

LEFT = """
import threading
import ray

ray.init(num_cpus=2)

@ray.remote
class Busy:
    def hang(self): threading.Event().wait()

busy = Busy.remote()
waiting = busy.hang.options(max_task_retries=-1).remote()
ray.shutdown()
try: ray.get(waiting, timeout=60)
except ray.exceptions.RayActorError: print("RayActorError")
except Exception as error: print(type(error))
"""


def said(text: str) -> str:
    """Return the output that the program's comments promise, line by line."""
    return "".join(
        line.partition("  # ")[2].strip() + "\n" for line in text.splitlines() if "print(" in line
    )


def test_a_call_during_a_restart_is_refused_unless_it_may_be_made_again(
    shared_home: Home, tmp_path: Path
) -> None:
    done = run_as_ray(shared_home, tmp_path / "restarts.py", RESTARTED, str(tmp_path / "gate"))
    assert done.stdout == said(RESTARTED), done.stderr


def test_calls_that_may_be_made_again_without_end_end_with_their_session(
    shared_home: Home, tmp_path: Path
) -> None:
    done = run_as_ray(shared_home, tmp_path / "left.py", LEFT)
    assert done.stdout == "RayActorError\n" and "Recursion" not in done.stderr, done.stderr


def test_the_name_of_an_actor_whose_constructor_raised_is_free(
    shared_home: Home, tmp_path: Path
) -> None:
    done = run_as_ray(shared_home, tmp_path / "names.py", NAMES)
    assert done.stdout.split() == ["True", "ValueError"] * 2 + ["works", "True"], done.stderr
