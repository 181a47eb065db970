"""A second program is on the cluster that another one's `ray.init()` made; the command `ray`;
processes of multiprocessing have `ray`.

Method: a program that starts another one by subprocess, as users' programs do, and says what that
one printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually
from programs import run_as_ray

CHILD = """import ray, sys
ray.init({address})
@ray.remote
def add(a, b):
    return a + b
print(ray.get(add.remote(3, 4)), ray.cluster_resources()["mark"], ray.get(ray.get_actor("kept", namespace="ours").read.remote()))
"""
PARENT = """import os, ray, subprocess, sys
context = ray.init(num_cpus=2, resources={{"mark": 5}}, namespace="ours")
@ray.remote(num_cpus=0)
class Kept:
    def read(self):
        return "read"
kept = Kept.options(name="kept").remote()
ray.get(kept.read.remote())
address = context.address_info["address"]
child = sys.argv[1].replace("ADDRESS", repr(address))
done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, env={{**os.environ, {env}}})
print(done.stdout, end="")
print(done.stderr, end="", file=sys.stderr)
assert done.returncode == 0
assert ray.get(kept.read.remote()) == "read"      # its end is not this cluster's
"""
WAYS = {
    "address": ("ADDRESS", ""),
    "named": ("address=ADDRESS", ""),
    "auto": ("'auto'", ""),
    "variable": ("", "'RAY_ADDRESS': address"),
    "variable and auto": ("address='auto'", "'RAY_ADDRESS': address"),
    "localhost": ("ADDRESS.replace('127.0.0.1', 'localhost')", ""),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_child_joins_without_a_token(home: Home, tmp_path: Path, way: str) -> None:
    given, env = WAYS[way]
    done = run_as_ray(
        home, tmp_path / "parent.py", PARENT.format(env=env), CHILD.format(address=given)
    )
    assert done.stdout == "7 5.0 read\n", done.stderr


def test_without_init_it_joins_by_the_variable(home: Home, tmp_path: Path) -> None:
    child = CHILD.replace("ray.init({address})\n", "")
    done = run_as_ray(
        home, tmp_path / "parent.py", PARENT.format(env="'RAY_ADDRESS': address"), child
    )
    assert done.stdout == "7 5.0 read\n" and "joined the cluster at 127.0.0.1:" in done.stderr, (
        done.stderr
    )


def test_without_an_address_it_makes_its_own(home: Home, tmp_path: Path) -> None:
    child = "import ray\nray.init(num_cpus=1)\nprint(ray.cluster_resources().get('mark'))"
    assert run_as_ray(home, tmp_path / "parent.py", PARENT.format(env=""), child).stdout == "None\n"


def test_programs_of_troupe_join_too_by_address(home: Home) -> None:
    done = home.python(
        "import subprocess, sys, troupe\naddress = troupe.init(num_cpus=1).address\n"
        "code = f'import troupe; troupe.init({address!r}); "
        'print(troupe.cluster_resources()["CPU"])\'\n'
        "print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, "
        "check=True).stdout, end='')"
    )
    assert done.stdout == "1.0\n", done.stderr


def test_auto_means_no_cluster_of_another_home(home: Home, tmp_path: Path) -> None:
    other = {"TROUPE_HOME": str(tmp_path / "other")}
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, troupe\ntroupe.init(num_cpus=1)\nprint('up', "
            "flush=True)\nsys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **other},
    )
    assert (
        parent.stdin is not None
        and parent.stdout is not None
        and parent.stdout.readline() == b"up\n"
    )
    done = home.python("import troupe; troupe.init('auto')")
    assert (
        "address 'auto' means the one cluster" in done.stderr and "none is running" in done.stderr
    )
    assert home.python("import troupe; troupe.init('auto')", env=other).returncode == 0
    parent.communicate(timeout=TIMEOUT_S)


def test_it_ends_with_the_first(home: Home, tmp_path: Path) -> None:
    first = tmp_path / "first.py"
    first.write_text(
        "import ray, sys\nprint(ray.init(num_cpus=1).address_info['address'], "
        "flush=True)\nsys.stdin.readline()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-m", "troupe", "run-as-ray", str(first)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdin is not None and parent.stdout is not None
    address = parent.stdout.readline().strip()
    second = tmp_path / "second.py"
    second.write_text(f"""import ray, sys
ray.init({address!r})
@ray.remote
class Waits:
    def wait(self):
        import threading
        threading.Event().wait()
actor = Waits.remote()
ray.get(actor.__ray_ready__.remote())
print("up", flush=True)
try:
    ray.get(actor.wait.remote())
except Exception as error:
    print(isinstance(error, (ray.exceptions.RayError, ConnectionError)), file=sys.stderr)
try:
    while True:      # the head ends after its node
        ray.nodes()
except ConnectionError as error:
    print(error)
""")
    process = subprocess.Popen(
        [sys.executable, "-m", "troupe", "run-as-ray", str(second)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    parent.communicate(timeout=TIMEOUT_S)
    told, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0 and address in told and "True" in errors, (told, errors)
    eventually(lambda: not home.processes(), what="the end of both")


COMMANDS = """import os, ray, subprocess
def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
told = run("ray", "start", "--head", "--port=0", "--num-cpus=1", "--dashboard-host=0.0.0.0", "--include-dashboard=false", "--disable-usage-stats")
address = told.split("ray start --address='")[1].split("'")[0]
run("ray", "start", f"--address={address}", "--num-cpus", "2", "--node-name", "second")
assert address in run("ray", "status") and "second" in run("ray", "status", f"--address={address}")
ray.init()
assert ray.get_runtime_context().gcs_address == address
print(ray.cluster_resources()["CPU"])
ray.shutdown()
ray.init("auto")
ray.shutdown()
run("ray", "stop", "--force")
assert "no cluster" in run("ray", "stop")
ray.init(num_cpus=1)
print(ray.cluster_resources()["CPU"])
"""


def test_the_command_ray(home: Home, tmp_path: Path) -> None:
    assert run_as_ray(home, tmp_path / "script.py", COMMANDS).stdout == "3.0\n1.0\n"


def test_ray_stop_ends_none_that_ray_did_not_start(home: Home, tmp_path: Path) -> None:
    started = home.json("start", "--head", "--port", "0", "--num-cpus", "1")
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        "import ray, subprocess\nsubprocess.run(['ray', 'stop'], "
        "check=True)\nray.init(num_cpus=1)\n"
        "print(ray.get_runtime_context().gcs_address)",
    )
    assert done.stdout.splitlines()[-1] != started["address"] and "no cluster" in done.stdout
    assert home.json("status")["address"] == started["address"]


def test_ray_start_says_what_is_wrong(home: Home, tmp_path: Path) -> None:
    for command, words in (
        (["start"], "give either --head, or --address"),
        (["start", "--address", "127.0.0.1:1"], "needs a token"),
        (["launch"], "No such command 'launch'"),
    ):
        done = run_as_ray(
            home,
            tmp_path / "script.py",
            f"import subprocess, sys\nsys.exit(subprocess.run(['ray', *{command!r}]).returncode)",
            ok=False,
        )
        assert done.returncode != 0 and words in done.stderr, done.stderr
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        "import ray, subprocess, sys\naddress = ray.init(num_cpus=1).address_info['address']\n"
        "sys.exit(subprocess.run(['ray', 'start', '--address', address]).returncode)",
        ok=False,
    )
    assert done.returncode == 1 and "is of a program" in done.stderr, done.stderr


def test_the_command_is_there_for_the_program_alone(home: Home, tmp_path: Path) -> None:
    done = run_as_ray(home, tmp_path / "script.py", "import shutil\nprint(shutil.which('ray'))")
    assert done.stdout.strip().endswith("/ray") and not os.path.exists(done.stdout.strip())


PROCESSES = """import multiprocessing, ray, ray.util.queue
def work(queue):
    import ray
    from ray.exceptions import RayError
    queue.put((type(ray).__name__, issubclass(RayError, Exception), ray.__version__ == version))
version = ray.__version__
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(*queue.get())
    process.join()
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes_of_multiprocessing_have_ray(home: Home, tmp_path: Path, method: str) -> None:
    text = PROCESSES.format(method=method)
    assert run_as_ray(home, tmp_path / "script.py", text).stdout == "RayModule True True\n"
    program = tmp_path / "program.py"
    program.write_text(
        "if __name__ == '__main__':\n    from troupe import ray_compat\n    ray_compat.install()\n"
        + text
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.stdout == "RayModule True True\n", done.stderr


def test_a_forked_child_is_on_its_parents_cluster(home: Home, tmp_path: Path) -> None:
    done = run_as_ray(
        home,
        tmp_path / "script.py",
        """import multiprocessing, ray
@ray.remote
def f():
    return ray.get_runtime_context().get_session_name()
def child(queue):
    queue.put(ray.get(f.remote()))
context = multiprocessing.get_context("fork")
queue = context.Queue()
mine = ray.get(f.remote())
process = context.Process(target=child, args=(queue,))
process.start()
print(queue.get() == mine)
process.join()
print(ray.get(f.remote()) == mine)
""",
    )
    assert done.stdout == "True\nTrue\n" and done.stderr.count("joined the cluster at") == 1, (
        done.stderr
    )
