"""A program written for Ray needs no `ray.init()`: its first call starts a cluster of this machine
and says so, once.

Method: a program for each first call, by `troupe run-as-ray` and with `ray_compat.install()`, in
processes of their own; what `import troupe` alone answers to the same.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Home, eventually
from programs import run_as_ray

LINE = "troupe: no ray.init() before this call: started a cluster of this machine ("
TASK = "@ray.remote\ndef f():\n    return 7\n"
ACTOR = "@ray.remote\nclass A:\n    def f(self):\n        return 7\n"
FIRST = {
    "task": f"{TASK}print(ray.get(f.remote()))",
    "actor": f"{ACTOR}print(ray.get(A.remote().f.remote()))",
    "options": f"{TASK}print(ray.get(f.options(num_cpus=0.5).remote()))",
    "put": "ref = ray.put(7)\nassert ray.is_initialized()\nprint(ray.get(ref))",
    "get": "ray.get([])\nassert ray.is_initialized()\nprint(7)",
    "wait": "ray.wait([])\nassert ray.is_initialized()\nprint(7)",
    "imported": "from ray import put, get\nprint(get(put(7)))\nassert ray.is_initialized()",
    "get_actor": "try:\n    ray.get_actor('nobody')\nexcept ValueError:\n    print(7)\nassert "
    "ray.is_initialized()",
    "context": "assert len(ray.get_runtime_context().get_node_id()) == 32 and "
    "ray.is_initialized()\nprint(7)",
    "get_gpu_ids": "assert ray.get_gpu_ids() == [] and ray.is_initialized()\nprint(7)",
    "group": "group = ray.util.placement_group([{'CPU': 1}])\nray.get(group.ready())\nprint(7)",
    "queue": "from ray.util.queue import Queue\nqueue = Queue()\nqueue.put(7)\nprint(queue.get())",
    "thread": f"import threading\n{TASK}def run():\n    print(ray.get(f.remote()))\nthread = "
    "threading.Thread(target=run)\nthread.start()\nthread.join()",
    "once more": f"{TASK}ray.init(num_cpus=1)\nray.shutdown()\nprint(ray.get(f.remote()))",
}


@pytest.mark.parametrize("what", FIRST)
def test_the_first_call_starts_a_cluster_and_says_so(home: Home, tmp_path: Path, what: str) -> None:
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        f"import ray\nassert not ray.is_initialized()\n{FIRST[what]}\n",
    )
    assert (
        done.stdout == "7\n" and done.stderr.count("troupe:") == 1 and done.stderr.startswith(LINE)
    ), done.stderr


def test_threads_that_call_at_once_have_one_cluster(home: Home, tmp_path: Path) -> None:
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        f"""import ray, threading
{TASK}
seen = []
def run():
    ray.get(f.options(num_cpus=0).remote())
    seen.append(ray.get_runtime_context().get_session_name())
threads = [threading.Thread(target=run) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(len(seen), len(set(seen)))
""",
    )
    assert done.stdout == "8 1\n" and done.stderr.count(LINE) == 1, done.stderr


def test_with_init_nothing_is_said(home: Home, tmp_path: Path) -> None:
    done = run_as_ray(
        home, tmp_path / "script.py", f"import ray\nray.init(num_cpus=1)\n{FIRST['task']}"
    )
    assert done.stdout == "7\n" and "troupe:" not in done.stderr, done.stderr


def test_what_asks_about_the_cluster_starts_none(home: Home, tmp_path: Path) -> None:
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        """import ray
for ask in (ray.nodes, ray.cluster_resources, ray.available_resources, ray.timeline):
    try:
        ask()
    except Exception as error:
        assert not ray.is_initialized()
        print(type(error).__name__)
print(ray.is_initialized(), ray.shutdown())
""",
    )
    assert (
        done.stdout.split() == ["ConnectionError"] * 4 + ["False", "None"]
        and "troupe:" not in done.stderr
    )


def test_nothing_is_started_while_the_program_ends(home: Home, tmp_path: Path) -> None:
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        f"""import atexit, ray
{TASK}
def late():
    try:
        f.remote()
    except Exception as error:
        print(type(error).__name__)
atexit.register(late)       # before init(): it runs after the end of its cluster
ray.init(num_cpus=1)
""",
    )
    assert done.stdout == "ConnectionError\n" and "troupe:" not in done.stderr


def test_by_ones_own_choice_it_stays_explicit(home: Home, tmp_path: Path) -> None:
    script = f"import ray\n{FIRST['task']}"
    done = run_as_ray(
        home, tmp_path / "script.py", script, env={"RAY_ENABLE_AUTO_CONNECT": "0"}, ok=False
    )
    assert done.returncode == 1 and "not connected to a cluster" in done.stderr


def test_of_a_program_that_installs_it(home: Home) -> None:
    done = home.python(
        "from troupe import ray_compat\nray_compat.install()\nimport "
        f"ray\n{ACTOR}print(ray.get(A.remote().f.remote()))"
    )
    assert done.stdout == "7\n" and done.stderr.startswith(LINE), done.stderr


def test_troupe_alone_starts_nothing_by_itself(home: Home) -> None:
    for text in (
        "@troupe.remote\ndef f(): pass\nf.remote()",
        "troupe.util.placement_group([{'CPU': 1}])",
        "troupe.get_actor('nobody')",
    ):
        done = home.python(f"import troupe\n{text}")
        assert (
            done.returncode == 1
            and "ConnectionError: not connected to a cluster: call troupe.init()" in done.stderr
        ), done.stderr


def test_the_cluster_ends_with_a_program_that_is_killed(home: Home, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import os, ray\n{TASK}ray.get(f.remote())\nos.kill(os.getpid(), 9)")
    done = subprocess.run(
        [sys.executable, "-m", "troupe", "run-as-ray", str(script)], capture_output=True, text=True
    )
    assert done.returncode == -9
    eventually(lambda: not home.processes(), what="the end of its cluster")
