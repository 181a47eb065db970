"""`@ray_launch(api="ray")`: a real Ray cluster on the launch's nodes, whose driver the function is.

Method: two workers on one machine, launches over both, and a look at /proc and at Ray's folders
when they are over.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from real_rays import FOLDER, LIMIT_S, folders, needs_ray, up

import troupe
from troupe import exceptions
from troupe.launch import ray_launch

pytestmark = needs_ray


def test_a13_the_function_is_the_driver_of_a_ray_cluster_on_the_launchs_nodes(
    hosts: dict[str, str], shared_home: Home
) -> None:
    @ray_launch(processes=4, cpus_per_rank=0.5, strategy="SPREAD", remote=True, api="ray")
    def drive(word: str) -> dict[str, Any]:
        import stat

        import ray

        assert not ray.is_initialized()
        ray.init()

        @ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
        def task(number: int) -> int:
            return number * number

        @ray.remote(num_cpus=0)
        class Counter:
            def add(self, number: int) -> int:
                return number + 1

        token = os.environ["RAY_AUTH_TOKEN_PATH"]
        return {
            "word": word,
            "module": ray.__file__,
            "squares": ray.get([task.remote(each) for each in range(4)]),
            "added": ray.get(Counter.remote().add.remote(1)),
            "nodes": sorted(node["NodeName"] for node in ray.nodes()),
            "cpus": ray.cluster_resources()["CPU"],
            "mode": stat.S_IMODE(os.stat(token).st_mode),
            "folder": os.path.dirname(token),
            "auth": os.environ["RAY_AUTH_MODE"],
            "usage": os.environ["RAY_USAGE_STATS_ENABLED"],
        }

    value, *others = drive.submit("said").result(timeout=LIMIT_S)
    assert others == [None] * 3, "one result for each rank"
    assert "/troupe/" not in value.pop("module"), "`import ray` is Ray itself"
    folder = value.pop("folder")
    assert value == {
        "word": "said",
        "squares": [0, 1, 4, 9],
        "added": 2,
        "nodes": ["a", "b"],
        "cpus": 2.0,
        "mode": 0o600,
        "auth": "token",
        "usage": "0",
    }
    assert Path(folder).name.startswith(FOLDER) and not folders(), (
        "nothing is left when the launch has succeeded"
    )
    assert not [
        line
        for line in shared_home.processes().values()
        if "raylet" in line or "gcs_server" in line
    ]


@pytest.mark.parametrize(
    ("process", "node", "words"),
    [
        (
            "gcs_server --",
            0,
            r"Ray's gcs_server on [ab] was killed by SIGKILL \(host .*, pid \d+\), and ended the cluster",
        ),
        pytest.param(
            "raylet/raylet --",
            1,
            r"Ray's raylet on [ab] was killed by SIGKILL",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "raylet/raylet --",
            0,
            r"Ray's raylet on [ab] was killed by SIGKILL",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "log_monitor.py",
            1,
            r"Ray's log_monitor on [ab] was killed by SIGKILL",
            marks=pytest.mark.long,
        ),
    ],
    ids=["head", "raylet", "the head's raylet", "log_monitor"],
)
def test_a13_the_end_of_a_process_of_rays_ends_all_and_is_named(
    hosts: dict[str, str], shared_home: Home, tmp_path: Path, process: str, node: int, words: str
) -> None:
    cluster = up(shared_home, tmp_path)
    assert cluster.nodes == 2 and len(cluster.folders) == 2
    os.kill(cluster.process(process, node), signal.SIGKILL)
    with pytest.raises(exceptions.RayProcessDiedError, match=words) as failed:
        cluster.handle.result(timeout=LIMIT_S)
    error = failed.value
    assert isinstance(error, exceptions.LaunchError) and isinstance(
        error.cause, exceptions.RayProcessDiedError
    )
    assert (
        error.cause.signal == signal.SIGKILL
        and error.cause.process in process
        and error.cause.host == os.uname().nodename
    )
    eventually(cluster.is_gone, what="the end of all that Ray had there")


@pytest.mark.long
def test_a13_the_drivers_own_end_ends_ray(
    hosts: dict[str, str], shared_home: Home, tmp_path: Path
) -> None:
    cluster = up(shared_home, tmp_path)
    os.kill(cluster.pid, signal.SIGKILL)
    with pytest.raises(exceptions.LaunchError, match="rank 0 was killed by SIGKILL"):
        cluster.handle.result(timeout=LIMIT_S)
    eventually(cluster.is_gone, what="the end of all that Ray had there")


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("RayNode", r"what keeps Ray on [ab] has ended"),
        ("_ray_cluster.keeper", r"Ray's keeper on [ab] was killed by SIGKILL"),
    ],
    ids=["actor", "keeper"],
)
def test_a13_what_keeps_ray_on_a_node_is_killed(
    hosts: dict[str, str], shared_home: Home, tmp_path: Path, what: str, words: str
) -> None:
    cluster = up(shared_home, tmp_path)
    kept_by = [pid for pid, line in shared_home.processes().items() if what in line]
    os.kill(kept_by[-1], signal.SIGKILL)
    with pytest.raises(exceptions.RayProcessDiedError, match=words):
        cluster.handle.result(timeout=LIMIT_S)
    eventually(cluster.is_gone, what="the end of all that Ray had there")


@pytest.mark.long
@pytest.mark.parametrize("when", ["while it runs", "while it starts"])
def test_a13_a_cancelled_launch_leaves_nothing(
    hosts: dict[str, str], shared_home: Home, tmp_path: Path, when: str
) -> None:
    from real_rays import lives

    if when == "while it runs":
        handle = up(shared_home, tmp_path).handle
    else:
        handle = lives.submit(str(tmp_path / "up"))
        eventually(
            lambda: [line for line in shared_home.processes().values() if "gcs_server" in line],
            timeout=LIMIT_S,
            what="a head",
        )
    handle.cancel()
    with pytest.raises(exceptions.LaunchCancelledError):
        handle.result(timeout=LIMIT_S)
    eventually(
        lambda: (
            not folders()
            and not [
                line
                for line in shared_home.processes().values()
                if "raylet" in line or "gcs_server" in line
            ]
        ),
        what="the end of all that Ray had there",
    )


@pytest.mark.long
def test_a13_ctrl_c_in_the_caller_ends_all(
    hosts: dict[str, str], shared_home: Home, tmp_path: Path
) -> None:
    before, file = folders(), tmp_path / "up"
    code = f"from real_rays import lives\nlives.distributed({str(file)!r})"
    here = Path(__file__).parent
    caller = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=here,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "TROUPE_ADDRESS": troupe.state._session.current().address,
            "PYTHONPATH": os.pathsep.join(
                [str(here), str(here.parents[1]), os.environ.get("PYTHONPATH", "")]
            ),
        },
    )
    eventually(
        lambda: file.exists() or caller.poll() is not None,
        timeout=LIMIT_S,
        what="the driver of a Ray cluster",
    )
    caller.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in caller.communicate(timeout=LIMIT_S)[1]
    eventually(
        lambda: (
            folders() == before
            and not [line for line in shared_home.processes().values() if "raylet" in line]
        ),
        what="the end of all that Ray had there",
    )


@pytest.mark.long
def test_a13_two_launches_on_the_same_nodes_do_not_meet(
    hosts: dict[str, str], shared_home: Home, tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    first, second = up(shared_home, tmp_path), up(shared_home, tmp_path / "b")
    assert first.address != second.address and (first.nodes, second.nodes) == (2, 2)
    os.kill(first.process("gcs_server --"), signal.SIGKILL)
    with pytest.raises(exceptions.RayProcessDiedError):
        first.handle.result(timeout=LIMIT_S)
    eventually(first.is_gone, what="the end of the first")
    began = (tmp_path / "b" / "up").stat().st_mtime
    assert (
        second.handle.status()["state"] == "running"
        and time.time() > began
        and len(second.process_names()) >= 3
    )
    second.handle.cancel()
    eventually(second.is_gone, timeout=TIMEOUT_S, what="the end of the second")


@pytest.mark.long
def test_a13_an_error_of_the_function_is_its_own(hosts: dict[str, str], shared_home: Home) -> None:
    @ray_launch(processes=1, remote=True, api="ray")
    def fails() -> None:
        import ray

        ray.init()
        raise KeyError("lr")

    with pytest.raises(KeyError, match="lr"):
        fails.submit().result(timeout=LIMIT_S)
    eventually(lambda: not folders(), what="the end of all that Ray had there")
