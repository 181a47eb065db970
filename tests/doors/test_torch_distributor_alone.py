"""TorchDistributor in processes of their own: callers that die or are interrupted, machines without
GPUs or a cluster, scripts unchanged by `run-as`.

Method: programs as users write them. What is left is looked for by the processes of the test.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home, eventually
from submits import LIMIT_S, project, started_in

HOLDS = """
import os, signal, sys, time
from pyspark.ml.torch.distributor import TorchDistributor

def train():
    print("holds", os.environ["RANK"], flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print("last word of", os.environ["RANK"], flush=True)
        raise

if __name__ == "__main__":
    TorchDistributor(num_processes=2, local_mode={local!r}, use_gpu=False).run({what})
"""
SCRIPT = "import os, signal\nprint('holds', os.environ['RANK'], flush=True)\nsignal.pause()\n"
SAYS = "from troupe.spark import TorchDistributor\n"


def caller(folder: Path, *, local: bool, what: str = "train") -> subprocess.Popen:
    """Start a caller and wait until both ranks have reported."""
    project(folder, holds=HOLDS.format(local=local, what=what), script=SCRIPT)
    process = started_in(folder, "run-as", "holds.py")
    assert process.stdout is not None
    assert sorted(process.stdout.readline() for _ in range(2)) == ["[0] holds 0\n", "[1] holds 1\n"]
    return process


def ranks(home: Home) -> list[str]:
    """Return the commands of the ranks among the test's processes."""
    return [command for command in home.processes().values() if command.startswith("troupe: rank ")]


@pytest.mark.parametrize(
    "what", ["train", pytest.param("'script.py'", marks=pytest.mark.long)], ids=["function", "file"]
)
def test_a_caller_that_is_killed_takes_its_ranks_along(
    home: Home, tmp_path: Path, what: str
) -> None:
    """kill -9, on this machine: with the ranks the cluster that was started for the caller ends."""
    process = caller(tmp_path / "w", local=True, what=what)
    assert len(home.processes()) > 3
    process.kill()
    process.wait(TIMEOUT_S)
    eventually(lambda: not home.processes(), what="the end of all that the caller had started")
    process.communicate()


def test_a_caller_that_is_killed_takes_its_ranks_of_a_cluster_along(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "TROUPE_ADDRESS", home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"]
    )
    process = caller(tmp_path / "w", local=False)
    assert len(ranks(home)) == 2
    process.kill()
    process.wait(TIMEOUT_S)
    process.communicate()

    def ended() -> bool:
        found = home.json("list", "launches")
        return [each["state"] for each in found] == ["cancelled"]

    eventually(ended, what="the end of the launch")
    eventually(lambda: not ranks(home), what="the end of its ranks")


def test_ctrl_c_stops_the_ranks(home: Home, tmp_path: Path) -> None:
    """The ranks have time for a last word, and the caller has a KeyboardInterrupt."""
    process = caller(tmp_path / "w", local=True)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130 and sorted(out.splitlines()) == [
        "[0] last word of 0",
        "[1] last word of 1",
    ], out + err
    assert err.rstrip().endswith("KeyboardInterrupt"), err
    eventually(lambda: not home.processes(), what="the end of all that the caller had started")


def test_b3_gpus_of_this_machine(home: Home) -> None:
    """B3: more processes than GPUs are as many as there are GPUs, which a warning says; a second
    distributor has its own."""
    code = (
        SAYS
        + """
import os, troupe
troupe.init(num_cpus=4, num_gpus=2)
distributor = TorchDistributor(num_processes=8, local_mode=True, use_gpu=True)
print(distributor.num_processes, distributor.run(lambda: (os.environ["WORLD_SIZE"], os.environ["CUDA_VISIBLE_DEVICES"])))
print(TorchDistributor(num_processes=6, local_mode=True, use_gpu=False).run(lambda: (os.environ["WORLD_SIZE"], os.environ["CUDA_VISIBLE_DEVICES"])))
"""
    )
    done = home.python(code, timeout=LIMIT_S)
    assert done.stdout.splitlines() == ["2 ('2', '0,1')", "('6', '')"], done.stdout + done.stderr
    assert (
        "num_processes=8 is more than the GPUs of" in done.stderr
        and "of which there are 2: num_processes is 2 now" in done.stderr
    )


def test_use_gpu_without_gpus_names_the_machine_and_what_to_do(home: Home) -> None:
    """Refused in the constructor, as pyspark's, where CPU ranks are not wanted; also with a
    cluster."""
    code = (
        SAYS
        + """
import os, platform, troupe
from troupe.spark import DeepspeedTorchDistributor
troupe.init(num_gpus=0)
for kind in (TorchDistributor, DeepspeedTorchDistributor):
    try:
        kind(2, 1) if kind is DeepspeedTorchDistributor else kind(2)
    except RuntimeError as error:
        print(platform.node() in str(error), error)
try:
    TorchDistributor(2, local_mode=False, use_gpu=True)
except RuntimeError as error:
    print(error)
"""
    )
    done = home.python(code, timeout=LIMIT_S, env={"TROUPE_CPU_RANKS": "0"})
    assert done.returncode == 0, done.stderr
    for name in ("TorchDistributor", "DeepspeedTorchDistributor"):
        assert f"True {name} was given use_gpu=True, and this machine, " in done.stdout, done.stdout
    assert "and no node of the cluster at " in done.stdout, done.stdout
    assert (
        done.stdout.count("use_gpu=False trains on CPUs, where init_process_group() takes 'gloo'")
        == 3
    )
    assert (
        done.stdout.count("with TROUPE_CPU_RANKS=1, use_gpu=True means processes without GPUs") == 3
    )


def test_without_a_cluster_a_run_on_one_is_on_this_machine(home: Home) -> None:
    """Reported once, as is the meaning of use_gpu= there; more nodes than there are, are this one.

    Of several clusters one has to be named.
    """
    code = (
        SAYS
        + """
import os
from troupe.spark import DeepspeedTorchDistributor
print(TorchDistributor(2, local_mode=False, use_gpu=True).run(lambda: os.environ["WORLD_SIZE"]))
print(DeepspeedTorchDistributor(1, 2, localMode=False).run(lambda: os.environ["WORLD_SIZE"]))
"""
    )
    done = home.python(code, timeout=LIMIT_S)
    assert done.stdout == "2\n2\n", done.stdout + done.stderr
    assert done.stderr.count("one of this machine is started, which ends with this program") == 1, (
        done.stderr
    )
    assert done.stderr.count("has no GPU: use_gpu=True of ") == 2, done.stderr
    for _ in range(2):
        home.json("start", "--head", "--port", "0", "--num-cpus", "1")
    done = home.python(
        SAYS + "try:\n    TorchDistributor(2, local_mode=False)\nexcept RuntimeError as error:\n"
        "    print(isinstance(error, ConnectionError), error)"
    )
    assert done.stdout.startswith("True several clusters of this user run on this host"), (
        done.stdout + done.stderr
    )


def test_ranks_without_gpus_by_a_variable(home: Home) -> None:
    """Reported once a run; NCCL is Gloo there, and code that asks for CUDA all the same ends in one
    error that names the line."""
    code = (
        SAYS
        + """
import os
def train():
    import torch.distributed as dist
    import torch
    dist.init_process_group("nccl")
    assert dist.get_backend() == "gloo"
    torch.cuda.set_device(0)
distributor = TorchDistributor(2, True, True)
print(distributor.run(lambda: (os.environ["WORLD_SIZE"], os.environ["CUDA_VISIBLE_DEVICES"])))
distributor.run(train)
"""
    )
    done = home.python(code, env={"TROUPE_CPU_RANKS": "1"}, timeout=LIMIT_S)
    assert done.returncode == 1 and done.stdout.splitlines()[0] == "('2', '')", (
        done.stdout + done.stderr
    )
    assert (
        done.stderr.count(
            "TROUPE_CPU_RANKS is set: use_gpu=True of TorchDistributor means 2 processes without "
            "GPUs"
        )
        == 2
    )
    assert "needs a GPU, and these ranks have none" in done.stderr, done.stderr


def test_b4_functions_of_main_and_of_modules_beside_the_script(home: Home, tmp_path: Path) -> None:
    """B4: what the script defines, and what lies beside it, travels; a module that a node lacks is
    named."""
    folder = project(
        tmp_path / "w",
        beside="def scale(x):\n    return 3 * x\n",
        main="""
from pyspark.ml.torch.distributor import TorchDistributor
import beside

class Model:
    def __init__(self, size): self.size = size

def train(size):
    return Model(beside.scale(size))

def needs():
    import nosuchmodule

if __name__ == "__main__":
    distributor = TorchDistributor(num_processes=2, local_mode=True, use_gpu=False)
    model = distributor.run(train, 2)
    print(type(model) is Model, model.size)
    try:
        distributor.run(needs)
    except RuntimeError as error:
        print(isinstance(error, ModuleNotFoundError), error)
""",
    )
    done = home.run("run-as", str(folder / "main.py"), timeout=LIMIT_S)
    assert (
        "True 6\n" in done.stdout
        and "True rank " in done.stdout
        and "try: runtime_env=" in done.stdout
    ), done.stdout + done.stderr
