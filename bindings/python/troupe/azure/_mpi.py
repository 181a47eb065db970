"""A job's processes by a real `mpirun`, whose remote agent is the launch itself: no ssh.

Rank 0 of the launch is its driver and runs mpirun on its node. For each other node mpirun starts its agent (`_agent.py`), which asks the driver by
a socket in the job's directory; the driver has the rank of that node run mpirun's daemon, and tells the agent how that ended. The processes are
children of mpirun on node 0 and of the daemons elsewhere, and what they print comes by mpirun.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from troupe import _pickled
from troupe._cluster import session as _session, workers
from troupe.azure import _ports, _rank
from troupe.launch import _context

FOLDER, COMMAND = "TROUPE_JOB_FOLDER", "TROUPE_JOB_COMMAND"
_AGENT = Path(__file__).with_name("_agent.py")
_SOCKET = "agent"  # in the job's directory
_REQUEST_BYTES_MAX = 1 << 20
_OF_THE_RANK = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE",
                "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT")
_OF_LAUNCHERS = ("TORCHELASTIC_", "SLURM_", "PMIX_", "PMI_", "OMPI_COMM_WORLD_")
# What each process is: its variables as torch reads them too, the job's directory of its node, and the command as it is there.
_EACH = (
    'export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK '
    'LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE; '
    f'cd "${FOLDER}/code" && exec {_rank.SHELL} -c "${COMMAND}"')


def line(agent: str, hosts: Sequence[str], each: int, interface: str, *, share_a_host: bool = False) -> list[str]:
    """mpirun's words: on these hosts, `each` processes on each, this one's first; sockets on the interface, "" for any. Pure.

    `share_a_host`: several nodes are one host, which Open MPI's shared memory does not expect: processes then speak by sockets.
    """
    on = [word for name in ("oob_tcp_if_include", "btl_tcp_if_include") for word in ("--mca", name, interface)] if interface else []
    on += ["--mca", "btl", "tcp,self"] if share_a_host else []
    return ["mpirun", "--leave-session-attached", "--bind-to", "none", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent,
            "--mca", "plm_rsh_no_tree_spawn", "1", *on, "--host", ",".join(f"{host}:{each}" for host in hosts), "-np", str(each * len(hosts)),
            _rank.SHELL, "-c", _EACH]


def hosts_of(own: str, names: Sequence[str]) -> list[str]:
    """What nodes are called for mpirun, this one's (`own`) first: their names, each once, of characters that it lets be. Pure.

        >>> hosts_of("vm", ["a", "b", "b"])
        ['vm', 'b', 'b-2']
    """
    found = [own]
    for rank, name in enumerate(names[1:], 1):
        plain = re.sub(r"[^A-Za-z0-9.-]", "-", name) or "node"
        found.append(f"{plain}-{rank}" if plain in found else plain)
    return found


def environment(now: Mapping[str, str], *, root: bool, master: str) -> dict[str, str]:
    """That of mpirun or its daemon, from the rank's: without what says which rank that is, or which process of another launcher. Pure.

    `master`: host:port at which processes may meet. `root`: whether the worker is, for mpirun refuses root unless it is told.
    """
    kept = {name: value for name, value in now.items() if name not in _OF_THE_RANK and not name.startswith(_OF_LAUNCHERS)}
    host, _, port = master.rpartition(":")
    kept.update(MASTER_ADDR=host.strip("[]"), MASTER_PORT=port, AZ_BATCH_MASTER_NODE=master, AZ_BATCHAI_MPI_MASTER_NODE=host.strip("[]"))
    if root:
        kept.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return kept


@dataclass(frozen=True)
class MpiStart:
    """What the driver of such a job runs: `processes` on each node. As it travels."""

    job: _rank.JobStart
    processes: int

    def __reduce__(self) -> tuple:
        return _pickled.azure_mpi, (self.job, self.processes)

    def __call__(self) -> NoReturn:
        """Runs mpirun and leaves by SystemExit with its code. Raises FileNotFoundError where this node has none, and what the job's directory does."""
        context, session = _context.current(), _session.current()
        folder = self.job.enter(session, context)
        command = self.job.settle(folder, context)
        if shutil.which("mpirun") is None:
            raise FileNotFoundError(f"there is no mpirun on {os.uname().nodename}: install Open MPI there (Debian: openmpi-bin), or take "
                                    f"PyTorchDistribution(process_count_per_instance={self.processes}), which needs none")
        held = _ports.Held()
        nodes = {each["node"]: each for each in workers.node_infos(session)}
        ranks = sorted(session.request("GetLaunch", {"launch": context.launch})[1]["info"]["rank_infos"], key=lambda each: each["rank"])
        here = nodes[context.node]["listen_host"]
        master = f"[{here}]:{held.port}" if ":" in here else f"{here}:{held.port}"
        hosts = hosts_of(os.uname().nodename, [each["node_name"] for each in ranks])
        share_a_host = len({nodes[each["node"]]["host"] for each in ranks}) < len(ranks)
        agent = f"{sys.executable} -S -E {_AGENT}"
        if agent.count(" ") != 3:
            raise ValueError(f"mpirun takes no agent whose path has a space: {agent}")
        door = Door(self.job, dict(zip(hosts[1:], context.ranks[1:], strict=True)), folder, master)
        words = line(agent, hosts, self.processes, _interface(), share_a_host=share_a_host)
        env = {**environment(os.environ, root=os.geteuid() == 0, master=master), FOLDER: str(folder), COMMAND: command}
        with door:
            code = _run(words, folder, env)
        _rank.leave_as("mpirun", code)


def _interface() -> str:
    """The one that this launch's ranks use; "" where the job says something else than a name."""
    name = os.environ.get("NCCL_SOCKET_IFNAME", "").removeprefix("=")
    return name if name and os.path.exists(f"/sys/class/net/{name}") else ""


def _run(words: Sequence[str], folder: Path, env: Mapping[str, str]) -> int:
    """Its code, negative for a signal. Told to stop, it is told so too, and waited for."""
    child = subprocess.Popen(words, cwd=folder, env=dict(env), stdin=subprocess.DEVNULL)
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        child.wait()  # the worker ends what takes longer than its grace
        raise


class Door:
    """Where mpirun's agents ask for daemons on other nodes. A context; one thread for each agent."""

    def __init__(self, job: _rank.JobStart, ranks: Mapping[str, Any], folder: Path, master: str) -> None:
        self._job, self._ranks, self._master = job, ranks, master
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = folder / _SOCKET
        self._path.unlink(missing_ok=True)
        inside = os.open(folder, os.O_PATH)
        try:  # the paths of sockets are limited to 108 bytes
            self._listener.bind(f"/proc/self/fd/{inside}/{_SOCKET}")
        finally:
            os.close(inside)
        self._listener.listen(len(ranks) + 1)

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, name="troupe-mpi", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                asked, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(asked,), name="troupe-mpi-daemon", daemon=True).start()

    def _answer(self, asked: socket.socket) -> None:
        """Runs what an agent asks for, and says with which code it ended."""
        with asked, asked.makefile("rwb") as stream:
            code = 1
            try:
                request = json.loads(stream.readline(_REQUEST_BYTES_MAX))
                code = self._ranks[request["host"]].run(_pickled.azure_daemon, self._job, request["text"], self._master)
            except BaseException as error:
                print(f"troupe: mpirun's daemon could not be run: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            try:
                stream.write(b"%d\n" % code)
            except OSError:
                return  # mpirun has ended its agent


def daemon(job: _rank.JobStart, text: str, master: str) -> int:
    """On another node: mpirun's daemon, in the job's directory there; blocks until it has ended. Its code, as a shell has it."""
    context = _context.current()
    folder = job.enter(_session.current(), context)
    command = job.settle(folder, context)
    env = {**environment(os.environ, root=os.geteuid() == 0, master=master), FOLDER: str(folder), COMMAND: command}
    code = _run([_rank.SHELL, "-c", text], folder, env)
    return 128 - code if code < 0 else code
