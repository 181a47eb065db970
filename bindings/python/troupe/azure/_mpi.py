"""A job's processes by a real `mpirun`, whose remote agent is the launch itself: no ssh.

Rank 0 of the launch is its driver and runs mpirun on its node. For each other node mpirun starts
its agent (`_agent.py`), which asks the driver by a socket in the job's directory; the driver has
the rank of that node run mpirun's daemon, and tells the agent how that ended. The processes are
children of mpirun on node 0 and of the daemons elsewhere, and what they print comes by mpirun.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from troupe import _pickled
from troupe._cluster import session as _session
from troupe.azure import _door, _members, _rank
from troupe.launch import _context, _ports

FOLDER, COMMAND = "TROUPE_JOB_FOLDER", "TROUPE_JOB_COMMAND"
_AGENT = Path(__file__).with_name("_agent.py")
_OF_THE_RANK = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "ROLE_NAME",
    "MASTER_ADDR",
    "MASTER_PORT",
)
_OF_LAUNCHERS = ("TORCHELASTIC_", "SLURM_", "PMIX_", "PMI_", "OMPI_COMM_WORLD_")
# Shell text that each process runs first: variables as torch reads them too, the job's directory of
# its node, and the command as it is there.
_EACH = (
    "export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE "
    "LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK "
    "LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE; "
    f'cd "${FOLDER}/code" && exec {_rank.SHELL} -c "${COMMAND}"'
)


def line(
    agent: str, hosts: Sequence[str], each: int, interface: str, *, share_a_host: bool = False
) -> list[str]:
    """mpirun's words: on these hosts, `each` processes on each, this one's first; sockets on the
    interface, "" for any. Pure.

    `share_a_host`: several nodes are one host, which Open MPI's shared memory does not expect:
    processes then speak by sockets.
    """
    on = (
        [
            word
            for name in ("oob_tcp_if_include", "btl_tcp_if_include")
            for word in ("--mca", name, interface)
        ]
        if interface
        else []
    )
    on += ["--mca", "btl", "tcp,self"] if share_a_host else []
    return [
        "mpirun",
        "--leave-session-attached",
        "--bind-to",
        "none",
        "--mca",
        "plm",
        "rsh",
        "--mca",
        "plm_rsh_agent",
        agent,
        "--mca",
        "plm_rsh_no_tree_spawn",
        "1",
        *on,
        "--host",
        ",".join(f"{host}:{each}" for host in hosts),
        "-np",
        str(each * len(hosts)),
        _rank.SHELL,
        "-c",
        _EACH,
    ]


def without_ranks(now: Mapping[str, str]) -> dict[str, str]:
    """An environment without what says which rank this is, or which process of another launcher.

    Pure.
    """
    return {
        name: value
        for name, value in now.items()
        if name not in _OF_THE_RANK and not name.startswith(_OF_LAUNCHERS)
    }


def environment(now: Mapping[str, str], *, root: bool, master: str) -> dict[str, str]:
    """Return the environment of mpirun or its daemon, made from the rank's: without variables that
    name a rank, or a process of another launcher. Pure.

    `master`: host:port at which processes may meet. `root`: whether the worker is, for mpirun
    refuses root unless it is told.
    """
    kept = without_ranks(now)
    host, _, port = master.rpartition(":")
    kept.update(
        MASTER_ADDR=host.strip("[]"),
        MASTER_PORT=port,
        AZ_BATCH_MASTER_NODE=master,
        AZ_BATCHAI_MPI_MASTER_NODE=host.strip("[]"),
    )
    if root:
        kept.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return kept


@dataclass(frozen=True)
class MpiStart:
    """The driver of an MPI job, as it travels: `processes` on each node."""

    job: _rank.JobStart
    processes: int

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.azure_mpi, (self.job, self.processes)

    def __call__(self) -> NoReturn:
        """Runs mpirun and leaves by SystemExit with its code.

        Raises FileNotFoundError where this node has none, and what the job's directory does.
        """
        context, session = _context.current(), _session.current()
        folder = self.job.enter(session, context)
        command = self.job.settle(folder, context)
        if shutil.which("mpirun") is None:
            raise FileNotFoundError(
                f"there is no mpirun on {os.uname().nodename}: install Open MPI there (Debian: "
                "openmpi-bin), or take "
                f"PyTorchDistribution(process_count_per_instance={self.processes}), which needs "
                "none"
            )
        held = _ports.Held()
        members = _members.of(session, context)
        master = _members.at(members.addresses[0], held.port)
        hosts = _members.host_names(os.uname().nodename, members.names)
        agent = f"{sys.executable} -S -E {_AGENT}"
        if agent.count(" ") != 3:
            raise ValueError(f"mpirun takes no agent whose path has a space: {agent}")
        by_host = dict(zip(hosts[1:], context.ranks[1:], strict=True))

        def answer(request: dict[str, Any], asked: socket.socket) -> None:
            """Runs the daemon that an agent asks for, and says with which code it ended."""
            asked.sendall(
                b"%d\n"
                % by_host[request["host"]].run(
                    _pickled.azure_daemon, self.job, request["text"], master
                )
            )

        words = line(
            agent, hosts, self.processes, _interface(), share_a_host=members.share_a_host()
        )
        env = {
            **environment(os.environ, root=os.geteuid() == 0, master=master),
            FOLDER: str(folder),
            COMMAND: command,
        }
        with _door.Door(folder, answer):
            code = run(words, folder, env)
        _rank.leave_as("mpirun", code)


def _interface() -> str:
    """The one that this launch's ranks use; "" where the job says something else than a name."""
    name = os.environ.get("NCCL_SOCKET_IFNAME", "").removeprefix("=")
    return name if name and os.path.exists(f"/sys/class/net/{name}") else ""


def run(words: Sequence[str], folder: Path, env: Mapping[str, str]) -> int:
    """Run a command and return its exit code, negative for a signal. If this process is stopped,
    the command is terminated and waited for."""
    child = subprocess.Popen(words, cwd=folder, env=dict(env), stdin=subprocess.DEVNULL)
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        child.wait()  # the worker ends what takes longer than its grace
        raise


def daemon(job: _rank.JobStart, text: str, master: str) -> int:
    """On another node: mpirun's daemon, in the job's directory there; blocks until it has ended.

    Its code, as a shell has it.
    """
    context = _context.current()
    folder = job.enter(_session.current(), context)
    command = job.settle(folder, context)
    env = {
        **environment(os.environ, root=os.geteuid() == 0, master=master),
        FOLDER: str(folder),
        COMMAND: command,
    }
    code = run([_rank.SHELL, "-c", text], folder, env)
    return 128 - code if code < 0 else code


@_pickled.maker("azure_mpi")
def _azure_mpi(job: Any, processes: int) -> Any:
    """Rebuild the driver of a command job with MPI."""
    return MpiStart(job, processes)


@_pickled.maker("azure_daemon")
def _azure_daemon(job: Any, text: str, master: str) -> int:
    """Run mpirun's daemon on another node of such a job."""
    return daemon(job, text, master)
