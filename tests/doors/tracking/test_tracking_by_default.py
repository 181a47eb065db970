"""A9, A18: programs for the serverless GPU API have a run for each launch with nothing set but
MLflow installed.

Method: scripts as users write them, by `troupe run-as`, in a folder of their own and without a
cluster; the store is read when they have ended.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

from e2e_conftest import TIMEOUT_S, Home
from servers import Server, needs_mlflow

pytestmark = needs_mlflow
LIMIT_S = 6 * TIMEOUT_S
PROGRAM = """
import os
from serverless_gpu import distributed

@distributed(gpus=2, gpu_type="A10", remote=True)
def train(fails):
    if fails:
        raise ValueError("as asked")
    import mlflow
    mlflow.log_metric("loss/" + os.environ["RANK"], 1.0)
    return os.path.exists("mlflow.db"), "sqlite" in os.environ["MLFLOW_TRACKING_URI"]

print(train.distributed(False), flush=True)
train.distributed(True)
"""


def start(folder: Path, **variables: str) -> subprocess.Popen:
    """The program, in that folder."""
    (folder / "program.py").write_text(PROGRAM)
    environment = {
        **os.environ,
        "TROUPE_ADDRESS": "",
        "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "false",
        **variables,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "troupe", "run-as", "program.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def databases_of(folder: Path) -> list[Path]:
    """Return the databases below it, but for the empty one that is copied for new stores."""
    return [each for each in folder.rglob("*.db") if each.parent.name != "cache"]


def links_of(started: subprocess.Popen, begin: str) -> list[str]:
    """Waits for the program's end.

    The links that it showed, which begin so, each before anything else of its launch.
    """
    out, err = started.communicate(timeout=LIMIT_S)
    assert (
        out == "[(True, False), (True, False)]\n" or out == "[(False, False), (False, False)]\n"
    ), out + err
    assert started.returncode == 1 and "LaunchError(ValueError)" in err, err
    first = {}
    for line in err.splitlines():
        if found := re.match(r"launch (\w+) · (.*)", line):
            first.setdefault(found[1], found[2])
    assert len(first) == 2 and all(
        each.startswith(f"MLflow: {begin}") for each in first.values()
    ), err
    return [each.removeprefix("MLflow: ") for each in first.values()]


def test_a9_each_launch_has_a_run_in_one_database_of_the_callers_folder(
    home: Home, tmp_path: Path
) -> None:
    """Two programs begin at the same time in a folder that has none yet.

    Ranks log to it and never open it; launches that fail end FAILED.
    """
    both = [start(tmp_path) for _ in range(2)]
    links = [link for each in both for link in links_of(each, "run ")]
    assert all(each.endswith(" in sqlite:///mlflow.db") for each in links), links
    with contextlib.closing(sqlite3.connect(tmp_path / "mlflow.db", timeout=TIMEOUT_S)) as database:
        runs = dict(database.execute("SELECT run_uuid, status FROM runs"))
        metrics = database.execute(
            "SELECT run_uuid, key FROM metrics WHERE key LIKE 'loss/%'"
        ).fetchall()
        launches = database.execute(
            "SELECT DISTINCT value FROM tags WHERE key = 'troupe.launch'"
        ).fetchall()
    assert [runs[each.split()[1]] for each in links] == ["FINISHED", "FAILED"] * 2 and len(
        runs
    ) == len(launches) == 4, runs
    assert sorted(metrics) == sorted(
        (links[number].split()[1], f"loss/{rank}") for number in (0, 2) for rank in (0, 1)
    ), metrics
    assert [each.name for each in databases_of(tmp_path)] == ["mlflow.db"]


def test_a9_the_link_to_a_server_is_shown_before_the_ranks_start(
    home: Home, server: Server, tmp_path: Path
) -> None:
    """With an address the runs are there, and no file is made.

    That of a launch which the cluster refuses ends FAILED.
    """
    links = links_of(
        start(tmp_path, MLFLOW_TRACKING_URI=server.uri), f"{server.uri}/#/experiments/0/runs/"
    )
    by_id = {each["id"]: each["status"] for each in server.runs()}
    assert [by_id[each.rpartition("/")[2]] for each in links] == ["FINISHED", "FAILED"], by_id
    _, err = start(tmp_path, MLFLOW_TRACKING_URI=server.uri, TROUPE_CPU_RANKS="0").communicate(
        timeout=LIMIT_S
    )
    assert "PlacementError" in err and "MLflow: " not in err, err
    (refused,) = [each["status"] for each in server.runs() if each["id"] not in by_id]
    assert refused == "FAILED" and not databases_of(tmp_path)


def test_a9_a_run_of_troupe_air_logs_to_one_run_whose_link_comes_first(
    home: Home, server: Server, tmp_path: Path
) -> None:
    """In its experiment, under its name; what each node's shell starts finds the run in its
    environment."""
    (tmp_path / "train.yaml").write_text(
        "experiment_name: training\nrun_name: first\ncompute: {num_accelerators: 2, "
        "accelerator_type: GPU_1xA10}\ncommand: echo run $MLFLOW_RUN_ID\n"
    )
    variables = {
        "TROUPE_ADDRESS": "",
        "MLFLOW_TRACKING_URI": server.uri,
        "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "false",
    }
    done = subprocess.run(
        [sys.executable, "-m", "troupe", "air", "run", "-f", "train.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("launch ")]
    link = re.fullmatch(
        rf"launch \w+ · MLflow: {server.uri}/#/experiments/[1-9]\d*/runs/(\w+)", said[0]
    )
    assert link is not None and done.stdout.splitlines() == [f"run {link[1]}"], (
        done.stdout + done.stderr
    )
    assert [each["status"] for each in server.runs() if each["id"] == link[1]] == ["FINISHED"], (
        server.runs()
    )


UNTRACKED = """
from serverless_gpu import distributed

@distributed(gpus=3, remote=True)
def train():
    import mlflow
    mlflow.log_metric("loss", 1.0)
    return mlflow.active_run().info.run_id

@distributed(gpus=3, remote=True)
def start():
    import os, subprocess, sys
    os.chdir("below")
    child = "import mlflow; mlflow.log_metric('loss', 1.0); print(mlflow.active_run().info.run_id)"
    return subprocess.run([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]

print(len(set(train.distributed())), len(set(start.distributed())))
"""


def test_ranks_of_a_launch_without_a_run_make_their_database_one_after_the_other(
    home: Home, tmp_path: Path
) -> None:
    """If several processes make all tables at once, MLflow's own code fails.

    So do programs that ranks start, in another folder.
    """
    (tmp_path / "program.py").write_text(UNTRACKED)
    (tmp_path / "below").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "troupe", "run-as", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "TROUPE_ADDRESS": "", "TROUPE_TRACKING": "0"},
    )
    assert done.stdout.splitlines()[-1:] == ["3 3"], done.stdout + done.stderr
    databases = sorted(str(each.relative_to(tmp_path)) for each in databases_of(tmp_path))
    assert "MLflow: " not in done.stderr and databases == ["below/mlflow.db", "mlflow.db"], (
        done.stderr
    )
