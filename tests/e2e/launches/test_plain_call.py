"""A function is called here as rank 0 of 1; ranks that are alone, and drivers, may make process
groups of their own.

Method: the README's function and the tutorials' ways of making groups, in programs of their own,
called plainly, in launches of one rank and in drivers; what they return and which variables are
left is looked at. In gangs another address is refused at once.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Home

pytest.importorskip("torch")

README = """
import os
from troupe.launch import distributed

@distributed(processes=4)
def train(epochs):
    import torch, torch.distributed as dist
    dist.init_process_group()
    total = torch.ones(1)
    dist.all_reduce(total)
    return dist.get_rank(), dist.get_world_size(), int(total), os.environ["LOCAL_RANK"]

"""
# Ways of tutorials: ranks of their own by spawn, at a port of their own, or at the one in the
# environment.
TUTORIAL = """
import os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def setup(rank, world_size, port):
    if port == "own":
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", sys.argv[1]
    else:
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", sys.argv[1])
    dist.init_process_group("gloo", rank=rank, world_size=world_size)

def demo(rank, world_size, port, results):
    setup(rank, world_size, port)
    total = torch.ones(1)
    dist.all_reduce(total)
    results.put(int(total))
    dist.destroy_process_group()

def spawn(port):
    results = mp.get_context("spawn").SimpleQueue()
    mp.spawn(demo, args=(2, port, results), nprocs=2)
    return [results.get(), results.get()]

def alone():
    setup(0, 1, "own")
    total = torch.ones(1)
    dist.all_reduce(total)
    dist.destroy_process_group()
    return int(total)
"""
CALLS = {
    "plain": "distributed(processes=4)(whole)()",
    "launch": "distributed(processes=1)(whole).distributed()[0]",
    "driver": "ray_launch(processes=2)(whole).distributed()[0]",
}


def lines(home: Home, code: str, **options: object) -> list[str]:
    """Return the output lines of a program that must succeed."""
    done = home.python(code, **options)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_readmes_function_runs_here_again_and_again(home: Home) -> None:
    code = (
        README
        + """
before = dict(os.environ)
print(train(epochs=3))
print(train(epochs=3))
import torch.distributed as dist
print(dict(os.environ) == before, dist.is_initialized())
"""
    )
    assert lines(home, code) == ["(0, 1, 1, '0')", "(0, 1, 1, '0')", "True False"]
    assert not home.processes()


def test_what_another_launcher_has_set_is_left(home: Home) -> None:
    code = """
import os
from troupe.launch import distributed

@distributed(processes=4)
def look():
    return sorted(name for name in os.environ if name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))

@distributed(processes=2)
def outer():
    return os.environ["MASTER_PORT"] == inner() == os.environ["MASTER_PORT"]

@distributed(processes=2)
def inner():
    return os.environ["MASTER_PORT"]

print(look(), outer())
for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"):
    os.environ[name] = "1"
    print(look())
    del os.environ[name]
try:
    distributed(processes=2)(lambda: 1 / 0)()
except ZeroDivisionError:
    print(sorted(name for name in os.environ if name.startswith("MASTER") or name.endswith("RANK")))
"""
    assert lines(home, code) == [
        "['LOCAL_RANK', 'MASTER_ADDR', 'MASTER_PORT', 'RANK', 'WORLD_SIZE'] True",
        "['RANK']",
        "['WORLD_SIZE']",
        "['MASTER_PORT']",
        "[]",
    ]


def test_its_store_is_reached_from_this_machine_alone(home: Home) -> None:
    code = """
import os
from troupe.launch import distributed

@distributed(processes=1)
def listens():
    def at():
        rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").readlines()[1:]]
        return [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{int(os.environ['MASTER_PORT']):04X}")]
    before = at()
    import torch.distributed as dist
    dist.init_process_group("gloo")
    return before, at()

print(listens())
print(listens.distributed()[0])
"""
    plain, *_, launched = lines(home, code)
    for each in (plain, launched):
        before, after = eval(each)
        assert before == [] and len(after) == 1 and after[0].startswith("0100007F:"), each


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("port", ["own", pytest.param("environment", marks=pytest.mark.long)])
def test_groups_of_ones_own(
    home: Home, tmp_path: Path, call: str, port: str, free_port: int
) -> None:
    (tmp_path / "tutorial.py").write_text(TUTORIAL.replace("sys.argv[1]", f'"{free_port}"'))
    code = f"""
import os, sys
from troupe.launch import distributed, ray_launch

def whole():
    import os
    import tutorial
    made = tutorial.spawn({port!r}), tutorial.alone()
    return made

print(*{CALLS[call]})
"""
    assert "[2, 2] 1" in lines(home, code, cwd=tmp_path, timeout=300)


@pytest.fixture
def free_port() -> int:
    """A port that was free just now."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_a_driver_and_its_ranks_meet_at_the_launchs_store_all_the_same(home: Home) -> None:
    code = """
import os
from troupe.launch import ray_launch, current

@ray_launch(processes=2)
def drive():
    def total():
        import torch, torch.distributed as dist
        value = torch.ones(1)
        dist.all_reduce(value)
        dist.destroy_process_group()
        dist.init_process_group("gloo")
        dist.all_reduce(value)
        return int(value), os.environ["MASTER_PORT"]
    mine = os.environ["MASTER_PORT"]
    sums = current().run(total)
    return [each for each, _ in sums], len({port for _, port in sums}), mine not in sums[0], os.environ["MASTER_PORT"] == mine

print(*drive.distributed()[0])
"""
    assert "[4, 4] 1 True True" in lines(home, code)


@pytest.mark.parametrize(
    "init_method", ["env://", "tcp://127.0.0.1:{port}?rank={rank}&world_size=2"]
)
def test_a_foreign_port_in_a_gang_is_refused_at_once(
    home: Home, free_port: int, init_method: str
) -> None:
    code = f"""
import os
from troupe.launch import distributed

@distributed(processes=2)
def train():
    import torch.distributed as dist
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "{free_port}"
    dist.init_process_group("gloo", init_method={init_method!r}.format(port={free_port}, rank=os.environ["RANK"]))

try:
    train.distributed()
except RuntimeError as error:
    print(error)
"""
    said = "\n".join(lines(home, code))
    assert (
        f":{free_port}, where no one serves its launch" in said
        and "leave MASTER_ADDR and MASTER_PORT as the rank finds them" in said
    )
