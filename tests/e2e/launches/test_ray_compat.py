"""`import ray` that means Troupe: a script of Ray's, run by `troupe run-as-ray`; launches; names
that are missing.

Method: scripts as users write them, in processes of their own; where the real Ray is installed too,
it must not be what they get.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home, eventually

import troupe
from troupe import ray_compat
from troupe.launch import ray_launch

SCRIPT = """
import sys
import ray
from ray.exceptions import RayActorError, RayTaskError
from ray.util.placement_group import placement_group
from ray.util.queue import Queue
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from ray.util.state import list_actors

ray.init(num_cpus=4, include_dashboard=False, ignore_reinit_error=True)

@ray.remote
def square(x):
    return x * x

@ray.remote
class Counter:
    def __init__(self, start):
        self.count = start
    def add(self, by):
        self.count += by
        return self.count
    def fail(self):
        raise KeyError("lost")
    def through_a_child(self):
        import ray as again
        assert ray.__version__ == again.__version__
        return ray.get([square.remote(5), Counter.options(num_cpus=0).remote(1).add.remote(1)])

print("tasks", ray.get([square.remote(i) for i in range(4)]))
counter = Counter.options(name="counter").remote(10)
print("actor", ray.get(counter.add.remote(5)), ray.get(ray.get_actor("counter").add.remote(1)))
print("child", ray.get(counter.through_a_child.remote()))
try:
    ray.get(counter.fail.remote())
except RayTaskError as error:
    print("error", isinstance(error, KeyError))
group = placement_group([{"CPU": 1}])
ray.get(group.ready())
inside = Counter.options(scheduling_strategy=PlacementGroupSchedulingStrategy(placement_group=group)).remote(0)
print("group", ray.get(inside.add.remote(1)))
print("state", sorted(each.state for each in list_actors(filters=[("class_name", "=", "Counter")]))[0])
assert ray.cloudpickle.loads(ray.cloudpickle.dumps(square)) is not None and ray.util.get_node_ip_address() == "127.0.0.1"
assert counter._actor_id.hex() == counter._ray_actor_id == ray.get_actor("counter")._actor_id
queue = Queue()
queue.put(ray.put([1, 2]) and "item")
print("queue", queue.get())
ray.kill(counter)
try:
    ray.get(counter.add.remote(1))
except RayActorError:
    print("killed")
print("arguments", sys.argv[1:], __name__)
ray.shutdown()
"""


def run_as_ray(
    home: Home, script: Path, *args: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    return home.run("run-as-ray", str(script), *args, ok=False, env=env)


def test_a_script_of_rays(home: Home, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = run_as_ray(home, script, "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "tasks [0, 1, 4, 9]",
        "actor 15 16",
        "child [25, 2]",
        "error True",
        "group 1",
        "state ALIVE",
        "queue item",
        "killed",
        "arguments ['--epochs', '3'] __main__",
    ]


def test_a_module_and_its_exit_code(home: Home, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import ray, sys\nassert ray.__name__ == 'ray' and __name__ == '__main__'\nsys.exit(7)"
    )
    done = subprocess.run(
        [sys.executable, "-m", "troupe", "run-as-ray", "-m", "job"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 7, done.stderr


def test_an_exception_of_the_script_has_its_traceback(home: Home, tmp_path: Path) -> None:
    script = tmp_path / "bad.py"
    script.write_text("import ray\ndef outer():\n    raise ValueError('no such thing')\nouter()\n")
    done = run_as_ray(home, script)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and str(script) in lines[1], done.stderr
    assert lines[-1] == "ValueError: no such thing" and "runpy" not in done.stderr


def test_a_script_that_is_not_there(home: Home) -> None:
    done = home.run("run-as-ray", "nowhere.py", ok=False)
    assert done.returncode == 2 and "there is no script nowhere.py" in done.stderr
    assert home.run("run-as-ray", ok=False).returncode == 2


def test_ctrl_c_ends_the_script_and_its_cluster(home: Home, tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(
        "import ray, sys\nray.init(num_cpus=1)\nprint('up', flush=True)\nsys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "troupe", "run-as-ray", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130 and errors.rstrip().endswith(b"KeyboardInterrupt"), errors
    eventually(lambda: not home.processes(), what="the end of the cluster")


def test_without_it_ray_is_what_is_installed(home: Home, tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("mine = True")
    done = home.python("import troupe, ray; assert ray.mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    script = tmp_path / "script.py"
    script.write_text("import ray; assert not hasattr(ray, 'mine') and callable(ray.remote)")
    assert run_as_ray(home, script).returncode == 0
    done = home.python(
        "import ray; from troupe import ray_compat; ray_compat.install()", cwd=tmp_path
    )
    assert "RuntimeError: ray was imported before troupe.ray_compat.install()" in done.stderr


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        (
            "import ray.serve",
            "ModuleNotFoundError",
            "ray.serve is not a part of Troupe, which stands in for ray here; use an actor behind "
            "a web server",
        ),
        (
            "from ray.data import Preprocessor",
            "ModuleNotFoundError",
            "use functions for map_batches() and collate_fn=",
        ),
        (
            "from ray.train import TRAIN_DATASET_KEY",
            "ModuleNotFoundError",
            'use "train", the name that ray.train.get_dataset_shard() takes',
        ),
        (
            "from ray.train.lightning import RayDDPStrategy",
            "ModuleNotFoundError",
            "use that library itself in the loop of ray.train.torch.TorchTrainer",
        ),
        ("import ray.util.joblib", "ModuleNotFoundError", "use ray.util.ActorPool"),
        (
            "from ray.util.queue import Nothing",
            "ModuleNotFoundError",
            "ray.util.queue has Empty, Full, Queue",
        ),
        ("import ray; ray.client()", "AttributeError", "ray.client is not a part of Troupe"),
        ("import ray; ray.nonsense", "AttributeError", "ray has "),
        ("import ray; ray.util.nonsense", "AttributeError", "ray.util has ActorPool"),
    ],
)
def test_what_is_missing_is_named_with_what_to_use(
    home: Home, statement: str, error: str, words: str
) -> None:
    done = home.python(f"from troupe import ray_compat\nray_compat.install()\n{statement}")
    assert (
        done.returncode == 1
        and done.stderr.splitlines()[-1].startswith(f"{error}: ")
        and words in done.stderr
    ), done.stderr


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (
            "ray.serve",
            "no attribute 'serve'; for ray.serve, use an actor behind a web server of one's own",
        ),
        (
            "ray.client()",
            "no attribute 'client'; for ray.client, use ray.init('host:port', token_file=...)",
        ),
        ("ray.util.joblib", "no attribute 'joblib'; for ray.util.joblib, use ray.util.ActorPool"),
        ("ray.nonsense", "module 'troupe' has no attribute 'nonsense'"),
    ],
)
def test_what_is_missing_in_troupe_itself_is_named_too(expression: str, words: str) -> None:
    with pytest.raises(AttributeError) as raised:
        eval(expression, {"ray": troupe})
    assert words in str(raised.value) and str(raised.value).startswith("module 'troupe")


def test_modules_of_ray_need_no_import_of_their_own(home: Home) -> None:
    done = home.python(
        "import troupe as ray; ray.util.queue.Queue, ray.util.state.list_actors, "
        "ray.actor.ActorHandle\n"
        "ray.actor.exit_actor()"
    )
    assert (
        done.stderr.splitlines()[-1] == "TypeError: exit_actor() is for code that runs in an actor"
    ), done.stderr


def test_every_name_of_the_table_is_there() -> None:
    """Numbered by no invariant: a name that Troupe renames must not be lost here."""
    from troupe.ray_compat._finder import RayModule
    from troupe.ray_compat._names import MODULES

    for module, names in MODULES.items():
        made = RayModule(module)
        for name in names:
            assert getattr(made, name) is not None, f"{module}.{name}"
        assert set(names) <= set(dir(made))


def test_a_launch_has_the_api_of_troupe(cluster: Home) -> None:
    @ray_launch(processes=2, remote=True)
    def driver() -> list:
        import ray

        @ray.remote(num_cpus=0)
        class Child:
            def where(self) -> str:
                import ray.util

                return ray.util.ActorPool.__module__

        child = Child.remote()
        return [
            type(ray).__name__,
            ray.get(child.where.remote()),
            list(ray.state.available_resources_per_node().values()),
        ]

    assert driver.distributed()[0] == ["RayModule", "troupe.util.actor_pool", [{"CPU": 2.0}]]
    assert not ray_compat.is_installed() and "ray" not in sys.modules


def test_a_launch_with_another_api_is_refused() -> None:
    with pytest.raises(ValueError, match="api must be 'troupe' .* or None, not 'rey'"):
        ray_launch(processes=1, api="rey")(os.getpid)


def test_launches_are_jobs(cluster: Home) -> None:
    from troupe.util import state

    def quick() -> int:
        return 1

    def wrong() -> None:
        raise RuntimeError("no")

    done = ray_launch(processes=1, remote=True)(quick).submit()
    failed = ray_launch(processes=1, remote=True)(wrong).submit()
    assert done.result() == [1]
    with pytest.raises(RuntimeError):
        failed.result()
    (job,) = state.list_jobs(filters=[("status", "=", "SUCCEEDED"), ("job_id", "=", done.id)])
    assert (
        job.job_id == done.id and job.entrypoint.endswith("quick") and state.get_job(done.id) == job
    )
    assert state.get_job(failed.id).status == "FAILED" and "no" in state.get_job(failed.id).message


def test_state_by_rays_names(cluster: Home) -> None:
    from troupe.util import state

    @troupe.remote(num_cpus=0)
    class Named:
        def pid(self) -> int:
            return os.getpid()

    actor = Named.options(name="seen").remote()
    pid = troupe.get(actor.pid.remote(), timeout=TIMEOUT_S)
    (record,) = state.list_actors(filters=[("name", "=", "seen"), ("state", "!=", "DEAD")])
    assert (record.pid, record["state"], record.class_name) == (pid, "ALIVE", "Named")
    assert state.get_actor(record.actor_id) == record and state.get_actor("00") is None
    (node,) = state.list_nodes()
    assert (
        node.node_id == record.node_id
        and node.state == "ALIVE"
        and state.get_node(node.node_id) == node
    )
    group = troupe.util.placement_group([{"CPU": 1}], name="g")
    assert group.wait(TIMEOUT_S)
    (listed,) = state.list_placement_groups(filters=[("name", "=", "g")])
    assert listed.state == "CREATED" and listed.bundles[0]["node_id"] == node.node_id
    assert state.summarize_actors()["cluster"]["summary"]["Named"]["state_counts"]["ALIVE"] >= 1

    @troupe.remote(num_cpus=0)
    def where() -> int:
        return os.getpid()

    runner = troupe.get(where.remote(), timeout=TIMEOUT_S)
    workers = {each.pid: each for each in state.list_workers(filters=[("is_alive", "=", True)])}
    assert workers[pid].worker_id == record.actor_id and workers[runner].node_id == node.node_id
    assert state.get_worker(record.actor_id) == workers[pid] and runner not in {
        each.pid for each in state.list_actors()
    }
    for wrong in ([("name", "<", "x")], [("colour", "=", "x")]):
        with pytest.raises(ValueError, match="filter"):
            state.list_actors(filters=wrong)
    with pytest.raises(AttributeError, match="no 'colour'; it has actor_id"):
        record.colour
    with pytest.raises(ValueError, match="limit"):
        state.list_actors(limit=0)
    troupe.kill(actor)
    troupe.util.remove_placement_group(group)


WORDS = """
import os
import ray
from ray.exceptions import ActorAlreadyExistsError, ActorDiedError, RayTaskError

ray.init(num_cpus=1)

@ray.remote(num_cpus=0)
class Actor:
    def __init__(self, fails=False):
        if fails:
            raise ValueError("of the constructor")
    def call(self):
        raise KeyError("k")
    def leave(self):
        os._exit(3)

def raised(call):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, "|", str(error).splitlines()[0])

actor, killed = Actor.options(name="taken").remote(), Actor.remote()
raised(lambda: ray.get(actor.call.remote()))
raised(lambda: Actor.options(name="taken").remote())
raised(lambda: ray.get(actor.leave.remote()))
raised(lambda: ray.get(Actor.remote(fails=True).call.remote()))
ray.kill(killed)
raised(lambda: ray.get(killed.call.remote()))
group = ray.util.placement_group([{"CPU": 1}])
placed = Actor.options(num_cpus=1, placement_group=group).remote()
ray.wait([placed.call.remote()])
ray.util.remove_placement_group(group)
raised(lambda: ray.get(placed.leave.remote()))
"""


def test_errors_have_the_words_that_programs_look_for(home: Home, tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(WORDS)
    lines = run_as_ray(home, tmp_path / "words.py").stdout.splitlines()
    died = "The actor died unexpectedly before finishing this task."
    for line, words in zip(
        lines,
        (
            ("RayTaskError(KeyError) | ", "call() of actor Actor("),
            (
                "ActorAlreadyExistsError | The name taken (namespace=",
                "is already taken. Please use a different name",
            ),
            (
                f"ActorDiedError | {died} The actor is dead because its worker process has died: ",
                "exit 3",
            ),
            (
                "ActorDiedError(ValueError) | The actor died because of an error raised in its "
                "creation task: ",
                "ValueError: of the constructor",
            ),
            (
                f"ActorDiedError | {died} The actor is dead because it was killed by `ray.kill`: ",
                "",
            ),
            (
                f"ActorDiedError | {died} The actor is dead because its placement group was "
                "removed: ",
                "",
            ),
        ),
        strict=True,
    ):
        assert line.startswith(words[0]) and words[1] in line, line


def test_import_ray_is_what_makes_a_program_one_for_ray() -> None:
    """In a process of its own: what was imported stays."""
    code = """
import sys
from troupe import ray_compat
ray_compat.install(when_imported=True)
assert not ray_compat.is_installed() and "troupe.ray_compat._finder" not in sys.modules
import ray.util
assert ray_compat.is_installed() and type(ray).__name__ == type(ray.util).__name__ == "RayModule"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=TIMEOUT_S)


def test_what_is_installed_again_below_a_program_for_ray(tmp_path: Path) -> None:
    """A package `ray` stands for the installed one; the process is below one that runs as
    `run-as-ray` has it."""
    (tmp_path / "ray.py").write_text("REAL = True\n")
    code = """
from troupe import ray_compat
ray_compat.give_way()
import os, ray, subprocess, sys
assert ray.REAL and not ray_compat.is_installed()
subprocess.run([sys.executable, "-c", "import ray; assert ray.REAL"], check=True)
"""
    environment = {
        **os.environ,
        "TROUPE_STAND_INS": "ray",
        "PYTHONPATH": os.pathsep.join(
            [ray_compat.FOLDER, str(tmp_path), os.environ.get("PYTHONPATH", "")]
        ),
    }
    subprocess.run([sys.executable, "-c", code], check=True, timeout=TIMEOUT_S, env=environment)
