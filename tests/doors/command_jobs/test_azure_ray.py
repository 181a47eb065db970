"""Command jobs with the Ray distribution: the command drives a cluster of the job's instances,
which is Troupe by Ray's names.

Method: two workers by --force-tcp, a script that imports ray and a module of its folder, and looks
at what it has. Ray itself: `tests/doors/real_ray`.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from azure_jobs import LIMIT_S, folder_of, ran, run
from e2e_conftest import Home, eventually

from troupe import exceptions
from troupe.azure import MLClient, RayDistribution, command, load_job

TWO = {"instance_count": 2, "distribution": RayDistribution()}
SCRIPT = """
import os, sys
import ray
ray.init()

@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def square(number):
    import helper
    return helper.square(number)

print(ray.get([square.remote(each) for each in range(4)]), sorted(node["NodeName"] for node in ray.nodes()), type(ray).__name__, sys.argv[1:],
      os.environ.get("RANK"), os.environ["SAID"], flush=True)
open("outputs/made", "w").write("made")
"""
HELPER = "def square(number):\n    return number * number\n"
YAML = """
command: python train.py --lr ${{inputs.lr}}
code: src
inputs: {lr: 1}
environment: e
environment_variables: {SAID: said}
distribution: {type: ray, api: troupe}
resources: {instance_count: 2}
"""
SAID = "[0, 1, 4, 9] ['a', 'b'] RayModule ['--lr', '1'] None said"


@pytest.fixture(scope="module", autouse=True)
def own_folder(shared_home: Home) -> None:
    """Temporary files of the module's cluster lie in a folder of its own, so that what is left of
    it is told from what others have there."""
    os.environ["TMPDIR"] = os.environ["XDG_RUNTIME_DIR"]


def _nodes_folders() -> list[str]:
    return [str(each) for each in Path(os.environ["TMPDIR"]).glob("troupe-raynode-*")]


def test_c7_a_job_file_whose_command_drives_the_instances(
    hosts: dict[str, str], tmp_path: Path
) -> None:
    folder_of(
        tmp_path,
        src__train="",
        **{"src__train.py": SCRIPT, "src__helper.py": HELPER, "job.yml": YAML},
    )
    jobs = MLClient().jobs
    job = jobs.create_or_update(load_job(tmp_path / "job.yml"))
    handle = jobs.handle(jobs.info(job.name))
    handle.result(timeout=LIMIT_S)
    assert [line.partition("] ")[2] for line in handle.logs() if "RayModule" in line] == [SAID]
    jobs.download(job.name, download_path=tmp_path / "to", all=True)
    assert (tmp_path / "to/artifacts/outputs/made").read_text() == "made" and not _nodes_folders()


def test_c7_the_commands_code_is_the_jobs(hosts: dict[str, str]) -> None:
    with pytest.raises(exceptions.LaunchError, match="rank 0 exited with code 7") as failed:
        run(command="echo why >&2; exit 7", **TWO)
    assert (
        failed.value.exit_code == 7
        and "the command ended" in str(failed.value)
        and "why" in failed.value.log_tail
    )
    assert not _nodes_folders()


def test_c7_a_head_that_is_killed_ends_the_job(hosts: dict[str, str], shared_home: Home) -> None:
    jobs = MLClient().jobs
    job = jobs.create_or_update(command(command="echo begins; exec sleep 1000", **TWO))
    handle = jobs.handle(jobs.info(job.name))
    eventually(
        lambda: any("begins" in each for each in handle.logs()), what="the command", timeout=LIMIT_S
    )
    folders = _nodes_folders()
    heads = [
        pid
        for pid in shared_home.processes()
        if _home_of(pid) in folders and "troupe-head" in shared_home.processes().get(pid, "")
    ]
    assert len(folders) == 2 and len(heads) == 1
    os.kill(heads[0], signal.SIGKILL)
    with pytest.raises(
        exceptions.RayProcessDiedError, match="Ray's troupe-head on [ab] was killed by SIGKILL"
    ):
        handle.result(timeout=LIMIT_S)
    eventually(
        lambda: (
            not _nodes_folders()
            and not [line for line in shared_home.processes().values() if "sleep 1000" in line]
        ),
        what="the end of all of the job",
    )


def _home_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next(
        (
            os.path.dirname(word.partition(b"=")[2].decode())
            for word in words
            if word.startswith(b"TROUPE_HOME=")
        ),
        "",
    )


def test_c7_what_a_shell_line_of_it_finds(hosts: dict[str, str]) -> None:
    line = (
        "echo ${RAY_ADDRESS:+address} ${RANK-none} ${MASTER_PORT-none} $AZUREML_NODE_COUNT; ray "
        "status | grep -c alive"
    )
    assert ran(command=line, **TWO) == ["2", "address none none 2"]
