"""Requests that no node can hold: programs written for Ray wait for a node that joins, with the
reason on stderr; Troupe's own are refused at once unless `infeasible="wait"` is given.

Method: programs on a cluster of one small node, to which a larger one is added once it is seen that
they wait.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home
from programs import run_as_ray

import troupe
from troupe import exceptions
from troupe.cluster_utils import Cluster
from troupe.launch import distributed

WAITS = """
import ray
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1})
group = ray.util.placement_group([{"CPU": 4}])
removed = ray.util.placement_group([{"CPU": 100}])

@ray.remote(num_cpus=3)
def task():
    return 7

@ray.remote(resources={"license": 1})
class Actor:
    def f(self):
        return 8

refs = [task.remote(), Actor.remote().f.remote()]
assert not group.wait(0.2) and ray.wait(refs, num_returns=1, timeout=0.2)[0] == []
assert ray.util.placement_group_table(group)["state"] == "PENDING"
ray.util.remove_placement_group(removed)
assert ray.util.placement_group_table(removed)["state"] == "REMOVED"
cluster.add_node(num_cpus=8, resources={"license": 1})
assert group.wait(60)
print(ray.get(refs, timeout=60))
"""


def test_a_program_written_for_ray_waits_for_a_node(home: Home, tmp_path: Path) -> None:
    done = run_as_ray(home, tmp_path / "script.py", WAITS, timeout=4 * TIMEOUT_S)
    assert done.stdout.splitlines()[-1] == "[7, 8]"
    assert done.stderr.count(" waits for a node that can hold it: ") == 4, done.stderr


def test_troupes_own_programs_are_refused_or_wait_as_they_say(home: Home) -> None:
    @troupe.remote(num_cpus=0, resources={"license": 1})
    def task() -> int:
        return 7

    @troupe.remote(num_cpus=0, resources={"license": 1})
    class Actor:
        def f(self) -> int:
            return 8

    with pytest.raises(ValueError, match="infeasible must be 'refuse' or 'wait'"):
        Actor.options(infeasible="maybe")
    with Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1}) as cluster:
        with pytest.raises(exceptions.ActorUnschedulableError):
            Actor.remote()
        with pytest.raises(exceptions.PlacementError):
            troupe.util.placement_group([{"license": 1}])
        with pytest.raises(exceptions.TaskUnschedulableError):
            troupe.get(task.remote(), timeout=TIMEOUT_S)
        refs = [
            Actor.options(infeasible="wait").remote().f.remote(),
            task.options(infeasible="wait").remote(),
        ]
        group = troupe.util.placement_group([{"license": 0.5}], infeasible="wait")
        handle = distributed(processes=2, remote=True, infeasible="wait")(lambda: 9).submit()
        assert (
            troupe.wait(refs, timeout=0.2)[0] == []
            and not group.wait(0.2)
            and not handle.status()["outcome"].startswith("s")
        )
        cluster.add_node(num_cpus=2, resources={"license": 1.5})
        assert troupe.get(refs[:1], timeout=TIMEOUT_S) == [8]
        assert group.wait(TIMEOUT_S) and handle.result(timeout=TIMEOUT_S) == [9, 9]


def test_a_program_and_a_cluster_may_wait_by_policy(home: Home) -> None:
    head = home.json("start", "--head", "--no-worker", "--port", "0", "--infeasible", "wait")
    with troupe.init(head["address"]):

        @troupe.remote(num_cpus=1)
        class Actor:
            def child(self) -> int:
                return troupe.get(
                    Actor.options(num_cpus=0, resources={"license": 1}).remote().one.remote()
                )

            def one(self) -> int:
                return 1

        ref = Actor.remote().child.remote()
        home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            home.token(),
            "--num-cpus",
            "1",
            "--node-name",
            "one",
        )
        home.run(
            "start",
            "--address",
            head["address"],
            "--token-file",
            home.token(),
            "--num-cpus",
            "1",
            "--node-name",
            "two",
            "--resources",
            '{"license": 1}',
        )
        assert troupe.get(ref, timeout=TIMEOUT_S) == 1
    refusing = home.json("start", "--head", "--new", "--port", "0", "--num-cpus", "1")
    with troupe.init(refusing["address"], infeasible="wait"):
        group = troupe.util.placement_group([{"license": 1}])
        assert not group.wait(0.2)
        home.run(
            "start",
            "--address",
            refusing["address"],
            "--token-file",
            home.token("--cluster", refusing["cluster_id"]),
            "--num-cpus",
            "1",
            "--node-name",
            "three",
            "--resources",
            '{"license": 1}',
        )
        assert group.wait(TIMEOUT_S)
