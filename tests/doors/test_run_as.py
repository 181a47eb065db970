"""`troupe run-as`: scripts that import other launchers' packages run as they are, in all that they
start; names that are missing.

Method: scripts as users write them, in processes of their own. Ray alone: test_ray_compat.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from e2e_conftest import TIMEOUT_S, Home

EVERYWHERE = """
import multiprocessing
import os
import subprocess
import sys

import ray
from serverless_gpu import GPUType, distributed
from serverless_gpu import runtime as rt
from serverless_gpu.compute import GPUType as same
from serverless_gpu.launcher import distributed as again
from serverless_gpu.ray import ray_launch

assert same is GPUType and again is distributed
CODE = "import serverless_gpu.runtime, ray; print(serverless_gpu.runtime.get_world_size(), type(ray).__name__)"


def what(_=None):
    import serverless_gpu
    return type(serverless_gpu).__name__, serverless_gpu.runtime.get_global_rank.__module__


def in_a_subprocess():
    return subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout.split()


@distributed(gpus=2, gpu_type=GPUType.H100)
def rank():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return rt.get_global_rank(), what(), in_a_subprocess(), pool.map(what, [0])


@ray_launch(gpus=2)
def drive():
    @ray.remote(num_cpus=0)
    class Actor:
        def what(self):
            return what(), in_a_subprocess()
    return ray.get(Actor.remote().what.remote())


if __name__ == "__main__":
    print(sys.argv[1:], in_a_subprocess())
    for each in rank.distributed():
        print(*each)
    print(drive.distributed()[0])
"""


def run_as(
    home: Home, script: Path, text: str, *options: str, args: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess:
    script.write_text(text)
    return home.run(
        "run-as",
        *options,
        str(script),
        *args,
        ok=False,
        env={"TROUPE_CPU_RANKS": "1", **env},
        timeout=2 * TIMEOUT_S,
    )


@pytest.mark.parametrize("remote", [False, True], ids=["embedded", "a cluster by address"])
def test_ranks_actors_and_subprocesses_have_what_the_script_has(
    home: Home, tmp_path: Path, remote: bool
) -> None:
    """Nodes of a cluster were started without any of it."""
    address = (
        home.json("start", "--head", "--port", "0", "--num-cpus", "4")["address"] if remote else ""
    )
    text = EVERYWHERE.replace("gpus=2", "gpus=2, remote=True") if remote else EVERYWHERE
    done = run_as(
        home, tmp_path / "script.py", text, args=("--epochs", "3"), TROUPE_ADDRESS=address
    )
    assert done.returncode == 0, done.stderr
    module = "('ServerlessModule', 'troupe.serverless_gpu.runtime')"
    assert done.stdout.splitlines() == [
        "['--epochs', '3'] ['1', 'RayModule']",
        f"0 {module} ['2', 'RayModule'] [{module}]",
        f"1 {module} ['2', 'RayModule'] [{module}]",
        f"({module}, ['1', 'RayModule'])",
    ]  # an actor is no rank


def test_a_module_and_its_exit_code(home: Home, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import serverless_gpu, ray, sys\nassert __name__ == '__main__'\nsys.exit(7)"
    )
    done = subprocess.run(
        [sys.executable, "-m", "troupe", "run-as", "-m", "job"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 7, done.stderr


def test_only_some_of_them(home: Home, tmp_path: Path) -> None:
    """The others are what is installed, in the script and below it."""
    (tmp_path / "serverless_gpu.py").write_text("mine = True")
    text = (
        "import serverless_gpu, ray, subprocess, sys\nassert "
        "serverless_gpu.mine\nprint(type(ray).__name__, flush=True)\n"
        "subprocess.run([sys.executable, '-c', 'import serverless_gpu; "
        "print(serverless_gpu.mine)'], check=True)"
    )
    done = run_as(
        home,
        tmp_path / "script.py",
        text,
        "--only",
        "ray",
        PYTHONPATH=f"{tmp_path}:{':'.join(sys.path)}",
    )
    assert done.stdout == "RayModule\nTrue\n", done.stderr
    done = run_as(
        home,
        tmp_path / "script.py",
        "import ray",
        "--only",
        "serverless_gpu",
        PYTHONPATH=":".join(sys.path),
    )
    assert "RayModule" not in done.stderr
    for wrong in ("tensorflow", "", "ray,,x"):
        done = run_as(home, tmp_path / "script.py", text, "--only", wrong)
        assert (
            done.returncode == 2
            and "there are serverless_gpu, databricks, ray, pyspark, azure" in done.stderr
        ), done.stderr


MISSING = [
    ("from serverless_gpu import Everything", "serverless_gpu has GPUType, RayMetricsMonitor"),
    (
        "from databricks.air.data import UCDataset",
        "use troupe.data.read_parquet(path) of the table's files",
    ),
    (
        "from serverless_gpu.launcher import DistributedFunctionCall",
        "use the handle that f.submit(...) returns",
    ),
    (
        "import serverless_gpu; serverless_gpu.runtime.get_color",
        "serverless_gpu.runtime has get_global_rank",
    ),
    (
        "from pyspark.ml.torch.distributor import _get_spark_partition_data_loader",
        "use troupe.data.read_parquet(path).streaming_split(n) in the function that run() is given",
    ),
    (
        "import pyspark.ml.torch.data",
        "use troupe.data.read_parquet(path).streaming_split(n), and iter_torch_batches() of a "
        "share",
    ),
    (
        "from pyspark.ml.deepspeed.deepspeed_distributor import Other",
        "has DeepspeedTorchDistributor, TorchDistributor",
    ),
    (
        "from pyspark.sql import SparkSession",
        "No module named 'pyspark.sql': pyspark is not installed; Troupe stands in for "
        "pyspark.ml.torch and",
    ),
    (
        "from pyspark.ml.torch.distributor import TorchDistributor; from pyspark.sql import "
        "SparkSession",
        "need no SparkSession here: leave that out",
    ),
    (
        "from pyspark.ml.torch.distributor import TorchDistributor; from pyspark import "
        "SparkContext",
        "or pip install pyspark, which is used for all else",
    ),
    ("from azure.ai.ml import automl", "use a program of your own in a command job"),
    (
        "from azure.ai.ml import spark",
        "use troupe.spark, or a program of your own in a command job",
    ),
    ("import azure.ai.ml.operations", "azure.ai.ml.operations is not a part of Troupe"),
]


@pytest.mark.parametrize(
    ("statement", "words"), MISSING, ids=[statement for statement, _ in MISSING]
)
def test_what_is_missing_is_named_with_what_to_use(
    home: Home, tmp_path: Path, statement: str, words: str
) -> None:
    for text in (
        statement,
        "import subprocess, sys\nsys.exit(subprocess.run([sys.executable, '-c', "
        f"{statement!r}]).returncode)",
    ):
        done = run_as(home, tmp_path / "script.py", text)
        assert done.returncode == 1 and words in done.stderr.splitlines()[-1], done.stderr


def test_packages_above_stay_what_is_installed(home: Home, tmp_path: Path) -> None:
    """Code that looks for pyspark gets the truth, and finds the installed package."""
    looks = (
        "import importlib.util\nprint(importlib.util.find_spec('pyspark'), "
        "importlib.util.find_spec('azure'))\n"
        "try:\n    import pyspark\nexcept ImportError as error:\n    print(error)\n"
    )
    both = (
        f"{looks}import subprocess, sys\nsys.stdout.flush()\nsubprocess.run([sys.executable, "
        f"'-c', {looks!r}], check=True)"
    )
    done = run_as(home, tmp_path / "script.py", both)
    there, why, *below = done.stdout.splitlines()
    assert there == "None None" and why.startswith(
        "No module named 'pyspark': pyspark is not installed; "
    ), done.stdout + done.stderr
    assert below == [there, why], done.stderr
    for folder in ("pyspark", "pyspark/ml", "pyspark/ml/torch"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text(f"name = 'installed {folder}'")
    text = (
        "import pyspark.ml\nprint(pyspark.name, pyspark.ml.name)\nimport "
        "pyspark.ml.torch\nprint(type(pyspark.ml.torch).__name__)"
    )
    assert run_as(home, tmp_path / "script.py", text).stdout.splitlines() == [
        "installed pyspark installed pyspark/ml",
        "TorchDistributorModule",
    ]
    text = "import pyspark.ml.torch\nprint(pyspark.ml.torch.name)"
    assert (
        run_as(home, tmp_path / "script.py", text, "--only", "ray").stdout
        == "installed pyspark/ml/torch\n"
    )


def test_the_environments_own_sitecustomize_runs(home: Home, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.customized = 'yes'")
    text = (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import sys; "
        'print(getattr(sys, "customized", None))\'])'
    )
    (tmp_path / "sub").mkdir()
    done = run_as(
        home, tmp_path / "sub" / "script.py", text, PYTHONPATH=f"{tmp_path}:{':'.join(sys.path)}"
    )
    assert done.stdout == "yes\n", done.stderr


def test_install_in_a_program_of_ones_own(home: Home, tmp_path: Path) -> None:
    (tmp_path / "serverless_gpu.py").write_text("mine = True")
    done = home.python(
        "import serverless_gpu\nfrom troupe import stand_ins\nstand_ins.install()", cwd=tmp_path
    )
    assert (
        "RuntimeError: serverless_gpu was imported before troupe.stand_ins.install()" in done.stderr
    )
    done = home.python(
        "from troupe import "
        "stand_ins\nstand_ins.install(['serverless_gpu'])\nstand_ins.install()\nprint(stand_ins.installed())\n"
        "import "
        "serverless_gpu\nprint(sorted(dir(serverless_gpu))[:2])\nstand_ins.install(['nothing'])",
        cwd=tmp_path,
    )
    assert done.stdout.splitlines() == [
        "['serverless_gpu', 'databricks', 'ray', 'pyspark', 'azure']",
        "['GPUType', 'RayMetricsMonitor']",
    ], done.stderr
    assert "ValueError: 'nothing' is no package that Troupe stands in for" in done.stderr


THREADS = """
import os, sys, threading, types
from troupe import stand_ins
from troupe._base.after_import import after_import
from troupe._cluster import variables
sys.setswitchinterval(1e-6)
over = threading.Event()

def change():
    while not over.is_set():
        for number in range(50):
            sys.modules[f"made_{number}"] = types.ModuleType("made")
            os.environ[f"MADE_{number}"] = "1"
        for number in range(50):
            del sys.modules[f"made_{number}"], os.environ[f"MADE_{number}"]

thread = threading.Thread(target=change)
thread.start()
try:
    for _ in range(200):
        stand_ins.install(["serverless_gpu"])
        sys.meta_path.pop(0)
        variables.now()
        variables.of_a_node()
finally:
    over.set()
    thread.join()
there = list(sys.meta_path)
after_import({"wave": lambda module: setattr(module, "changed", True)})
import wave
print(wave.changed, len(sys.meta_path) - len(there))
"""


def test_threads_that_import_and_set_variables_meanwhile_disturb_nothing(home: Home) -> None:
    """Variables that other threads change are copied before they are gone through; a finder that is
    done stays, for a loop over the finders would miss the next one."""
    done = home.python(THREADS, timeout=2 * TIMEOUT_S)
    assert done.stdout == "True 1\n", done.stderr


def test_every_name_of_the_tables_is_there(home: Home) -> None:
    from troupe.stand_ins import _packages

    for kind in _packages.MODULE_CLASSES.values():
        for module, names in kind.package.modules.items():
            assert all(getattr(kind(module), name) is not None for name in names), module


def test_a_module_that_shadows_a_standard_one_is_named(home: Home, tmp_path: Path) -> None:
    """Both ways to run the script, and what its ranks import."""
    (tmp_path / "wave.py").write_text("")
    script = tmp_path / "script.py"
    text = (
        "from troupe.launch import distributed\n@distributed(processes=1)\ndef f():\n    import "
        "wave\n    wave.open\n"
        "if __name__ == '__main__':\n    f.distributed()\n"
    )
    done = run_as(home, script, text)
    assert (
        "try: on the import path before Python's own of the same name, for libraries too: "
        f"{tmp_path}/wave.py" in done.stderr
    ), done.stderr
    (tmp_path / "random.py").write_text("")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (
        done.returncode == 1
        and "troupe: on the import path before Python's own of the same name, for libraries too: "
        f"{tmp_path}/random.py, "
        f"{tmp_path}/wave.py"
        in done.stderr
    ), done.stderr
