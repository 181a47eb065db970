"""Clusters of several nodes in one process's tests: nodes come, go, and leave nothing."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import exceptions
from troupe.cluster_utils import Cluster
from troupe.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@troupe.remote(num_cpus=1)
class Where:
    def node(self) -> str:
        return troupe.get_runtime_context().get_node_id()


def test_nodes_come_and_go(home: Home) -> None:
    with Cluster(
        initialize_head=True, connect=True, head_node_args={"num_cpus": 1, "memory": 1e9}
    ) as cluster:
        second = cluster.add_node(
            num_cpus=2, memory=2e9, resources={"license": 1}, labels={"zone": "b"}
        )
        cluster.wait_for_nodes()
        assert troupe.cluster_resources() == {
            "CPU": 3,
            "license": 1,
            "memory": 3e9,
            "node:127.0.0.1": 2,
        }
        here = troupe.get_runtime_context()
        assert here.get_node_id() == cluster.head_node.node_id and here.get_node_name() == "node-1"
        near = Where.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(here.get_node_id(), soft=False)
        ).remote()
        assert troupe.get(near.node.remote(), timeout=TIMEOUT_S) == cluster.head_node.node_id
        troupe.kill(near)
        actor = Where.options(resources={"license": 1}).remote()
        assert troupe.get(actor.node.remote(), timeout=TIMEOUT_S) == second.node_id
        assert [second] == cluster.worker_nodes and cluster.head_node in cluster.list_all_nodes()
        cluster.remove_node(second)
        cluster.wait_for_nodes()
        with pytest.raises(exceptions.ActorDiedError):
            troupe.get(actor.node.remote(), timeout=TIMEOUT_S)
        assert troupe.cluster_resources() == {"CPU": 1, "memory": 1e9, "node:127.0.0.1": 1}
        third = cluster.add_node(num_cpus=4, node_name="third")
        cluster.wait_for_nodes()
        assert third.alive and {node["NodeName"] for node in troupe.nodes() if node["Alive"]} == {
            "node-1",
            "third",
        }
        with pytest.raises(ValueError, match="no node of this cluster, or was removed before"):
            cluster.remove_node(second)
        with pytest.raises(ValueError, match="named 'third' already"):
            cluster.add_node(node_name="third")
        with pytest.raises(TypeError, match="no parameter 'cpus'"):
            cluster.add_node(cpus=1)
        with pytest.raises(ValueError, match="memory must be a number of bytes"):
            cluster.add_node(memory="much")
        with pytest.raises(ValueError, match="num_cpus must be a number"):
            cluster.add_node(num_cpus=-1)
    assert not troupe.is_initialized()
    eventually(lambda: not home.processes(), what="the end of the cluster")
    with pytest.raises(RuntimeError, match="shut down"):
        cluster.add_node()


def test_a_node_that_is_killed_is_gone_at_once(home: Home) -> None:
    with Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1}) as cluster:
        doomed = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        actor = Where.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(doomed.node_id, soft=False)
        ).remote()
        assert troupe.get(actor.node.remote(), timeout=TIMEOUT_S) == doomed.node_id
        cluster.remove_node(doomed, allow_graceful=False)
        with pytest.raises(exceptions.ActorDiedError):
            troupe.get(actor.node.remote(), timeout=TIMEOUT_S)
        cluster.wait_for_nodes()


def test_actors_of_a_node_that_leaves_are_started_elsewhere_once(home: Home) -> None:
    with Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1}) as cluster:
        leaves = cluster.add_node(num_cpus=1, resources={"license": 1})
        cluster.wait_for_nodes()
        actors = [
            Where.options(
                num_cpus=cpus,
                resources={"license": 0.1} if reserves else None,
                max_restarts=1,
                max_task_retries=-1,
                label_selector={"ray.io/node-id": f"!{cluster.head_node.node_id}"},
            ).remote()
            for cpus, reserves in ((0, False), (0, True), (0, True), (0, False))
        ]
        assert (
            troupe.get([each.node.remote() for each in actors], timeout=TIMEOUT_S)
            == [leaves.node_id] * 4
        )
        stays = cluster.add_node(num_cpus=1, resources={"license": 1})
        cluster.wait_for_nodes()
        cluster.remove_node(leaves)
        assert (
            troupe.get([each.node.remote() for each in actors], timeout=TIMEOUT_S)
            == [stays.node_id] * 4
        )
        assert [each["restarts"] for each in troupe.state.list_actors()] == [1] * 4


def test_calls_wait_for_as_long_as_an_actor_has_no_room_to_be_started_again(home: Home) -> None:
    with Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1}) as cluster:
        doomed = cluster.add_node(num_cpus=1, resources={"license": 1})
        cluster.wait_for_nodes()
        actor = Where.options(resources={"license": 1}, max_restarts=-1).remote()
        assert troupe.get(actor.node.remote(), timeout=TIMEOUT_S) == doomed.node_id
        cluster.remove_node(doomed, allow_graceful=False)
        eventually(
            lambda: (
                [(each["state"], each["restarts"]) for each in troupe.state.list_actors()]
                == [("pending", 1)]
            ),
            what="the head's word that the actor is to be started again",
        )
        called = actor.node.remote()
        ready, _ = troupe.wait([called], timeout=6)
        if ready:  # bound before this handle heard from the head: the next one knows
            with pytest.raises(exceptions.ActorUnavailableError, match="being started again"):
                troupe.get(called)
            called = actor.node.remote()
            ready, _ = troupe.wait([called], timeout=6)
        assert not ready, "after the 5 s in which its death would have been told"
        again = cluster.add_node(num_cpus=1, resources={"license": 1})
        assert troupe.get([called, actor.node.remote()], timeout=TIMEOUT_S) == [again.node_id] * 2


def test_another_process_reaches_it_by_its_address_or_home(home: Home) -> None:
    with Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "memory": 0}) as cluster:
        code = f"import troupe; troupe.init({cluster.address!r}); print(troupe.cluster_resources())"
        auto = home.python(
            "import troupe; troupe.init('auto'); print(troupe.cluster_resources())",
            env={"TROUPE_HOME": str(cluster.home)},
        )
        assert auto.stdout.strip() == "{'CPU': 2.0, 'node:127.0.0.1': 1.0}", auto.stderr
        done = home.python(code, env={"TROUPE_HOME": str(cluster.home)})
        assert done.stdout.strip() == "{'CPU': 2.0, 'node:127.0.0.1': 1.0}", done.stderr
        assert home.python(code).stdout == done.stdout


def test_nothing_is_left_when_the_test_process_is_killed(home: Home) -> None:
    code = (
        "from troupe.cluster_utils import Cluster; import sys; c = Cluster(True); "
        "c.add_node(num_cpus=1); "
        "print(c.home, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait(TIMEOUT_S)
    process.communicate()
    eventually(lambda: not home.processes(), what="the end of the orphaned cluster")


def test_what_does_not_fit_together_is_refused(home: Home) -> None:
    with pytest.raises(ValueError, match="initialize_head=True"):
        Cluster(connect=True)
    with pytest.raises(ValueError, match="initialize_head=True"):
        Cluster(head_node_args={"num_cpus": 1})
    with Cluster() as cluster, pytest.raises(exceptions.GetTimeoutError, match="waited 0 s"):
        cluster._nodes.append(type("Gone", (), {"alive": True, "node_id": "00"})())
        try:
            cluster.wait_for_nodes(timeout=0)
        finally:
            cluster._nodes.clear()
    assert not home.processes()
