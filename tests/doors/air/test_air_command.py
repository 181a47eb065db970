"""`troupe air`: workloads in YAML files, from submission to their ends.

Method: a real cluster of two nodes with a logical GPU each, the command in processes of its own; a
head that is killed and started again.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_conftest import Home, eventually, running

LIMIT_S = 240.0


@pytest.fixture(scope="module")
def nodes(shared_home: Home) -> Iterator[dict]:
    """Two nodes of type GPU_1xA10; what `troupe start --head --json` said of the first."""
    gpu = ("--num-cpus", "2", "--num-gpus", "1", "--labels", "gpu_type=A10")
    started = shared_home.json("start", "--head", "--port", "0", *gpu, "--node-name", "a")
    shared_home.run(
        "start",
        "--address",
        started["address"],
        "--token-file",
        shared_home.token(),
        *gpu,
        "--node-name",
        "b",
    )
    yield started


def workload(folder: Path, command: str, **changes: str) -> str:
    """Write a workload of two nodes that runs this bash command, and return its path.

    `changes`: YAML text of further fields.
    """
    fields = {
        "experiment_name": "training",
        "compute": "{num_accelerators: 2, accelerator_type: GPU_1xA10}",
        "max_retries": "0",
        "command": json.dumps(command),
        **changes,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.yaml").write_text(
        "".join(f"{name}: {value}\n" for name, value in fields.items())
    )
    return str(folder / "train.yaml")


def air(home: Home, *words: str, ok: bool = True, **env: str) -> subprocess.CompletedProcess:
    return home.run("air", *words, ok=ok, timeout=LIMIT_S, env=env)


def test_every_node_runs_the_command_with_its_code_variables_and_port(
    shared_home: Home, nodes: dict, tmp_path: Path
) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "train.py").write_text(
        "import os, torch.distributed as dist\ndist.init_process_group('gloo')\nassert "
        "os.environ['LR'] == '0.5'\n"
        "print('rank', dist.get_rank(), 'of', dist.get_world_size(), "
        "flush=True)\ndist.destroy_process_group()\n"
    )
    command = (
        "grep -q 'layers: 2' $HYPERPARAMETERS_PATH && echo node $NODE_RANK of $NUM_NODES rank "
        "${RANK:-unset} && "
        "torchrun --nnodes $NUM_NODES --node_rank $NODE_RANK --master_addr $MASTER_ADDR "
        "--master_port $MASTER_PORT "
        "--nproc_per_node 1 $CODE_SOURCE_PATH/train.py"
    )
    file = workload(
        tmp_path,
        command,
        code_source="{type: snapshot, snapshot: {root_path: repo}}",
        hyperparameters="{layers: 2}",
        env_variables="{LR: '0.5'}",
    )
    done = air(shared_home, "run", "-f", file, "--watch")
    assert done.stdout.splitlines() == ["node 0 of 2 rank unset", "rank 0 of 2"], (
        done.stdout + done.stderr
    )
    run_id = next(line for line in done.stderr.splitlines() if len(line) == 32)
    described = json.loads(air(shared_home, "get", run_id[:8], "--json").stdout)
    assert (
        described["status"] == "SUCCEEDED"
        and sorted(described["nodes"]) == ["a", "b"]
        and described["experiment"] == "training"
    )
    assert "rank 1 of 2" in air(shared_home, "logs", run_id, "--node", "1").stdout
    written = air(shared_home, "logs", run_id, "--download-to", str(tmp_path / "logs"))
    assert written.stdout.splitlines() == [
        str(tmp_path / "logs" / f"node-{node}.log") for node in (0, 1)
    ]
    assert "rank 0 of 2" in (tmp_path / "logs" / "node-0.log").read_text()


def test_a_key_is_one_run_also_after_the_head_was_killed(home: Home, tmp_path: Path) -> None:
    started = home.json("start", "--head", "--port", "0", "--num-cpus", "2")
    file = workload(
        tmp_path,
        "echo x >> $COUNT; echo CPU ranks $TROUPE_CPU_RANKS, gloo $TROUPE_GLOO_FOR_NCCL",
        compute="{num_accelerators: 1, accelerator_type: GPU_1xA10}",
        env_variables=json.dumps({"COUNT": str(tmp_path / "count")}),
    )
    first = air(home, "run", "-f", file, "--idempotency-key", "mine").stdout.strip()
    assert air(home, "run", "-f", file, "--idempotency-key", "mine").stdout.strip() == first
    # Until it has ended. The node has no GPUs: what the command starts knows it.
    assert "CPU ranks 1, gloo 1" in air(home, "logs", first).stdout
    os.kill(started["pid"], signal.SIGKILL)
    eventually(lambda: not running(started["pid"]), what="the head's end")
    assert home.json("start", "--head")["resumed"]
    again = air(home, "run", "-f", file, "--idempotency-key", "mine")
    assert (
        again.stdout.strip() == first
        and "submitted with this idempotency key before" in again.stderr
    ), again.stderr
    other = air(home, "run", "-f", file, "--idempotency-key", "other").stdout.strip()
    assert other != first
    air(home, "logs", other)
    assert (tmp_path / "count").read_text() == "x\nx\n"
    submitted = [
        home.run("submit", "--detach", "--idempotency-key", "submit", "--", "true").stdout.strip()
        for _ in range(2)
    ]
    assert submitted[0] == submitted[1] != first


def test_runs_are_listed_filtered_and_cancelled(
    shared_home: Home, nodes: dict, tmp_path: Path
) -> None:
    file = workload(tmp_path, "sleep 600")
    run_id = air(shared_home, "run", "-f", file, "--override", "run_name=long").stdout.strip()
    listed = json.loads(
        air(shared_home, "list", "--filter", "accelerator_type=GPU_1xA10", "--json").stdout
    )
    assert [each["run_id"] for each in listed] == [run_id] and listed[0]["run_name"] == "long"
    assert (
        json.loads(air(shared_home, "list", "--filter", "num_accelerators=8", "--json").stdout)
        == []
    )
    assert "--all" in air(shared_home, "cancel", ok=False).stderr
    assert "CANCELED" in air(shared_home, "cancel", "--all", "--yes").stdout
    assert (
        json.loads(air(shared_home, "get", "run", run_id, "--json").stdout)["status"] == "CANCELED"
    )
    assert json.loads(air(shared_home, "list", "--json").stdout) == []


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="needs MLflow")
def test_what_a_run_that_outlives_its_caller_logs_is_one_run_in_a_store_on_its_node(
    shared_home: Home, nodes: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*(name for name in os.environ if name.startswith("MLFLOW_")), "TROUPE_TRACKING"):
        monkeypatch.delenv(name, raising=False)
    logs = "python -c 'import mlflow; mlflow.log_metric(\"loss\", {})'"
    file = workload(
        tmp_path,
        f"{logs.format(1)} & {logs.format(2)}; status=$?; wait; exit $status",
        compute="{num_accelerators: 1, accelerator_type: GPU_1xA10}",
        env_variables="{MLFLOW_DISABLE_TELEMETRY: 'true'}",
    )
    done = air(shared_home, "run", "-f", file, "--watch", "--override", "run_name=one")
    assert "is not tracked" not in done.stderr, done.stderr
    said = re.findall(
        r"logs by MLflow is run (\w+) in sqlite:///(\S+) on", done.stdout + done.stderr
    )
    assert len(said) == 1, (done.stdout, done.stderr)
    (run, database), *_ = said
    with contextlib.closing(sqlite3.connect(database)) as store:
        runs = store.execute(
            "SELECT run_uuid, runs.name, status, experiments.name FROM runs JOIN experiments "
            "USING (experiment_id)"
        ).fetchall()
        values = store.execute("SELECT value FROM metrics WHERE run_uuid = ?", [run]).fetchall()
    assert runs == [(run, "one", "FINISHED", "training")] and sorted(values) == [(1.0,), (2.0,)]


def test_a_failure_has_the_commands_code_and_a_type_that_is_not_there_names_those_that_are(
    shared_home: Home, nodes: dict, tmp_path: Path
) -> None:
    # A single node alone: the other's end is not its own
    command = "test $NODE_RANK = 0 || exec sleep 600; echo last words; exit 7"
    failed = air(shared_home, "run", "-f", workload(tmp_path, command), "--watch", ok=False)
    assert failed.returncode == 7 and "last words" in failed.stdout, failed.stderr
    refused = air(
        shared_home,
        "run",
        "-f",
        workload(tmp_path, "true", compute="{num_accelerators: 1, accelerator_type: GPU_1xa10}"),
        ok=False,
    )
    assert refused.returncode == 1 and "its accelerator types: GPU_1xA10" in refused.stderr, (
        refused.stderr
    )
    wrong = air(shared_home, "run", "-f", workload(tmp_path, "true", comand="x"), ok=False)
    assert wrong.returncode == 1 and "did you mean 'command'?" in wrong.stderr
    checked = air(shared_home, "run", "-f", workload(tmp_path, "true"), "--dry-run", "--json")
    assert json.loads(checked.stdout)["workload"]["compute"] == {
        "accelerator_type": "GPU_1xA10",
        "num_accelerators": 2,
        "nodes": 2,
    }
    assert "GPU_<GPUs per node>" in air(shared_home, "run", "-h", "config.compute").stdout


def test_without_a_cluster_it_runs_on_this_machine_and_says_so(home: Home, tmp_path: Path) -> None:
    done = air(home, "run", "-f", workload(tmp_path, "echo node $NODE_RANK of $NUM_NODES"))
    assert done.stdout == "node 0 of 2\n", done.stdout
    assert (
        "no cluster is known" in done.stderr
        and "has no GPU: 2 GPUs of GPU_1xA10 mean 2 processes on CPUs" in done.stderr
    )
    refused = air(home, "run", "-f", workload(tmp_path, "true"), ok=False, TROUPE_CPU_RANKS="0")
    assert refused.returncode == 1 and "which no node of the cluster is" in refused.stderr


def test_functions_get_the_gpus_of_a_type_or_are_told_which_there_are(
    shared_home: Home, nodes: dict
) -> None:
    """Two nodes of one GPU: a launch of two has a rank on each; a count that is left out is this
    node's."""
    program = """
import os
from troupe.air import distributed
from troupe import exceptions

def where():
    return os.environ["NODE_RANK"], os.environ["LOCAL_RANK"], os.environ["CUDA_VISIBLE_DEVICES"]

print(distributed(num_accelerators=2, accelerator_type="GPU_1xA10")(where).distributed())
print(distributed()(where).distributed())
try:
    distributed(accelerator_type="GPU_8xA10")(where).distributed()
except exceptions.PlacementError as error:
    print(error)
"""
    done = shared_home.python(program, env={"TROUPE_ADDRESS": nodes["address"]})
    assert done.stdout.splitlines() == [
        "[('0', '0', '0'), ('1', '0', '0')]",
        "[('0', '0', '0')]",
        "accelerator_type is GPU_8xA10, which no node of the cluster is",
        "  its accelerator types: GPU_1xA10",
    ], done.stdout + done.stderr
