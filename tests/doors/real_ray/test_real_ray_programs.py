"""Programs around a real Ray cluster of a launch: written for Troupe's stand-in of Ray, and with
GPUs.

Method: a script by `troupe run-as-ray` on a cluster of this machine; a node with GPUs that are
none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import Home
from real_rays import LIMIT_S, folders, needs_ray

pytestmark = [needs_ray, pytest.mark.long]
BELOW = """
import ray
from troupe.launch import ray_launch

@ray_launch(processes=1, api="ray", quiet=True)
def drive():
    ray.init(log_to_driver=False)
    return ray.__file__, ray.get(ray.remote(lambda: __import__("ray").__file__).remote())

if __name__ == "__main__":
    print(type(ray).__name__, *("/troupe/" in each for each in drive.distributed()[0]))
"""
GPUS = """
import os
from troupe.launch import ray_launch

@ray_launch(gpus=2, api="ray", remote=True, quiet=True)
def drive():
    import ray
    ray.init(log_to_driver=False)

    @ray.remote(num_gpus=1)
    def seen():
        return len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))

    return ray.cluster_resources()["GPU"], ray.get([seen.remote(), seen.remote()])

if __name__ == "__main__":
    print(*drive.distributed()[0])
"""


def test_a13_ray_itself_in_a_launch_of_a_program_whose_ray_is_troupe(
    shared_home: Home, tmp_path: Path
) -> None:
    (tmp_path / "below.py").write_text(BELOW)
    done = subprocess.run(
        [sys.executable, "-m", "troupe", "run-as-ray", str(tmp_path / "below.py")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "RayModule False False", (
        done.stdout + done.stderr
    )
    assert not folders()


def test_a13_ray_has_the_gpus_of_the_launch(shared_home: Home, tmp_path: Path) -> None:
    (tmp_path / "gpus.py").write_text(GPUS)
    started = shared_home.json(
        "start", "--head", "--port", "0", "--num-cpus", "4", "--num-gpus", "4"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "gpus.py")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "TROUPE_ADDRESS": started["address"]},
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "2.0 [1, 1]", (
        done.stdout + done.stderr
    )
    assert not folders()
