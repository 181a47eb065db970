"""Embedded clusters: no address, cold zygote (processes by exec), nothing left after the end,
however it comes."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe.launch import distributed


class Where:
    """Tells its process."""

    def pid(self) -> int:
        return os.getpid()


def test_init_first_actor_shutdown(home: Home) -> None:
    with troupe.init(num_cpus=2, _memory=4e9, resources={"license": 1}) as context:
        assert context.address and context.dashboard_url == "" and troupe.is_initialized()
        assert (
            context.address_info["node_ip_address"] == "127.0.0.1"
            and context["gcs_address"] == context.address
        )
        assert (
            context.python_version == platform.python_version()
            and context.ray_version.startswith("2.")
        )
        actor = troupe.remote(
            Where
        ).remote()  # no zygote is ready yet: by exec, or by the light one
        assert troupe.get(actor.pid.remote(), timeout=30) > 0
        assert troupe.cluster_resources() == {
            "CPU": 2,
            "license": 1,
            "memory": 4e9,
            "node:127.0.0.1": 1,
        }
    assert not troupe.is_initialized()
    troupe.shutdown(wait_for_processes=True, _exiting_interpreter=True)  # nothing is left to do
    eventually(lambda: not home.processes(), what="the end of the cluster")
    troupe.shutdown()


def test_a_launch_without_init_keeps_its_cluster(home: Home) -> None:
    triple = distributed(processes=4)(lambda x: 3 * x)
    assert triple.distributed(2) == [6] * 4
    before = set(home.processes())
    assert triple.distributed(3) == [9] * 4
    assert {pid for pid in before if pid in home.processes()}


def test_nothing_is_left_when_the_driver_is_killed(home: Home) -> None:
    code = "import troupe, sys; troupe.init(num_cpus=1); print('up', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGKILL)
    process.wait(TIMEOUT_S)
    process.communicate()
    eventually(lambda: not home.processes(), what="the end of the orphaned cluster")


STARTS = {
    "init": "cluster = troupe.init(num_cpus=1)",
    "Cluster": "from troupe.cluster_utils import Cluster; cluster = Cluster(True)",
}


@pytest.mark.parametrize("starts", STARTS)
def test_a_forked_child_keeps_no_cluster_of_a_driver_that_is_killed(
    home: Home, starts: str
) -> None:
    code = f"""
import os, signal, sys, troupe
{STARTS[starts]}
child = os.fork()
if child == 0:
    signal.pause()
print(child, flush=True)
signal.pause()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        process.kill()
        process.wait(TIMEOUT_S)
        eventually(
            lambda: set(home.processes()) == {child},
            what="the end of the cluster, while the child lives",
        )
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate()


NAMED_LIKE_A_LIBRARY = """
import os, ray, sys
MINE = True
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "imported"), "a") as file:
    print(os.getpid(), file=file)
@ray.remote
def told():
    return os.getppid()
ray.get(told.remote())
"""
USES_IT = """
import json, os, ray, tqdm
@ray.remote(num_cpus=0)
class Actor:
    def look(self):
        import tqdm
        return tqdm.MINE, os.getpid(), os.getppid()
def look():
    import tqdm
    return tqdm.MINE, os.getpid(), os.getppid()
actor = Actor.remote()
found = [(tqdm.MINE, os.getpid(), 0), ray.get(actor.look.remote()), ray.get(ray.remote(look).remote())]
print(json.dumps({"found": found, "workers": sorted({worker for _, _, worker in found[1:]} | {ray.get(tqdm.told.remote())})}))
"""


def test_a_file_named_like_a_library_is_run_by_the_program_alone(
    home: Home, tmp_path: Path
) -> None:
    """In the directory and in PYTHONPATH; torch imports tqdm.

    What runs it is the program, and asks of it: no other cluster is started by it.
    """
    pytest.importorskip("torch")
    (tmp_path / "tqdm.py").write_text(NAMED_LIKE_A_LIBRARY)
    (tmp_path / "main.py").write_text(USES_IT)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "troupe", "run-as", "main.py"],
        capture_output=True,
        text=True,
        timeout=3 * TIMEOUT_S,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [mine for mine, _, _ in told["found"]] == [True] * 3 and len(told["workers"]) == 1
    assert {int(each) for each in (tmp_path / "imported").read_text().split()} == {
        pid for _, pid, _ in told["found"]
    }


def test_a_program_that_has_its_own_of_a_loaded_library_gets_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zygote has loaded the library already: the process starts anew, and finds the program's
    own."""
    pytest.importorskip("torch")
    pytest.importorskip("tqdm")  # torch imports it
    (tmp_path / "tqdm.py").write_text("MINE = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def look() -> tuple[bool, bool]:
        import tqdm

        return getattr(tqdm, "MINE", False), "torch" in sys.modules

    class Looks:
        """Tells of its process."""

        def look(self) -> tuple[bool, bool]:
            return look()

    with troupe.init(num_cpus=2):
        eventually(
            lambda: all(node["zygote_ready"] for node in troupe.state.list_nodes()),
            what="the zygote",
        )
        actor = troupe.remote(num_cpus=0)(Looks).remote()
        found = [
            troupe.get(actor.look.remote(), timeout=TIMEOUT_S),
            troupe.get(troupe.remote(look).remote(), timeout=TIMEOUT_S),
            *distributed(processes=1)(look).distributed(),
        ]
        assert found == [(True, False)] * 3, "forked, with the library's"


def test_a_launch_from_an_actor_runs_on_the_cluster_that_it_is_in(home: Home) -> None:
    class Launches:
        """Starts no cluster of its own, in a forked child neither."""

        def launch(self) -> list[int]:
            return distributed(processes=1)(os.getppid).distributed()

        def launch_from_a_child(self) -> int:
            read, write = os.pipe()
            if os.fork() == 0:
                os.write(write, str(self.launch()[0]).encode())
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as answer:
                return int(answer.read())

        def worker(self) -> int:
            return os.getppid()

    with troupe.init(num_cpus=2):
        actor = troupe.remote(num_cpus=0)(Launches).remote()
        worker = troupe.get(actor.worker.remote(), timeout=TIMEOUT_S)
        assert troupe.get(actor.launch.remote(), timeout=TIMEOUT_S) == [worker]
        assert troupe.get(actor.launch_from_a_child.remote(), timeout=TIMEOUT_S) == worker


def test_a_launch_runs_without_torch_and_only_its_use_fails(home: Home, tmp_path: Path) -> None:
    stub = tmp_path / "torch"
    stub.mkdir()
    (stub / "__init__.py").write_text(
        "raise ImportError('libcudart.so: cannot open shared object file')"
    )
    (tmp_path / "torch-2.dist-info").mkdir()  # the node's own interpreters find it installed, too
    code = """
import os
from troupe.launch import distributed
print(distributed(processes=2)(lambda: (os.environ["RANK"], os.environ["MASTER_ADDR"], "MASTER_PORT" in os.environ)).distributed())
def train():
    import torch
distributed(processes=2)(train).distributed()
"""
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert "[('0', '127.0.0.1', False), ('1', '127.0.0.1', False)]\n" in done.stdout, done.stderr
    assert (
        done.returncode == 1
        and "ImportError: libcudart.so: cannot open shared object file" in done.stderr
    )


def test_an_environment_variable_read_at_import_gets_a_fresh_interpreter(home: Home) -> None:
    @distributed(processes=1, runtime_env={"env_vars": {"PYTHONHASHSEED": "0"}})
    def hashes() -> int:
        return hash("troupe")

    with troupe.init(num_cpus=2):
        expected = subprocess.run(
            [sys.executable, "-c", "print(hash('troupe'))"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        ).stdout
        assert hashes.distributed() == [int(expected)]


@pytest.mark.parametrize(
    "example",
    ["digits_ddp.py", "driver_on_rank0.py", "recover_digits.py", "recover_digits.py replace"],
)
def test_examples(home: Home, example: str) -> None:
    pytest.importorskip("torch")
    if "digits" in example:
        pytest.importorskip("sklearn")
    example, *arguments = example.split()
    path = os.path.join(os.path.dirname(__file__), "..", "..", "..", "examples", example)
    done = subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if example == "digits_ddp.py":
        assert "[0] epoch 10" in done.stdout and "test accuracy" in done.stdout
    elif example == "recover_digits.py":
        assert (
            f"[0] epoch 10 on {4 if arguments else 3} ranks" in done.stdout
            and "test accuracy" in done.stdout
        )
        assert arguments or "SIGKILL" in done.stdout
    else:
        assert (
            "marker: succeeded, exit 0" in done.stderr
            and "results by rank: [1, None, None, None]" in done.stdout
        )
