"""A job whose command starts DeepSpeed's own launcher: once, on the first node, with a hostfile of
the job's nodes, and `pdsh` and `ssh` that reach them without ssh: the launch itself is the remote
agent.

The launcher starts its processes by `pdsh`, and so do the experiments of its autotuning, each on
the nodes that it was given. `deepspeed` of the command is the installed one with three options in
front of those that are given: `--hostfile`, `--master_port`, and `--force_multi`, without which
what is to run on one other node would run on the first.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from troupe import _pickled
from troupe._base import identity as _identity
from troupe._cluster import session as _session
from troupe.azure import _door, _members, _mpi, _rank, _shells
from troupe.launch import _context, _ports

HOSTFILE = "TROUPE_HOSTFILE"
_REMOTE = Path(__file__).with_name("_remote.py")
_WORLD = re.compile(r"--world_info=([\w=-]+)")
_ADDRESS = re.compile(r"hostname\s+-I\s*")


def hostfile(hosts: Sequence[str], slots: int) -> str:
    """Return the text of a hostfile. Pure.

    >>> hostfile(["a", "b"], 4)
    'a slots=4\\nb slots=4\\n'
    """
    return "".join(f"{host} slots={slots}\n" for host in hosts)


def programs(
    real_path: str, interpreter: str, hostfile_at: str, port: int, host: str
) -> dict[str, str]:
    """Shell scripts by their names, which stand in front of PATH (`real_path`). Pure."""
    ours = {
        name: f"#!/bin/sh\nexec {shlex.quote(interpreter)} -S -E {shlex.quote(str(_REMOTE))} "
        f'{name} "$@"\n'
        for name in ("pdsh", "ssh")
    }
    missing = (
        f"troupe: there is no deepspeed on {host}: pip install deepspeed there, for the "
        f"interpreter {interpreter}"
    )
    return {
        **ours,
        "deepspeed": (
            f"#!/bin/sh\nreal=$(PATH={shlex.quote(real_path)}; command -v deepspeed) || {{ echo "
            f"{shlex.quote(missing)} >&2; exit 127; }}\n"
            f'exec "$real" --hostfile {shlex.quote(hostfile_at)} --master_port {port} '
            '--force_multi "$@"\n'
        ),
    }


def text_for(text: str, own: str, there: str, host: str, devices: Sequence[str]) -> str:
    """A command line of the first node's as another runs it: the job's directory (`own`) is another
    one (`there`), and where the host has only some of its node's devices these are DeepSpeed's, in
    place of 0, 1, ... Pure."""
    text = text.replace(own, there)
    found = _WORLD.search(text)
    if found is None or not devices:
        return text
    try:
        world = json.loads(base64.urlsafe_b64decode(found[1]))
        world[host] = [int(devices[slot]) for slot in world[host]]
    except (binascii.Error, ValueError, KeyError, IndexError, TypeError):
        # Written for another program, or with slots that the host lacks: the launcher itself
        # reports that
        return text
    return (
        text[: found.start(1)]
        + base64.urlsafe_b64encode(json.dumps(world).encode()).decode()
        + text[found.end(1) :]
    )


@dataclass(frozen=True)
class DeepspeedStart:
    """The driver of a DeepSpeed job, as it travels: at most `slots` processes on each node, with
    `gpus` there."""

    job: _rank.JobStart
    slots: int
    gpus: int

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickled.azure_deepspeed, (self.job, self.slots, self.gpus)

    def __call__(self) -> NoReturn:
        """Runs the command and leaves by SystemExit with its code.

        Raises what the job's directory does.
        """
        context, session = _context.current(), _session.current()
        folder = self.job.enter(session, context)
        command = self.job.settle(folder, context)
        members = _members.of(session, context)
        own = re.sub(r"[^A-Za-z0-9.-]", "-", members.names[0]) or "node"
        hosts = _members.host_names(own, members.names)
        held = _ports.Held()
        master = _members.at(members.addresses[0], held.port)
        variables = (
            {"OMP_NUM_THREADS": os.environ["OMP_NUM_THREADS"]}
            if "OMP_NUM_THREADS" in os.environ
            else {}
        )
        env = {
            **_mpi.environment(os.environ, root=False, master=master),
            _mpi.FOLDER: str(folder),
            **self._place(folder, hosts, held.port),
        }
        with _shells.Shells(
            self.job,
            context,
            dict(zip(hosts, members.nodes, strict=True)),
            self.gpus,
            master,
            variables,
        ) as shells:
            answer = Answering(
                shells, dict(zip(hosts, members.addresses, strict=True)), str(folder)
            )
            with _door.Door(folder, answer):
                code = _mpi.run([_rank.SHELL, "-c", command], folder / "code", env)
        _rank.leave_as("the command", code)

    def _place(self, folder: Path, hosts: Sequence[str], port: int) -> dict[str, str]:
        """Writes hostfile and programs; the variables that say where they are."""
        file, bin_folder, path = (
            folder / "hostfile",
            folder / "bin",
            os.environ.get("PATH", os.defpath),
        )
        file.write_text(hostfile(hosts, self.slots))
        bin_folder.mkdir(exist_ok=True)
        for name, text in programs(
            path, sys.executable, str(file), port, os.uname().nodename
        ).items():
            (bin_folder / name).write_text(text)
            (bin_folder / name).chmod(0o700)
        return {
            HOSTFILE: str(file),
            "PATH": f"{bin_folder}{os.pathsep}{path}",
            "AZ_BATCH_HOST_LIST": ",".join(hosts),
            "AZUREML_CR_NODE_RANK": "0",
            "AZUREML_PROCESS_NAME": "rank_0",
        }


class Answering:
    """The driver's answers to each `pdsh` and `ssh`."""

    def __init__(self, shells: _shells.Shells, addresses: Mapping[str, str], folder: str) -> None:
        self._shells, self._addresses, self._folder = shells, addresses, folder

    def __call__(self, request: dict[str, Any], asked: socket.socket) -> None:
        """Runs one command line on one host, whose output goes back; ends it where who asked has
        ended."""
        host, text = request["host"], request["text"]
        if host not in self._addresses:
            self._say(
                asked,
                2,
                f"troupe: there is no node {host!r} in this job; it has "
                f"{', '.join(self._addresses)}\n".encode(),
            )
            self._say(asked, 0, b"255")
            return
        if _ADDRESS.fullmatch(
            text
        ):  # DeepSpeed takes the first for where processes meet, and a host may have any number
            self._say(asked, 1, f"{self._addresses[host]}\n".encode())
            self._say(asked, 0, b"0")
            return
        there, devices = self._shells.where[host]
        key = _identity.new_id()
        watch = _shells.Watch(asked, lambda: self._shells.end(host, key))
        line = text_for(
            text, self._folder, there, host, [each for each in devices.split(",") if each]
        )
        try:
            for number, data in self._shells.run(host, key, line):
                self._say(asked, number, data)
        finally:
            watch.close()

    @staticmethod
    def _say(asked: socket.socket, number: int, data: bytes) -> None:
        asked.sendall(b"%d %s\n" % (number, data if number == 0 else base64.b64encode(data)))


@_pickled.maker("azure_deepspeed")
def _azure_deepspeed(job: Any, slots: int, gpus: int) -> Any:
    """Rebuild the driver of a command job with DeepSpeed's own launcher."""
    return DeepspeedStart(job, slots, gpus)
