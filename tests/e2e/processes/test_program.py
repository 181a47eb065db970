"""A rank, an actor and a task are the user's program: its arguments, its script as `__main__`, its
import path.

Method: scripts are run as a user runs them, on an embedded cluster, on a node of this host and on
one that is another host (--force-tcp); what their ranks, actors and tasks see is printed as JSON.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import TIMEOUT_S, Home

PLACES = ("embedded", "this host", "another host")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, home: Home) -> Iterator[dict[str, str]]:
    """Variables by which a script finds the cluster; none: it makes one."""
    if request.param == "embedded":
        yield {}
        return
    head = home.json("start", "--head", "--no-worker", "--port", "0")
    away = ["--force-tcp"] if request.param == "another host" else []
    home.run(
        "start",
        "--address",
        head["address"],
        "--token-file",
        home.token(),
        "--num-cpus",
        "4",
        *away,
    )
    yield {"TROUPE_ADDRESS": head["address"]}


def run(
    script: Path | list[str],
    *arguments: str,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> Any:
    """The last line of what a script prints, as JSON."""
    command = [str(script)] if isinstance(script, Path) else script
    done = subprocess.run(
        [sys.executable, *command, *arguments],
        capture_output=True,
        text=True,
        timeout=4 * TIMEOUT_S,
        cwd=cwd,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


ARGUMENTS = """
import argparse, json, os, sys
import troupe
from troupe.launch import distributed, ray_launch

REMOTE = "TROUPE_ADDRESS" in os.environ

@distributed(processes=2, remote=REMOTE)
def ranks():
    return sys.argv[1:]

@ray_launch(processes=1, remote=REMOTE)
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    Look = troupe.remote(type("Look", (), {"argv": lambda self: sys.argv[1:]}))
    inside = troupe.get(Look.options(num_cpus=0).remote().argv.remote())
    return parser.parse_args().epochs, sys.argv[0], inside

if __name__ == "__main__":
    print(json.dumps([ranks.distributed(), main.distributed()[0]]))
"""


def test_arguments_of_the_program_are_those_of_its_ranks_its_driver_and_what_these_start(
    place: dict[str, str], tmp_path: Path
) -> None:
    script = written(tmp_path, "train.py", ARGUMENTS)
    given = ["--epochs", "3"]
    assert run(script, *given, env=place) == [[given, given], [3, str(script), given]]


PICKLED = """
import concurrent.futures, json, multiprocessing, os, pickle, sys
import troupe
from troupe.launch import distributed

class Net:
    pass

class Argument:
    pass

def double(x):
    return 2 * x

def put_double(queue, x):
    queue.put((double(x), Net()))

def processes(how):
    context = multiprocessing.get_context(how)
    queue = context.SimpleQueue()
    child = context.Process(target=put_double, args=(queue, 4))
    child.start()
    value, net = queue.get()
    child.join()
    return value, type(net) is Net, child.exitcode

def pool(how):
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(how)) as executor:
        return list(executor.map(double, range(3)))

def ways(argument, function):
    import __main__
    return {
        "pickle": pickle.loads(pickle.dumps(double))(2), "class": pickle.loads(pickle.dumps(Net)) is Net,
        "argument": type(pickle.loads(pickle.dumps(argument))) is type(argument),
        "function": pickle.loads(pickle.dumps(function)) is function, "module": __main__.double is double,
        "fork": processes("fork"), "spawn": processes("spawn"), "forkserver": processes("forkserver"),
        "pool fork": pool("fork"), "pool spawn": pool("spawn"),
        "file": os.path.basename(__main__.__file__), "name": __name__,
    }

def passed(x):
    return x

@distributed(processes=1, remote="TROUPE_ADDRESS" in os.environ)
def train(argument, function):
    return {**ways(argument, function), "net": pickle.dumps(Net())}

@troupe.remote
class Actor:
    def ways(self, argument, function):
        return ways(argument, function)

@troupe.remote
def task(argument, function):
    return ways(argument, function)

def checked(here, there, what):
    assert here == there, (what, {name: (here[name], there.get(name)) for name in here if here[name] != there.get(name)})

if __name__ == "__main__":
    here = ways(Argument(), passed)
    there = train.distributed(Argument(), passed)[0]
    assert isinstance(pickle.loads(there.pop("net")), Net)
    checked(here, there, "rank")
    with troupe.init(os.environ["TROUPE_ADDRESS"]) if "TROUPE_ADDRESS" in os.environ else troupe.init(num_cpus=2):
        checked(here, troupe.get(Actor.options(num_cpus=1).remote().ways.remote(Argument(), passed)), "actor")
        checked(here, troupe.get(task.remote(Argument(), passed)), "task")
    print(json.dumps("all alike"))
"""


def test_what_is_pickled_in_a_rank_actor_or_task_finds_the_script(
    place: dict[str, str], tmp_path: Path
) -> None:
    script = written(tmp_path, "train.py", PICKLED)
    if place:
        script = written(tmp_path / "away", "train.py", PICKLED)
    assert run(script, env=place) == "all alike"


TRAINED = """
import io, json, os, sys
import torch
from troupe.launch import distributed

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return torch.tensor(i)

def collate(parts):
    return sum(int(part) for part in parts)

def spawned(i, path):
    with open(f"{path}-{i}", "w") as file:
        file.write(str(collate([i, 1])))

@distributed(processes=2)
def train(path):
    import torch.distributed as dist
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    got = [None] * dist.get_world_size()
    dist.all_gather_object(got, Net())
    dist.destroy_process_group()
    file = io.BytesIO()
    torch.save(Net(), file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    if rank:
        return [type(each) is Net for each in got], type(loaded) is Net
    torch.multiprocessing.spawn(spawned, args=(path,), nprocs=1)
    loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1, multiprocessing_context="spawn", collate_fn=collate)
    return [type(each) is Net for each in got], type(loaded) is Net, open(f"{path}-0").read(), list(loader)

if __name__ == "__main__":
    print(json.dumps(train.distributed(sys.argv[1])))
"""


def test_torchs_ways_of_pickling_find_the_script_in_ranks(home: Home, tmp_path: Path) -> None:
    script = written(tmp_path, "train.py", TRAINED)
    assert run(script, str(tmp_path / "out")) == [
        [[True, True], True, "1", [1, 5]],
        [[True, True], True],
    ]


PROJECT = """
import helper, json, os, sys, troupe
from troupe.launch import distributed

@troupe.remote
def task():
    return helper.X

@distributed(processes=1, remote="TROUPE_ADDRESS" in os.environ)
def rank():
    return helper.X

if __name__ == "__main__":
    first = rank.distributed()
    with troupe.init(os.environ["TROUPE_ADDRESS"]) if "TROUPE_ADDRESS" in os.environ else troupe.init(num_cpus=1):
        print(json.dumps([first, troupe.get(task.remote())]))
"""


@pytest.fixture(
    params=[pytest.param("below the interpreter's prefix", marks=pytest.mark.long), "elsewhere"]
)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder of a project, as containers have it under /usr/src."""
    folder = tmp_path / "app"
    if request.param != "elsewhere":
        src = Path(sys.base_prefix, "src")
        if not os.access(src, os.W_OK):
            pytest.skip(f"{src} cannot be written to")
        folder = Path(tempfile.mkdtemp(dir=src)) / "app"
    written(folder, "helper.py", "X = 1")
    written(folder, "train.py", PROJECT)
    written(folder, "package/__init__.py", "")
    written(folder, "package/__main__.py", PROJECT)
    yield folder
    if folder.parent != tmp_path:
        shutil.rmtree(folder.parent)


def test_a_project_anywhere_finds_its_modules(home: Home, project: Path) -> None:
    with_path = {"PYTHONPATH": os.pathsep.join(["/opt", os.environ.get("PYTHONPATH", "")])}
    assert run(["train.py"], cwd=project) == [[1], 1]
    assert run(["train.py"], cwd=project, env=with_path) == [[1], 1]
    assert run(project / "train.py", cwd=Path("/")) == [[1], 1]
    assert run(["-m", "package"], cwd=project) == [[1], 1]
    assert run(
        ["-m", "package"],
        cwd=Path("/"),
        env={"PYTHONPATH": f"{project}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    ) == [[1], 1]


VARIABLES = """
import json, os, sys, troupe
from troupe.launch import distributed

REMOTE = "TROUPE_ADDRESS" in os.environ
NAMES = ("SEED_OF_RUN", "REMOVED", "EXPORTED", "HF_HOME", "RANK_OF_MINE", "NOT_NAMED" + "_HERE")

@distributed(processes=1, remote=REMOTE)
def train():
    return {name: os.environ.get(name) for name in NAMES}

@troupe.remote
class Actor:
    def look(self):
        return train._function()
    def child(self):
        return troupe.get(Actor.options(num_cpus=0).remote().look.remote())

if __name__ == "__main__":
    seen = []
    for seed in ("1", "2", None):
        if seed is None:
            del os.environ["SEED_OF_RUN"], os.environ["REMOVED"]
        else:
            os.environ["SEED_OF_RUN"] = seed
        handle = train.submit()
        seen.append(handle.result()[0])
        status = handle.status()
        seen.append([name in status["inherited_env"] for name in NAMES] + [name in status["not_inherited_env"] for name in NAMES])
    os.environ["SEED_OF_RUN"] = "4"
    with troupe.init(os.environ["TROUPE_ADDRESS"]) if REMOTE else troupe.init(num_cpus=1):
        actor = Actor.options(num_cpus=0).remote()
        assert troupe.get(actor.look.remote()) == troupe.get(actor.child.remote())
        seen.append(troupe.get(actor.look.remote()))
    print(json.dumps(seen))
"""


def test_variables_travel_by_one_rule_in_each_launch(place: dict[str, str], tmp_path: Path) -> None:
    script = written(tmp_path, "sweep.py", VARIABLES)
    seen = run(
        script,
        env={
            **place,
            "REMOVED": "no",
            "EXPORTED": "by the shell",
            "HF_HOME": "/h",
            "NOT_NAMED_HERE": "1",
        },
    )
    # A node that the program has started for itself has the shell's variables too, as torchrun's
    # ranks have.
    shell = {} if place else {"EXPORTED": "by the shell", "NOT_NAMED_HERE": "1"}
    nothing = dict.fromkeys(
        ("SEED_OF_RUN", "REMOVED", "EXPORTED", "HF_HOME", "RANK_OF_MINE", "NOT_NAMED_HERE")
    )
    common = {**nothing, **shell, "HF_HOME": "/h"}
    before = {} if place else {"REMOVED": "no"}
    assert seen[0] == {**common, **before, "SEED_OF_RUN": "1"}
    assert seen[2] == {**common, **before, "SEED_OF_RUN": "2"}
    assert seen[4] == common
    assert seen[6] == {**common, "SEED_OF_RUN": "4"}
    away = bool(place)
    assert seen[1] == [
        True,
        False,
        False,
        True,
        False,
        False,
        False,
        away,
        away,
        False,
        False,
        away,
    ]
    assert seen[5][:6] == [False, False, False, True, False, False]


def test_a_launch_says_once_which_variables_came_along_and_which_of_those_it_names_did_not(
    home: Home, tmp_path: Path
) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "2")
    written(tmp_path, "helper.py", "import os\nFLAG = os.environ.get('EXPORTED')\n")
    script = written(
        tmp_path,
        "train.py",
        VARIABLES.replace("import json", "import helper, json")
        .replace(
            "handle = train.submit()\n        seen.append(handle.result()[0])",
            "train.distributed(); handle = train.submit()",
        )
        .replace('"EXPORTED", ', ""),
    )
    Path(script).write_text(
        "import os; os.environ.update({f'KMP_{each}': '1' for each in ('INIT_AT_FORK',)})  # as a "
        "library does\n" + Path(script).read_text()
    )
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=4 * TIMEOUT_S,
        env={
            **os.environ,
            "TROUPE_ADDRESS": head["address"],
            "EXPORTED": "1",
            "NOT_NAMED_HERE": "1",
            "REMOVED": "1",
            "NVTE_FLASH_ATTN": "0",
            "AWS_CA_BUNDLE": "/ca.pem",
            "TF_CLI_CONFIG_FILE": "/terraform",
        },
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in (done.stdout + done.stderr).splitlines() if " · variables " in line]
    assert len(lines) == 3
    taken, _, left = lines[0].partition(" · not taken along: ")
    assert (
        "SEED_OF_RUN" in taken
        and "NVTE_FLASH_ATTN" in taken
        and left == "EXPORTED, REMOVED (inherit_env=)"
    )
    assert not re.search("AWS_|TF_CLI|KMP_|NOT_NAMED", taken), (
        "what no program names and no result depends on"
    )


def test_values_of_variables_are_nowhere_in_a_heads_files_nor_in_what_it_answers(
    home: Home, tmp_path: Path
) -> None:
    head = home.json("start", "--head", "--port", "0", "--num-cpus", "2")
    secret = "wJalrXUtnFEMI-K7MDENG"
    script = written(
        tmp_path,
        "train.py",
        """
import json, os, troupe
from troupe.launch import distributed
os.environ["AWS_SECRET_ACCESS_KEY"] = os.environ.pop("GIVEN")

@distributed(processes=1, remote=True)
def length():
    return len(os.environ["AWS_SECRET_ACCESS_KEY"])

if __name__ == "__main__":
    handle = length.submit()
    print(json.dumps([handle.result(), json.dumps(handle.status())]))
""",
    )
    result, status = run(script, env={"TROUPE_ADDRESS": head["address"], "GIVEN": secret})
    assert result == [len(secret)] and "AWS_SECRET_ACCESS_KEY" in status and secret not in status
    files = [path for path in home.path.rglob("*") if path.is_file()]
    assert any(path.name.startswith("journal.db") for path in files)
    assert [str(path) for path in files if secret.encode() in path.read_bytes()] == []
    assert (
        secret
        not in home.run("status", "--json").stdout + home.run("list", "launches", "--json").stdout
    )


POOL_LIMIT_S = 120.0
POOLS = """
import multiprocessing as mp, sys, troupe
from troupe.launch import distributed
troupe.init(num_cpus=2)

def double(x):
    return 2 * x

def pool():
    with mp.get_context("spawn").Pool(2) as workers:
        first = workers.map(double, [1, 2, 3])
        return first, list(workers.imap(double, [4])), workers.apply(double, (5,))
"""
WHERE = {
    "actor": "class A:\n    def go(self): return pool()\ndef start(): return "
    "troupe.get(troupe.remote(A).remote().go.remote())",
    "task": "def start(): return troupe.get(troupe.remote(pool).remote())",
    "rank": "def start(): return distributed(processes=1, quiet=True)(pool).distributed()[0]",
}


def run_pool(script: Path, where: str, *, guarded: bool) -> subprocess.CompletedProcess:
    call = "print('got', start())"
    script.write_text(
        POOLS
        + WHERE[where]
        + ("\nif __name__ == '__main__':\n    " if guarded else "\n")
        + call
        + "\n"
    )
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=POOL_LIMIT_S
    )


@pytest.mark.parametrize("where", WHERE)
def test_a_pool_without_a_main_guard_ends_with_the_usual_advice(
    home: Home, tmp_path: Path, where: str
) -> None:
    done = run_pool(tmp_path / "script.py", where, guarded=False)
    assert done.returncode == 1 and "got" not in done.stdout, done.stdout
    assert (
        f"a child process of this pool could not import the script {tmp_path / 'script.py'}"
        in done.stderr
    ), done.stderr
    assert "An attempt has been made to start a new process before the" in done.stderr, (
        "what the child says"
    )
    assert done.stderr.count("An attempt has been made") <= 8, (
        "no more children than the pool has, and a few"
    )


@pytest.mark.parametrize("where", ["actor"])
def test_a_pool_with_a_main_guard_works_although_init_stands_outside_of_it(
    home: Home, tmp_path: Path, where: str
) -> None:
    done = run_pool(tmp_path / "script.py", where, guarded=True)
    assert done.stdout.splitlines() == ["got ([2, 4, 6], [8], 10)"], done.stdout + done.stderr
