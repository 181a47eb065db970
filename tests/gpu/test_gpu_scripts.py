"""Programs as users run them: a script with a decorator, scripts written for Ray, one by `troupe
run`, a driver with and without a GPU.

Method: each in a process of its own, for what loads a tensor of the GPU has a CUDA context from
then on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import card
import pytest
from conftest import Home

pytestmark = pytest.mark.gpu
LIMIT_S = 90.0


def test_an_embedded_cluster_has_the_gpu(home: Home) -> None:
    """A script with nothing but the decorator, from a process that has a CUDA context of its
    own."""
    done = home.python(
        """
import torch
from troupe.launch import distributed
before = torch.ones(1, device="cuda")

@distributed(gpus=1, timeout=60)
def rank():
    import torch, torch.distributed as dist
    dist.init_process_group()
    value = torch.ones(1, device="cuda")
    dist.all_reduce(value)
    return value.item()

print(rank.distributed(), rank(), before.item())
""",
        timeout=LIMIT_S,
    )
    assert done.stdout.splitlines()[-1:] == ["[1.0] 1.0 1.0"], done.stdout + done.stderr


SCRIPT = """
import sys, torch, troupe
from troupe.launch import distributed

@distributed(gpus=1, timeout=120, remote=True)
def rank(given=None):
    import torch
    return torch.arange(6.0, device="cuda") if given is None else (str(given.device), float(given.sum()))

def shown(value):
    return value if isinstance(value, tuple) else (str(value.device), float(value.sum()))

with troupe.init():
    def attempt(make):
        try:
            print(shown(make()))
        except Exception as error:
            print(type(error).__name__, isinstance(error, RuntimeError), str(error).splitlines()[0])
    here = None
    attempt(lambda: rank.distributed()[0])
    if torch.cuda.is_available():
        here = torch.arange(4.0, device="cuda")
        attempt(lambda: rank.distributed(here)[0])
        attempt(lambda: rank.distributed(given=here)[0])
        attempt(lambda: troupe.get(troupe.put(here)))
        attempt(lambda: troupe.get(troupe.remote(num_gpus=1)(lambda x: shown(x)).remote(troupe.put(here)), timeout=60))
        attempt(lambda: troupe.get(troupe.remote(num_gpus=1)(lambda: shown(here)).remote(), timeout=60))
        attempt(lambda: troupe.get(troupe.remote(lambda x: shown(x)).remote(here), timeout=60))
"""


def test_a_driver_with_a_gpu_gets_and_gives_tensors(home: Home) -> None:
    done = home.python(SCRIPT, timeout=2 * LIMIT_S)
    lines = done.stdout.splitlines()
    assert lines[:6] == ["('cuda:0', 15.0)", *["('cuda:0', 6.0)"] * 5], done.stdout + done.stderr
    assert "this process has no GPU" in lines[6] and "True" in lines[6], lines


def test_a_driver_without_one_is_told(home: Home) -> None:
    """As of a laptop that launches on a cluster."""
    home.json("start", "--head", "--port", "0", "--num-cpus", "4")
    script = SCRIPT.replace("troupe.init()", 'troupe.init("auto")')
    done = home.python(script, timeout=LIMIT_S, env={"CUDA_VISIBLE_DEVICES": ""})
    assert done.stdout.splitlines() and "this process has no GPU" in done.stdout, (
        done.stdout + done.stderr
    )


RAY_SCRIPT = """
import os, ray
ray.init(num_cpus=4)
kind = next(name for name in ray.cluster_resources() if name.startswith("accelerator_type:"))
assert ray.cluster_resources()["GPU"] >= 1

@ray.remote(num_gpus=1)
def task():
    import torch
    return ray.get_gpu_ids(), ray.get_runtime_context().get_accelerator_ids()["GPU"], os.environ["CUDA_VISIBLE_DEVICES"], \\
        torch.ones(4, device="cuda").sum().item()

@ray.remote
def plain():
    import torch
    return ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"], torch.cuda.is_available()

@ray.remote(num_gpus=0.5, accelerator_type=kind.partition(":")[2])
class Actor:
    def ids(self):
        return ray.get_gpu_ids(), ray.get_runtime_context().get_accelerator_ids()["GPU"], os.environ["CUDA_VISIBLE_DEVICES"]

print(ray.get(task.remote(), timeout=60))
print(ray.get(plain.remote(), timeout=60))
actors = [Actor.remote() for _ in range(2)]
print(ray.get([actor.ids.remote() for actor in actors], timeout=60))
print(ray.available_resources().get("GPU", 0) == ray.cluster_resources()["GPU"] - 1)
ready, waiting = ray.wait([task.options(num_gpus=ray.cluster_resources()["GPU"]).remote()], timeout=0.2)
print(len(ready), len(waiting))
for actor in actors:
    ray.kill(actor)
print(ray.get(waiting[0], timeout=60)[0])
"""


def test_a_script_written_for_ray(home: Home, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(RAY_SCRIPT)
    done = home.run("run-as-ray", str(script), ok=False, timeout=LIMIT_S)
    everything = list(range(card.count()))
    assert done.stdout.splitlines() == [
        "([0], ['0'], '0', 4.0)",
        "([], '', False)",
        "[([0], ['0'], '0'), ([0], ['0'], '0')]",
        "True",
        "0 1",
        str(everything),
    ], done.stdout + done.stderr


def test_variables_of_ray_that_leave_the_devices_alone(home: Home, tmp_path: Path) -> None:
    """Programs that choose a device themselves say so to Ray by this variable."""
    script = tmp_path / "script.py"
    script.write_text("""
import os, ray
ray.init(num_cpus=2, runtime_env={"env_vars": {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}})

@ray.remote(num_gpus=0.5)
class Actor:
    def look(self):
        import torch
        return os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count() >= 1, ray.get_gpu_ids()

print(ray.get(Actor.remote().look.remote(), timeout=60))
""")
    done = home.run("run-as-ray", str(script), ok=False, timeout=LIMIT_S)
    assert done.stdout.splitlines() == ["(None, True, [0])"], done.stdout + done.stderr


def test_a_program_by_troupe_run(home: Home, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("""
import troupe
from troupe.launch import distributed

troupe.init()

@distributed(gpus=1, remote=True, timeout=60)
def rank():
    import torch, torch.distributed as dist
    dist.init_process_group()
    value = torch.ones(1, device="cuda")
    dist.all_reduce(value)
    return value.item()

print(rank.distributed())
""")
    done = subprocess.run(
        [sys.executable, "-m", "troupe", "run", "--nodes", "1", "--", sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=dict(os.environ),
    )
    assert done.returncode == 0 and "[1.0]" in done.stdout, done.stdout + done.stderr


def test_a_module_that_begins_with_cuda_is_loaded_ahead(home: Home, tmp_path: Path) -> None:
    """If it were loaded before the fork nothing could use CUDA after it: the process is made anew,
    and the card is not held by the other."""
    (tmp_path / "makes_a_context.py").write_text(
        "import torch\nSTATE = torch.ones(1, device='cuda')\n"
    )
    (tmp_path / "script.py").write_text("""
import troupe

class Actor:
    def look(self):
        import makes_a_context, torch
        return makes_a_context.STATE.item(), torch.ones(4, device="cuda").sum().item()

with troupe.init(num_cpus=4):
    for _ in range(2):
        actor = troupe.remote(num_gpus=1, preimport=["makes_a_context"])(Actor).remote()
        print(troupe.get(actor.look.remote(), timeout=60))
        troupe.kill(actor)
""")
    done = subprocess.run(
        [sys.executable, "script.py"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=tmp_path,
        env=dict(os.environ),
    )
    assert done.stdout.splitlines() == ["(1.0, 4.0)"] * 2, done.stdout + done.stderr
