"""Command jobs with `RayDistribution(api="ray")`: the command is the driver of a real Ray cluster
on the job's instances.

Method: as `tests/doors/command_jobs/test_azure_ray.py`, with Ray itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_conftest import Home
from real_rays import LIMIT_S, folders, needs_ray

from troupe.azure import MLClient, RayDistribution, command

pytestmark = [needs_ray, pytest.mark.long]
SCRIPT = """
import ray
ray.init()

@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def square(number):
    import helper
    return helper.square(number)

print(ray.get([square.remote(each) for each in range(4)]), len(ray.nodes()), ray.cluster_resources()["told"], "/troupe/" in ray.__file__, flush=True)
"""


def test_c7_ray_itself_on_the_instances(
    hosts: dict[str, str], shared_home: Home, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("def square(number):\n    return number * number\n")
    jobs = MLClient().jobs
    told = "--resources='{\"told\": 3}'"
    job = jobs.create_or_update(
        command(
            code=str(tmp_path),
            command="python train.py",
            instance_count=2,
            distribution=RayDistribution(
                api="ray", head_node_additional_args=told, worker_node_additional_args=told
            ),
        )
    )
    handle = jobs.handle(jobs.info(job.name))
    handle.result(timeout=LIMIT_S)
    assert [line.partition("] ")[2] for line in handle.logs() if "False" in line] == [
        "[0, 1, 4, 9] 2 6.0 False"
    ]
    assert not folders() and not [
        line for line in shared_home.processes().values() if "raylet" in line
    ]
