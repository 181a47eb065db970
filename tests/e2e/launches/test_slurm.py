"""`srun troupe run`: Slurm itself, of Debian's packages, with two nodes on loopback.

Skipped where it is not installed.

Its parts authenticate by auth/none: what is tested is what Slurm tells its tasks, not Slurm.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, Home

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
MISSING = [
    name
    for name in ("slurmctld", "slurmd", "srun", "sinfo")
    if shutil.which(name, path=PATH) is None
]
pytestmark = pytest.mark.skipif(
    bool(MISSING),
    reason=f"not installed: {', '.join(MISSING)} (Debian: slurmctld slurmd slurm-client)",
)


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on."""
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


@pytest.fixture
def slurm(home: Home, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A controller and two nodes; the environment in which srun finds them."""
    folder = tmp_path / "slurm"
    for name in ("state", "n1", "n2"):
        (folder / name).mkdir(parents=True)
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=socket.gethostname().split(".")[0],
            user=getpass.getuser(),
            ports=free_ports(3),
            folder=folder,
        )
    )
    env = {**os.environ, "PATH": PATH, "SLURM_CONF": str(configuration)}
    daemons = [
        subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in (
            ["slurmctld", "-D"],
            ["slurmd", "-D", "-N", "n1"],
            ["slurmd", "-D", "-N", "n2"],
        )
    ]
    try:

        def idle() -> bool:
            told = subprocess.run(
                ["sinfo", "-h", "-N", "-o", "%T"], env=env, capture_output=True, text=True
            )
            return told.stdout.split() == ["idle", "idle"]

        deadline = time.monotonic() + TIMEOUT_S
        while not idle():
            if time.monotonic() > deadline or any(daemon.poll() is not None for daemon in daemons):
                logs = {
                    path.name: path.read_text().splitlines()[-1:] for path in folder.glob("*.log")
                }
                pytest.skip(f"Slurm does not come up on this machine: {logs}")
            time.sleep(0.1)  # lint-ok: polling other processes, up to a deadline
        yield env
    finally:
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


PROGRAM = """
import os, sys, troupe
from troupe.launch import distributed
with troupe.init():
    print("nodes", sorted(node["NodeName"] for node in troupe.nodes()))
    print(distributed(processes=4, remote=True)(lambda: int(os.environ["NODE_RANK"])).submit().result(60))
sys.exit(4)
"""


def test_srun(slurm: dict[str, str], home: Home, tmp_path: Path) -> None:
    secret = str(tmp_path / "secret")
    home.run("run", "--make-secret", secret)
    line = [
        sys.executable,
        "-m",
        "troupe",
        "run",
        "--nodes",
        "2",
        "--secret-file",
        secret,
        "--address",
        "127.0.0.1",
        "--num-cpus",
        "2",
        "--",
        sys.executable,
        "-c",
        PROGRAM,
    ]
    done = subprocess.run(
        ["srun", "-N2", "--ntasks-per-node=1", *line],
        env=slurm,
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_S,
    )
    assert done.returncode == 4, done.stderr
    assert done.stdout.splitlines() == ["nodes ['n1', 'n2']", "[0, 0, 1, 1]"]
    assert "n1 leads at 127.0.0.1:" in done.stderr and "n2 joined 127.0.0.1:" in done.stderr
    assert done.stderr.count("marker: failed, exit 4") == 2


def test_a_second_task_on_a_node_is_refused(
    slurm: dict[str, str], home: Home, tmp_path: Path
) -> None:
    secret = str(tmp_path / "secret")
    home.run("run", "--make-secret", secret)
    line = [sys.executable, "-m", "troupe", "run", "--nodes", "1", "--", "true"]
    done = subprocess.run(
        ["srun", "-N1", "-n2", *line],
        env=slurm,
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_S,
    )
    assert done.returncode == 2 and "srun --ntasks-per-node=1" in done.stderr
