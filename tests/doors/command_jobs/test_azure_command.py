"""`troupe azure job`, and scripts that import `azure.ai.ml`, as people run them: in processes of
their own.

Method: a cluster by address for the commands; scripts also without any cluster, where they have one
of their own.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from azure_jobs import LIMIT_S, a_job_file
from e2e_conftest import TIMEOUT_S, Home, eventually
from submits import started_in, troupe_in

SCRIPT = """
import sys
from azure.ai.ml import Input, MLClient, Output, command
from azure.ai.ml.constants import AssetTypes
from azure.ai.ml.entities import Environment
from azure.identity import DefaultAzureCredential

ml_client = MLClient(DefaultAzureCredential(), subscription_id="s", resource_group_name="g", workspace_name="w")
job = command(command="echo $RANK ${{inputs.n}} > ${{outputs.o}}/$RANK; exit " + sys.argv[1], inputs={"n": 3},
              outputs={"o": Output(type=AssetTypes.URI_FOLDER, path="./made")}, environment=Environment(image="x"), instance_count=1,
              distribution={"type": "PyTorch", "process_count_per_instance": 2})
returned = ml_client.create_or_update(job)
print("name", returned.name.split("-")[0], flush=True)
"""


ENDS = """
from azure.ai.ml import MLClient, command
client = MLClient(None, "s", "g", "w")
job = client.jobs.create_or_update(command(command="exec sleep 1000", environment="e"))
poller = client.jobs.begin_cancel(job.name)
print(
    job.studio_url[:8], client.jobs.get(job.name).properties, poller.result(), poller.status(),
    poller.done(), client.jobs.get(job.name).status,
)
"""


@pytest.fixture
def cluster_here(home: Home) -> Home:
    home.run("start", "--head", "--port", "0", "--num-cpus", "8")
    return home


def test_a_job_file_from_its_creation_to_its_files(cluster_here: Home, tmp_path: Path) -> None:
    folder = a_job_file(tmp_path / "w").parent
    done = troupe_in(
        folder,
        "azure",
        "job",
        "create",
        "-f",
        "job.yml",
        "--set",
        "inputs.lr=0.5",
        "--stream",
        "-w",
        "workspace",
        "-g",
        "group",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[0] rank 0 epochs 3 --lr 0.5 text",
        "[1] rank 1 epochs 3 --lr 0.5 text",
    ]
    assert sorted(each.name for each in (folder / "model").iterdir()) == ["0.txt", "1.txt"]
    created = json.loads(
        troupe_in(tmp_path, "azure", "job", "create", "-f", "w/job.yml", "-n", "mine").stdout
    )
    assert (created["name"], created["resources"], created["inputs"]["epochs"]) == (
        "mine",
        {"instance_count": 1},
        3,
    )
    assert troupe_in(tmp_path, "azure", "job", "stream", "-n", "mine").returncode == 0
    assert (
        json.loads(troupe_in(tmp_path, "azure", "job", "show", "-n", "mine").stdout)["status"]
        == "Completed"
    )
    assert [
        each["status"]
        for each in json.loads(troupe_in(tmp_path, "azure", "job", "list", "-o", "json").stdout)
    ] == ["Completed"] * 2
    assert (
        troupe_in(
            tmp_path, "azure", "job", "show", "-n", "mine", "--query", "status", "-o", "tsv"
        ).stdout
        == "Completed\n"
    )
    assert (
        troupe_in(
            tmp_path,
            "azure",
            "job",
            "create",
            "-f",
            "w/job.yml",
            "-n",
            "named",
            "--web",
            "--query",
            "name",
            "-o",
            "tsv",
        ).stdout
        == "named\n"
    )
    (tmp_path / "nothing.py").write_text("")
    assert troupe_in(tmp_path, "submit", "nothing.py").returncode == 0
    table = troupe_in(tmp_path, "azure", "job", "list", "--max-results", "1").stdout.splitlines()
    assert (
        len(table) == 2
        and table[0].split()[:3] == ["TYPE", "NAME", "ID"]
        and table[1].split()[:2] == ["command", "named"]
    ), table
    assert (
        "is no JMESPath expression"
        in troupe_in(tmp_path, "azure", "job", "list", "--query", "[").stderr
    )
    assert (
        troupe_in(tmp_path, "azure", "job", "download", "-n", "mine", "--all", "-p", "d").returncode
        == 0
    )
    assert (tmp_path / "d/named-outputs/model/1.txt").read_text() == "made by 1\n"
    assert "epochs 3" in (tmp_path / "d/artifacts/user_logs/std_log_process_01.txt").read_text()
    assert "mine" in cluster_here.run("list", "launches").stdout
    (tmp_path / "ends.py").write_text(ENDS)
    done = troupe_in(tmp_path, "run-as", "ends.py")
    assert done.stdout == "file:/// {} None Succeeded True Canceled\n", done.stderr


def test_the_exit_code_and_a_file_that_is_wrong(cluster_here: Home, tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    file.write_text("command: echo why >&2; exit 7\nenvironment: e\n")
    done = troupe_in(tmp_path, "azure", "job", "create", "-f", "job.yml", "--stream")
    assert done.returncode == 7 and "why" in done.stderr and "LaunchError" in done.stderr
    file.write_text("command: x\nenvironment: e\ninputz: {}\n")
    done = troupe_in(tmp_path, "azure", "job", "create", "-f", "job.yml")
    assert (
        done.returncode == 1
        and "ValueError: job.yml:3:1: a command job has no 'inputz': did you mean 'inputs'?"
        in done.stderr
    )
    assert troupe_in(tmp_path, "azure", "job", "create", "-f", "none.yml").returncode == 2
    assert (
        "--set is KEY=VALUE"
        in troupe_in(tmp_path, "azure", "job", "create", "-f", "job.yml", "--set", "x").stderr
    )


def test_ctrl_c_of_what_is_streamed_cancels_the_job(cluster_here: Home, tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(
        "name: mine\ncommand: echo begins; exec sleep 1000\nenvironment: e\n"
    )
    process = started_in(tmp_path, "azure", "job", "create", "-f", "job.yml", "--stream")
    assert process.stdout is not None and process.stdout.readline() == "[0] begins\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, said
    assert (
        json.loads(troupe_in(tmp_path, "azure", "job", "show", "-n", "mine").stdout)["status"]
        == "Canceled"
    )


@pytest.mark.long
def test_an_unchanged_script_leaves_its_job_to_the_cluster(
    cluster_here: Home, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = troupe_in(tmp_path, "run-as", "script.py", "0")
    assert done.returncode == 0 and done.stdout == "name job\n", done.stderr
    made = tmp_path / "made"
    eventually(
        lambda: (
            made.is_dir()
            and sorted(each.read_text() for each in made.iterdir()) == ["0 3\n", "1 3\n"]
        ),
        what="the job's outputs",
    )


def test_without_a_cluster_a_scripts_end_waits_for_its_job(home: Home, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = troupe_in(tmp_path, "run-as", "script.py", "0")
    assert done.returncode == 0, done.stderr
    assert sorted(each.read_text() for each in (tmp_path / "made").iterdir()) == ["0 3\n", "1 3\n"]
    assert "runs on a cluster of this program, which waits for it" in done.stderr


def test_an_installed_azure_identity_is_what_is_found(home: Home, tmp_path: Path) -> None:
    """And where none is, its names open nothing."""
    program = (
        "from azure.identity import DefaultAzureCredential\nimport "
        "azure.ai.ml\nprint(DefaultAzureCredential.__module__, type(azure.ai.ml).__name__)\n"
        "DefaultAzureCredential().get_token('x')"
    )
    (tmp_path / "script.py").write_text(program)
    done = troupe_in(tmp_path, "run-as", "script.py")
    assert (
        done.stdout == "troupe.azure.credentials AzureModule\n"
        and "pip install azure-identity" in done.stderr
    ), done.stderr
    (tmp_path / "azure" / "identity").mkdir(parents=True)
    (tmp_path / "azure" / "identity" / "__init__.py").write_text(
        "class DefaultAzureCredential:\n    def get_token(self, _):\n        print('a token')\n"
    )
    for line in ("script.py", "below.py"):
        (tmp_path / "below.py").write_text(
            "import subprocess, sys\nsubprocess.run([sys.executable, 'script.py'], check=True)"
        )
        done = troupe_in(tmp_path, "run-as", line)
        assert done.stdout == "azure.identity AzureModule\na token\n", done.stderr


def test_importing_it_loads_no_more_than_what_is_asked_for(home: Home) -> None:
    code = (
        "import sys, troupe.azure\ntroupe.azure.command(command='x')\nprint([each for each in "
        "('yaml', 'pathspec', 'torch', 'numpy') if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.stdout == "[]\n", done.stderr
